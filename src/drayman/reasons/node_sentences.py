"""Sentences about the pod and about nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.api.core import DO_NOT_SCHEDULE
from drayman.placement.demand import missing_class
from drayman.placement.fit.taints import is_tolerated
from drayman.placement.fit.verdict import SPREAD_LABEL, TOO_MANY_PODS, insufficient
from drayman.placement.prices import SPOT
from drayman.placement.refusing import claim_marker
from drayman.reasons.naming import taint_title
from drayman.reasons.node_fit import about_node
from drayman.reasons.reason import Reason
from drayman.reasons.subjects import FindingContext, Writer
from drayman.reasons.volumes import lacking_volumes, unbound
from drayman.reasons.wording import and_list, counted, named

_SHORT: Final = insufficient("")


def _no_nodes(_: FindingContext) -> str:
    return "The cluster has no nodes."


def _class_missing(subject: FindingContext) -> str:
    missing = missing_class(subject.demand.open, subject.state.inventory.classes)
    return (
        _as_the_rule_says(subject)
        if missing is None
        else f"Claim {claim_marker(missing.claim)}, {missing}."
    )


def _as_the_rule_says(subject: FindingContext) -> str:
    """What the rule itself says."""
    text = subject.found.groups[0].verdict.reasons[0]
    return f"{text[:1].upper()}{text[1:]}."


def _volume_unbound(subject: FindingContext) -> str:
    return unbound(subject.state, subject.demand) or _as_the_rule_says(subject)


def _volume_lacking(subject: FindingContext) -> str:
    has = subject.verb("has", "have")
    lacks = lacking_volumes(subject.state, subject.demand, subject.found.nodes[0])
    return f"{subject.nodes} {has} {lacks}."


def _left_behind(subject: FindingContext) -> str:
    claim = subject.demand.stale_extended
    name = "" if claim is None else f" {claim.metadata.name}"
    return f"Claim{name} for extended resources is left over from an earlier attempt and is being removed."


def _binding_failed(subject: FindingContext) -> str:
    demand = subject.demand
    lost = [claim for claim in demand.held if claim.metadata.uid in demand.timed_out]
    claims = named("Claim", [claim.metadata.name for claim in lost])
    return f"{claims}: the driver reports a failure, or has not made the devices ready in time."


def _search_limit(subject: FindingContext) -> str:
    where = counted(len(subject.found.nodes), "node")
    return (
        f"The search for devices for {subject.claims} was given up on {where} before it had an"
        " answer; it will be tried again."
    )


def _short(subject: FindingContext) -> str:
    """The resources that are short, those of most nodes first."""
    short: dict[str, int] = {}
    for group in subject.found.groups:
        for reason in group.verdict.reasons:
            short[reason] = short.get(reason, 0) + group.number
    names = []
    for reason, _ in sorted(short.items(), key=lambda item: (-item[1], item[0])):
        if reason == TOO_MANY_PODS:
            names.append("pods")
        elif reason.startswith(_SHORT):
            names.append(reason.removeprefix(_SHORT))
        else:
            names.append("what the devices themselves take of the node")
    return and_list(names)


def _nodes_full(subject: FindingContext) -> str:
    does = subject.verb("does", "do")
    return f"{subject.nodes} {does} not have enough left of what the pod needs: {_short(subject)}."


def _node_too_small(subject: FindingContext) -> str:
    unknown = _offered_nowhere(subject)
    if unknown:
        return f"No node offers {and_list(unknown)}, and no device class provides that."
    is_, they_do = subject.verb("is", "are"), subject.verb("it does", "they do")
    return (
        f"{subject.nodes} {is_} too small for the pod: even when empty {they_do}"
        f" not have enough of what it needs: {_short(subject)}."
    )


def _offered_nowhere(subject: FindingContext) -> list[str]:
    """Extended resources that the pod needs and that exist nowhere."""
    needed = (name for name, amount in subject.demand.needs.shape.extended if amount)
    nodes = subject.state.nodes.values()
    return [
        name
        for name in needed
        if name not in subject.demand.extended
        and not any(node.facts.shape.extended.get(name) for node in nodes)
    ]


def _ports(subject: FindingContext) -> str:
    ports = [str(number) for _, _, number in subject.demand.needs.shape.ports]
    noun = "host port" if len(ports) == 1 else "one of the host ports"
    has = subject.verb("has", "have")
    return f"{subject.nodes} already {has} a pod that uses {noun} {and_list(ports)}."


def _mismatch(subject: FindingContext) -> str:
    name = subject.demand.needs.shape.node_name
    if name:
        return f"The pod asks for node {name}, which does not exist."
    does = subject.verb("does", "do")
    return f"{subject.nodes} {does} not match the node selector or affinity of the pod."


def _cordoned(subject: FindingContext) -> str:
    return f"{subject.nodes} {subject.verb('is', 'are')} cordoned."


def _tainted(subject: FindingContext) -> str:
    tolerations = subject.demand.needs.shape.tolerations
    taints: dict[str, None] = {}
    for name in subject.found.nodes:
        for taint in subject.state.nodes[name].facts.shape.taints:
            if not is_tolerated(taint, tolerations):
                taints[taint_title(taint.key, taint.value, taint.effect)] = None
    noun = "a taint" if len(taints) == 1 else "taints"
    has = subject.verb("has", "have")
    return f"{subject.nodes} {has} {noun} that the pod does not tolerate: {and_list(list(taints))}."


def _not_for_spot(subject: FindingContext) -> str:
    is_ = subject.verb("is a spot node", "are spot nodes")
    return (
        f"{subject.nodes} {is_}, which may be taken back at any time; the pod does not say that it"
        f' accepts that ({SPOT}: "true").'
    )


def _ruled_out(subject: FindingContext) -> str:
    why = about_node(subject.found.groups[0].verdict)[0]
    return f"{subject.nodes} {subject.verb('is', 'are')} {why}."


def _spread(subject: FindingContext) -> str:
    if SPREAD_LABEL not in subject.found.groups[0].verdict.reasons:
        return _ruled_out(subject)
    keys = [
        each.topology_key
        for each in subject.demand.pod.spec.topology_spread_constraints
        if each.when_unsatisfiable == DO_NOT_SCHEDULE
    ]
    nodes = [subject.state.nodes[name].facts.labels for name in subject.found.nodes]
    lacking = [key for key in dict.fromkeys(keys) if any(key not in labels for labels in nodes)]
    lack = f"{subject.nodes} {subject.verb('is', 'are')} without the label {' or '.join(lacking)}"
    return f"{lack}, which the pod's topology spread constraints use."


def _volume_in_use(subject: FindingContext) -> str:
    names = [volume.claim for volume in subject.demand.needs.shape.volumes]
    noun = "volume claim" if len(names) == 1 else "one of the volume claims"
    return (
        f"The pod uses {noun} {and_list(names)}, which only one pod may use, and another pod does."
    )


def _volume_elsewhere(subject: FindingContext) -> str:
    return f"{subject.nodes} cannot reach a volume of the pod, which is somewhere else."


def _claim_elsewhere(subject: FindingContext) -> str:
    demand = subject.demand
    names = [claim.metadata.name for claim in demand.held]
    has = f"{named('Claim', names)} {'has its' if len(names) == 1 else 'have their'} devices"
    if demand.only_node is None:
        return f"{has} where the pod cannot run."
    where = f"{has} on node {demand.only_node}"
    if demand.only_node not in subject.state.nodes:
        return f"{where}, which does not exist."
    why = f": {subject.found.detail}" if subject.found.detail else ""
    return f"{where}, where the pod cannot run{why}."


NODE_WRITERS: Final[Mapping[Reason, Writer]] = {
    Reason.NO_NODES: _no_nodes,
    Reason.CLASS_MISSING: _class_missing,
    Reason.VOLUME_UNBOUND: _volume_unbound,
    Reason.VOLUME_IN_USE: _volume_in_use,
    Reason.CLAIM_LEFT_BEHIND: _left_behind,
    Reason.BINDING_FAILED: _binding_failed,
    Reason.SEARCH_LIMIT: _search_limit,
    Reason.NODE_MISMATCH: _mismatch,
    Reason.NODE_TOO_SMALL: _node_too_small,
    Reason.NODES_FULL: _nodes_full,
    Reason.PORTS_IN_USE: _ports,
    Reason.NODES_CORDONED: _cordoned,
    Reason.NODES_TAINTED: _tainted,
    Reason.SPOT_NOT_ACCEPTED: _not_for_spot,
    Reason.CLAIM_ELSEWHERE: _claim_elsewhere,
    Reason.VOLUME_ELSEWHERE: _volume_elsewhere,
    Reason.VOLUME_LACKING: _volume_lacking,
    Reason.POD_AFFINITY: _ruled_out,
    Reason.POD_ANTI_AFFINITY: _ruled_out,
    Reason.TOPOLOGY_SPREAD: _spread,
}
