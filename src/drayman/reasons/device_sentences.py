"""Sentences about devices and the requests for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.allocator import RejectionReason as Test
from drayman.allocator.problem.focus import selectors_of
from drayman.allocator.problem.question import WantedDevices
from drayman.inventory.bitsets import positions
from drayman.inventory.view import NodeView
from drayman.reasons.device_reasons import Totals, totals
from drayman.reasons.finding import ELIGIBLE
from drayman.reasons.naming import amount_title, taint_title
from drayman.reasons.reason import Reason
from drayman.reasons.subjects import FindingContext, Writer
from drayman.reasons.wording import and_list, counted, quoted, without_source

_LOST: Final = {
    Test.IN_USE: "in use",
    Test.TAINTED: "tainted",
    Test.CAPACITY: "short of capacity",
    Test.COUNTERS: "blocked by other partitions of the same hardware",
    Test.NO_ATTRIBUTE: "without an attribute that a constraint compares",
    Test.BINDING_CONDITIONS: "subject to binding conditions",
}


def _used_up(subject: FindingContext) -> str:
    """How many match, and why they are not available."""
    if subject.found.shortage is None:
        return f"{subject.request} is in use on {counted(len(subject.found.nodes), 'node')}."
    found = subject.totals
    lost = _lost_to(subject)
    if subject.state.has_floating_devices:
        # Devices that several nodes see would be counted more than once.
        text = and_list(list(lost), most=len(lost))
        return f"{subject.wants}; those that match are {text}{_rest(subject, found)}."
    parts = [f"{number} {'is' if number == 1 else 'are'} {what}" for what, number in lost.items()]
    text = and_list(parts, most=len(parts))
    if len(lost) == 1 and found.matching in lost.values():
        return f"{subject.wants}; {_all(found.matching)} {next(iter(lost))}."
    return f"{subject.wants}; of {found.matching} that match, {text}{_rest(subject, found)}."


def _lost_to(subject: FindingContext) -> dict[str, int]:
    """Why matching devices are not available, and how many: first what exists already, then what is planned."""
    losses = subject.losses
    lost = {_LOST[test]: n for test, n in losses.lost.items() if n and test in _LOST}
    if losses.taken and subject.planned is not None:
        lost[f"taken by {subject.planned.takers}"] = losses.taken
    return lost


def _all(number: int) -> str:
    if number == 1:
        return "the only one that matches is"
    return "both that match are" if number == 2 else f"all {number} that match are"


def _rest(subject: FindingContext, found: Totals) -> str:
    if not found.most_free:
        return ""
    if len(subject.found.nodes) == 1:
        return f", and {found.most_free} {'is' if found.most_free == 1 else 'are'} left"
    return f", and no node has more than {found.most_free} left"


def _counters_in_use(subject: FindingContext) -> str:
    if subject.shortage.lacks is not Test.COMBINATION:
        return _used_up(subject)
    return (
        f"{subject.wants}; {subject.shortage.free} are free on node {subject.found.nodes[0]}, but not"
        " that many at once: they are partitions of hardware that others use in part."
    )


def _fragmented(subject: FindingContext) -> str:
    found = subject.totals
    holders = sum(g.number for g in subject.found.groups if totals((g,), subject.shortage).free)
    return (
        f"{subject.wants} on one node; {found.free} that match are free, but on"
        f" {counted(holders, 'node')}, with at most {found.most_free} on one."
    )


def _misaligned(subject: FindingContext) -> str:
    shortage = subject.shortage
    why = shortage.detail or "not so that the requests together meet the constraints"
    free = f"{shortage.free} {'is' if shortage.free == 1 else 'are'} free"
    return f"{subject.wants}; {free} on node {subject.found.nodes[0]}, but {why}."


def _compete(subject: FindingContext) -> str:
    return (
        f"The requests of {subject.claims} ({subject.found.detail}) could each be served on node"
        f" {subject.found.nodes[0]}, but compete for the same devices."
    )


def _devices_tainted(subject: FindingContext) -> str:
    if subject.found.shortage is None:
        return f"{subject.request} is tainted, and the claim does not tolerate that."
    taints = _untolerated(subject)
    why = f" ({and_list(taints)})" if taints else ""
    lost = subject.totals.lost.get(Test.TAINTED, 0)
    if subject.state.has_floating_devices or not lost:
        text = "those that match are tainted"
    else:
        text = _tainted_part(subject.totals.matching, lost)
    return f"{subject.wants}; {text}{why}, and the request does not tolerate that."


def _tainted_part(matching: int, lost: int) -> str:
    if lost < matching:
        return f"of {matching} that match, {lost} {'is' if lost == 1 else 'are'} tainted"
    return (
        "the only one that matches is tainted"
        if lost == 1
        else f"all {lost} that match are tainted"
    )


def _untolerated(subject: FindingContext) -> list[str]:
    """The taints that keep devices of the first node from the request."""
    found: dict[str, None] = {}
    view, wanted = _on_first_node(subject)
    for each, selectors in wanted:
        for part, taints in zip(view.parts, view.taints, strict=True):
            for position in positions(part.hardware.select(selectors)[0]):
                record = part.hardware.records[position]
                for taint in taints.untolerated(record, each.spec.tolerations):
                    found[taint_title(*taint)] = None
    return list(found)


def _on_first_node(
    subject: FindingContext,
) -> tuple[NodeView, list[tuple[WantedDevices, tuple[str, ...]]]]:
    """What the first node has, and the request at fault with the selectors of its class and its own."""
    state, shortage = subject.state, subject.shortage
    node = state.nodes[subject.found.nodes[0]]
    view, question = state.view(node), subject.demand.on(node.facts).question
    wanted = [w for request in question.requests for w in request.alternatives]
    found = []
    for each, selectors in zip(wanted, selectors_of(view, question), strict=True):
        if (each.claim, each.name) == (shortage.claim, shortage.request) and selectors is not None:
            found.append((each, selectors))
    return view, found


def _no_devices(subject: FindingContext) -> str:
    return f"{subject.wants}; no node publishes any."


def _no_such_device(subject: FindingContext) -> str:
    return f"{subject.wants}; none on any node passes the selectors of class and request."


def _selector(subject: FindingContext) -> str:
    view, wanted = _on_first_node(subject)
    why = without_source(subject.shortage.detail)
    for each, selectors in wanted:
        for expression in selectors:
            if any(part.hardware.select((expression,))[1] for part in view.parts):
                is_own = any(s.cel and s.cel.expression == expression for s in each.spec.selectors)
                whose = "" if is_own else f" of class {each.spec.device_class_name}"
                return f"{subject.request}: the selector {quoted(expression)}{whose} fails: {why}."
    return f"{subject.request}: a selector fails: {why}."


def _attribute(subject: FindingContext) -> str:
    return f"{subject.request}: a selector reads the {subject.found.detail}, which no device has."


def _capacity(subject: FindingContext) -> str:
    view, wanted = _on_first_node(subject)
    kinds = (kind for part in view.parts for kind in part.hardware.capacity_kinds)
    known = {capacity.name for kind in kinds for capacity in kind}
    amounts = [amount for each, _ in wanted for amount in each.amounts]
    lacking = [name for name, _ in amounts if name not in known]
    if lacking:
        return f"{subject.wants} with {and_list(lacking)}, a capacity that none of them has."
    asked = and_list([f"{amount_title(amount)} of {name}" for name, amount in amounts])
    where = f" on nodes {ELIGIBLE}," if subject.found.detail == ELIGIBLE else ""
    return f"{subject.wants} with {asked}, more than any that match have{where} even when unused."


def _count(subject: FindingContext) -> str:
    found = subject.shortage
    if found.lacks is Test.COMBINATION:
        return f"{subject.wants}; {found.free} match, but no node can provide that many at once."
    if found.matching >= found.wanted:
        return f"{subject.wants}; {found.matching} match on a node, but only {found.free} can be allocated."
    node = f"node {ELIGIBLE}" if subject.found.detail == ELIGIBLE else "node"
    return f"{subject.wants}; no {node} has more than {found.matching} that match."


def _constraint(subject: FindingContext) -> str:
    found = subject.shortage
    without = found.lost_to(Test.NO_ATTRIBUTE)
    if found.detail or not without:
        detail = found.detail or "no node has devices that meet the constraints"
        return f"{subject.wants}: {detail}."
    lack = "lacks" if without == 1 else "lack"
    of_them = f"of {found.matching} that match on a node, {without} {lack}"
    if without == found.matching > 1:
        of_them = f"all {without} that match on a node lack"
    return f"{subject.wants}; {of_them} {_compared(subject)}, which a constraint compares."


def _compared(subject: FindingContext) -> str:
    """The attributes that constraints of the claim compare."""
    constraints = subject.demand.open[subject.shortage.claim].spec.devices.constraints
    names = (c.match_attribute or c.distinct_attribute or "" for c in constraints)
    return and_list([name for name in dict.fromkeys(names) if name])


def _conflict(subject: FindingContext) -> str:
    return (
        f"The requests of {subject.claims} could each be served alone, but no node serves all of"
        " them together, even when it is empty."
    )


def _flawed(subject: FindingContext) -> str:
    return f"{subject.request}: {subject.shortage.detail}."


def _too_large(subject: FindingContext) -> str:
    found = subject.shortage
    if found.wanted:
        return f"{subject.wants}, which is more than a claim can have."
    return f"{subject.request} {found.detail}."


def _pool(subject: FindingContext) -> str:
    if not subject.found.detail:
        return f"{subject.request} {subject.shortage.detail}."
    return (
        f"Pool {subject.found.detail}; it may have devices for {subject.claims}, but cannot be used"
        " until that is fixed."
    )


def _feature(subject: FindingContext) -> str:
    if subject.shortage.detail:
        return f"{subject.request} {subject.shortage.detail}."
    why = "are parts of larger ones, but partitionable devices are switched off"
    if subject.shortage.lost_to(Test.BINDING_CONDITIONS):
        why = "have binding conditions, which are switched off"
    return f"{subject.wants}; those that match {why}."


DEVICE_WRITERS: Final[Mapping[Reason, Writer]] = {
    Reason.DEVICES_IN_USE: _used_up,
    Reason.CAPACITY_IN_USE: _used_up,
    Reason.COUNTERS_IN_USE: _counters_in_use,
    Reason.FRAGMENTED: _fragmented,
    Reason.MISALIGNED: _misaligned,
    Reason.REQUESTS_COMPETE: _compete,
    Reason.DEVICES_TAINTED: _devices_tainted,
    Reason.NO_DEVICES: _no_devices,
    Reason.NO_SUCH_DEVICE: _no_such_device,
    Reason.SELECTOR_INVALID: _selector,
    Reason.ATTRIBUTE_UNKNOWN: _attribute,
    Reason.CAPACITY_TOO_HIGH: _capacity,
    Reason.COUNT_TOO_HIGH: _count,
    Reason.CONSTRAINT_UNMEETABLE: _constraint,
    Reason.REQUESTS_CONFLICT: _conflict,
    Reason.CLAIM_TOO_LARGE: _too_large,
    Reason.CLAIM_INVALID: _flawed,
    Reason.POOL_INVALID: _pool,
    Reason.POOL_INCOMPLETE: _pool,
    Reason.FEATURE_OFF: _feature,
}
