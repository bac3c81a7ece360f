"""On which nodes a daemon set's pods belong, and how a pod is tied to its node.

The scheduler binds these pods like all others, so the tie is a required node affinity by name. A daemon looks after its node even when the
node is in trouble, so it tolerates the taints that say so.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from drayman.api import codec
from drayman.api.core import Affinity, Node, NodeSelector, Pod, Toleration
from drayman.api.node_taints import DAEMONS_TOLERATE, NETWORK_UNAVAILABLE
from drayman.api.nodeselector import compile_selector
from drayman.api.struct import ApiStruct, Json
from drayman.api.workloads import DaemonSet
from drayman.placement.fit.taints import is_tolerated
from drayman.workloads.pod_bodies import pod_body
from drayman.workloads.revisions import POD_LABEL

_NAME_FIELD: Final = "metadata.name"
_GENERATION_NOTE: Final = "deprecated.daemonset.template.generation"
_GENERATION_LABEL: Final = "pod-template-generation"
_ON_HOST_NETWORK: Final = ((NETWORK_UNAVAILABLE, "NoSchedule"),)


class _Placing(ApiStruct):
    """The parts of a template that decide where its pods go."""

    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_network: bool = False


class DaemonFit(NamedTuple):
    """Whether a node should get a pod, and whether one that is there may stay."""

    should_run: bool
    may_stay: bool


class DaemonNodes:
    """Where the pods of one template go."""

    def __init__(self, template: dict[str, Json]) -> None:
        self._spec = codec.convert(_Placing, template.get("spec") or {})
        added = _tolerated(host_network=self._spec.host_network)
        self._tolerations = (*self._spec.tolerations, *map(_toleration, added))

    def fit(self, node: Node) -> DaemonFit:
        if not self._matches(node):
            return DaemonFit(False, False)
        stays = not self._has_untolerated(node, ("NoExecute",))
        runs = stays and not self._has_untolerated(node, ("NoSchedule",))
        return DaemonFit(runs, stays)

    def _matches(self, node: Node) -> bool:
        spec = self._spec
        if spec.node_name and spec.node_name != node.metadata.name:
            return False
        if not spec.node_selector.items() <= node.metadata.labels.items():
            return False
        required = _required(spec.affinity)
        return required is None or compile_selector(required).matches(node)

    def _has_untolerated(self, node: Node, effects: tuple[str, ...]) -> bool:
        return any(
            taint.effect in effects and not is_tolerated(taint, self._tolerations)
            for taint in node.spec.taints
        )


def pod_of(daemon_set: DaemonSet, revision: str, node: str) -> dict[str, Json]:
    """The pod for a node, of the revision of the present template."""
    pod = pod_body(daemon_set, daemon_set.spec.template)
    labels = pod["metadata"]["labels"]
    labels[POD_LABEL] = revision
    if generation := daemon_set.metadata.annotations.get(_GENERATION_NOTE):
        labels[_GENERATION_LABEL] = generation
    pod["spec"] = _tied(pod["spec"], node)
    return pod


def _tied(spec: dict[str, Json], node: str) -> dict[str, Json]:
    """The spec of a pod for one node."""
    affinity = dict(spec.get("affinity") or {})
    at_node = {"key": _NAME_FIELD, "operator": "In", "values": [node]}
    affinity["nodeAffinity"] = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [at_node]}]
        },
    }
    return {**spec, "affinity": affinity, "tolerations": _tolerations(spec)}


def _tolerations(spec: dict[str, Json]) -> list[dict[str, Json]]:
    """Those of the template and those of every daemon, which replace the same ones with a time limit."""
    daemons = {
        taint: {"key": taint[0], "operator": "Exists", "effect": taint[1]}
        for taint in _tolerated(host_network=bool(spec.get("hostNetwork")))
    }
    tolerations = []
    for given in spec.get("tolerations") or ():
        is_for_all = given.get("operator") == "Exists" and not given.get("value")
        taint = (given.get("key"), given.get("effect"))
        tolerations.append(daemons.pop(taint, given) if is_for_all else given)
    return [*tolerations, *daemons.values()]


def _tolerated(*, host_network: bool) -> tuple[tuple[str, str], ...]:
    """Keys and effects of the taints that a daemon tolerates."""
    return (*DAEMONS_TOLERATE, *(_ON_HOST_NETWORK if host_network else ()))


def node_of(pod: Pod) -> str:
    """The node a daemon's pod is on or is meant for; empty where it does not say."""
    if pod.spec.node_name:
        return pod.spec.node_name
    required = _required(pod.spec.affinity)
    for term in () if required is None else required.node_selector_terms:
        for field in term.match_fields:
            if field.key == _NAME_FIELD and field.operator == "In" and len(field.values) == 1:
                return field.values[0]
    return ""


def _toleration(taint: tuple[str, str]) -> Toleration:
    return Toleration(key=taint[0], operator="Exists", effect=taint[1])


def _required(affinity: Affinity | None) -> NodeSelector | None:
    if affinity is None or affinity.node_affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution
