"""Nodes that keep pods away, or that the pod itself excludes: lift that rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Final

from drayman.api.codec import to_dict
from drayman.api.core import NodeSelectorTerm, Taint, Toleration
from drayman.explain.answer import Remedy
from drayman.explain.remedies.case import Case, or_else, remedy
from drayman.explain.remedies.commands import patch_command
from drayman.explain.remedies.patching import Patch, cut, patch_of, patched, put
from drayman.placement.fit.taints import UNSCHEDULABLE_TAINT, is_tolerated
from drayman.placement.nodes import NodeState
from drayman.placement.prices import SPOT
from drayman.reasons.naming import taint_title
from drayman.reasons.wording import and_list, named

_MOST_NODES: Final = 8
_MOST_KINDS: Final = 4
_OWN_DOMAINS: Final = ("kubernetes.io", "k8s.io")
_CONDITIONS: Final = "node.kubernetes.io/"
"""Taints that describe the state of a node. They go when that changes, not when a person removes them."""
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def uncordoned_nodes(case: Case) -> Iterator[Remedy]:
    """A node that takes no pods at the moment, but has what this one needs."""
    cordoned = (node for node in case.nodes if node.facts.shape.unschedulable)
    for node in islice(cordoned, _MOST_NODES):
        taints = [t for t in node.node.spec.taints if t.key != UNSCHEDULABLE_TAINT.key]
        patch: Patch = (cut("spec", "unschedulable"),)
        if len(taints) != len(node.node.spec.taints):
            patch = (*patch, put([to_dict(taint) for taint in taints], "spec", "taints"))
        name = node.facts.name
        commands = (f"kubectl uncordon {name}",)
        yield from _with_node(case, node, f"uncordon node {name}", patch, commands)


def tolerated_node_taints(case: Case) -> Iterator[Remedy]:
    """Tolerations with which the pod may go to nodes that keep others away."""
    kinds: dict[tuple[tuple[str, str, str], ...], list[NodeState]] = {}
    for node in case.nodes:
        taints = _repelling(case, node)
        if taints:
            kinds.setdefault(tuple((t.key, t.value, t.effect) for t in taints), []).append(node)
    for nodes in islice(kinds.values(), _MOST_KINDS):
        taints = _repelling(case, nodes[0])
        known = [to_dict(toleration) for toleration in case.pod.spec.tolerations]
        added = [to_dict(_tolerating(taint)) for taint in taints]
        patch: Patch = (put([*known, *added], "spec", "tolerations"),)
        sentence = f"tolerate the {_named(taints)} of nodes in the pod"
        commands = (patch_command(case.pod_patch(patch)),)
        yield from case.with_pod(sentence, *patch, nodes=nodes, commands=commands)


def untainted_nodes(case: Case) -> Iterator[Remedy]:
    """A node that has what the pod needs, but for a taint."""
    tainted = (node for node in case.nodes if _repelling(case, node))
    for node in islice(tainted, _MOST_NODES):
        taints, name = _repelling(case, node), node.facts.name
        kept = [to_dict(taint) for taint in node.node.spec.taints if taint not in taints]
        patch = (put(kept, "spec", "taints") if kept else cut("spec", "taints"),)
        commands = tuple(f"kubectl taint nodes {name} {_text(taint)}-" for taint in taints)
        sentence = f"take the {_named(taints)} off node {name}"
        yield from _with_node(case, node, sentence, patch, commands)


def accepted_spot(case: Case) -> Iterator[Remedy]:
    """A pod that says that it may be on nodes that are taken back at any time."""
    nodes = [node for node in case.nodes if node.offer.is_spot]
    if not nodes or case.demand.spending.takes_spot:
        return
    annotations = {**case.pod.metadata.annotations, SPOT: "true"}
    patch: Patch = (put(annotations, "metadata", "annotations"),)
    commands = (patch_command(case.pod_patch(patch)),)
    yield from case.with_pod("accept spot nodes in the pod", *patch, nodes=nodes, commands=commands)


def dropped_node_selectors(case: Case) -> Iterator[Remedy]:
    """Labels that the pod wants nodes to have, and that are in its way."""
    selector = case.pod.spec.node_selector
    singly = (
        case.with_pod(
            f"drop {key}={value} from the pod's node selector", cut("spec", "nodeSelector", key)
        )
        for key, value in selector.items()
    )
    together = case.with_pod("drop the pod's node selector", cut("spec", "nodeSelector"))
    yield from or_else(chain.from_iterable(singly), together if len(selector) > 1 else ())


def dropped_node_affinity(case: Case) -> Iterator[Remedy]:
    """A condition of the pod's node affinity that is in its way, or the whole of it."""
    affinity = case.pod.spec.affinity
    nodes = None if affinity is None else affinity.node_affinity
    required = None if nodes is None else nodes.required_during_scheduling_ignored_during_execution
    if required is None:
        return
    path = ("spec", "affinity", "nodeAffinity", _REQUIRED)
    singly = (
        case.with_pod(sentence, cut(*path, "nodeSelectorTerms", i, "matchExpressions", j))
        for i, term in enumerate(required.node_selector_terms)
        for j, sentence in _conditions(term)
    )
    whole = case.with_pod("drop the pod's required node affinity", cut(*path))
    yield from or_else(chain.from_iterable(singly), whole)


def labelled_nodes(case: Case) -> Iterator[Remedy]:
    """A node that has what the pod needs, but lacks labels that it selects nodes by."""
    wanted = case.pod.spec.node_selector
    for node in islice(_lacking(case, wanted), _MOST_NODES):
        name, missing = node.facts.name, _missing(node, wanted)
        texts = [f"{key}={value}" for key, value in missing.items()]
        labels = {**node.facts.labels, **missing}
        commands = (f"kubectl label node {name} {' '.join(texts)}",)
        sentence = f"label node {name} with {and_list(texts)}"
        patch = (put(labels, "metadata", "labels"),)
        yield from _with_node(case, node, sentence, patch, commands)


def _with_node(
    case: Case, node: NodeState, sentence: str, patch: Patch, commands: tuple[str, ...]
) -> Iterator[Remedy]:
    with case.state.trial():
        case.state.set_node(patched(node.node, patch))
        fit = case.trials.first_fit(case.demand, [node])
    if fit is not None:
        yield remedy(sentence, (patch_of("Node", node.facts.name, patch),), fit, commands)


def _repelling(case: Case, node: NodeState) -> list[Taint]:
    """The taints of a node that keep the pod away and were set by a person."""
    taints = node.facts.shape.taints
    if not taints:
        return []
    found = [taint for taint in taints if not is_tolerated(taint, case.pod.spec.tolerations)]
    return [] if any(taint.key.startswith(_CONDITIONS) for taint in found) else found


def _lacking(case: Case, wanted: Mapping[str, str]) -> Iterator[NodeState]:
    """Nodes that could be given the labels: they have no other value for them, and Kubernetes does not set them itself."""
    for node in case.nodes:
        missing = _missing(node, wanted)
        if missing and not any(
            key in node.facts.labels or key.partition("/")[0].endswith(_OWN_DOMAINS)
            for key in missing
        ):
            yield node


def _missing(node: NodeState, wanted: Mapping[str, str]) -> dict[str, str]:
    labels = node.facts.labels
    return {key: value for key, value in wanted.items() if labels.get(key) != value}


def _conditions(term: NodeSelectorTerm) -> Iterator[tuple[int, str]]:
    """The conditions of a term that has several, and how to describe each."""
    if len(term.match_expressions) + len(term.match_fields) < 2:
        return
    for index, condition in enumerate(term.match_expressions):
        text = " ".join((condition.key, condition.operator, ", ".join(condition.values))).strip()
        yield index, f"drop `{text}` from the pod's node affinity"


def _tolerating(taint: Taint) -> Toleration:
    operator = "Equal" if taint.value else "Exists"
    return Toleration(key=taint.key, operator=operator, value=taint.value, effect=taint.effect)


def _text(taint: Taint) -> str:
    return taint_title(taint.key, taint.value, taint.effect)


def _named(taints: list[Taint]) -> str:
    return named("taint", [_text(taint) for taint in taints])
