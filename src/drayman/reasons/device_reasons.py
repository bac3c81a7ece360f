"""From what the allocator recorded about nodes to a reason.

What is short now and what is short on an empty node are two questions with two sets of words: devices that are in use can be given back,
devices that do not exist cannot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from drayman.allocator import Finality
from drayman.allocator import RejectionReason as Test
from drayman.inventory.features import Features
from drayman.placement.demand import Demand
from drayman.placement.refusing import DevicesVerdict, Flaw, Shortage, claim_marker, decisive
from drayman.reasons.causes import DEFECTS, USED
from drayman.reasons.finding import Finding, Group, shortages_of
from drayman.reasons.reason import Reason

HOPELESS: Final = (Reason.NO_DEVICES, Reason.NO_SUCH_DEVICE)
"""A node with such a reason is not a candidate to begin with: it has nothing of what is wanted."""
ON_NO_NODE: Final = (*HOPELESS, Reason.CAPACITY_TOO_HIGH, Reason.COUNT_TOO_HIGH)
"""What is only true of a request if no node at all has enough for it."""
RequestKey: TypeAlias = tuple[int, str]
"""A request, with all its alternatives, by the position of its claim and by name."""
_HOPE: Final = (
    *HOPELESS,
    Reason.SELECTOR_INVALID,
    Reason.CAPACITY_TOO_HIGH,
    Reason.COUNT_TOO_HIGH,
    Reason.CONSTRAINT_UNMEETABLE,
    Reason.REQUESTS_CONFLICT,
)


class DeviceLack(Struct, frozen=True):
    """What is wrong with the devices of a node, and with which request."""

    reason: Reason
    shortage: Shortage | None = None

    @property
    def hope(self) -> int:
        """How far it is from serving: the higher, the closer."""
        return _HOPE.index(self.reason) if self.reason in _HOPE else len(_HOPE)


# What is short now.


def found_now(groups: Sequence[Group], demand: Demand, *, pooled: bool) -> Finding:
    """Why nodes that could serve the claims do not at present.

    `pooled` says whether devices of several nodes may be added up: not where nodes share them.
    """
    judged = [(_kind(group), group) for group in groups]
    here = [group for kind, group in judged if kind is Finality.NOT_HERE]
    if here:
        return _not_here(here)
    scattered = _fragmented(groups, demand) if pooled else None
    if scattered is not None:
        return Finding(Reason.FRAGMENTED, tuple(groups), scattered)
    shortage = closest(groups)
    if shortage is None:
        return Finding(Reason.DEVICES_IN_USE, tuple(groups))
    return Finding(_used_up(groups, shortage), tuple(groups), shortage)


def _kind(group: Group) -> Finality | None:
    return group.verdict.kind if isinstance(group.verdict, DevicesVerdict) else None


def _not_here(groups: Sequence[Group]) -> Finding:
    """Each request could be served; together they cannot."""
    first = groups[0]
    lacking = decisive(shortages_of(first))
    for shortage in lacking:
        if shortage.lacks is Test.CONSTRAINT:
            return Finding(Reason.MISALIGNED, (first,), shortage)
    if len(lacking) == 1 and lacking[0].wanted > 1:
        # A request that competes with itself does so for what its devices are parts of.
        return Finding(Reason.COUNTERS_IN_USE, (first,), lacking[0])
    several = len({s.claim for s in lacking}) > 1
    names = ", ".join(
        f"{claim_marker(s.claim)}/{s.request}" if several else s.request for s in lacking
    )
    return Finding(Reason.REQUESTS_COMPETE, (first,), lacking[0] if lacking else None, names)


def _fragmented(groups: Sequence[Group], demand: Demand) -> Shortage | None:
    """The request for which enough is free, on several nodes together.

    None where a request is for all devices of a node: what is free elsewhere does not matter to it.
    """
    lacking = [s for s in _by_request(groups).values() if all(each.lacks for each, _ in s)]
    found = None
    for parts in lacking:
        wanted = parts[0][0].wanted
        if wants_all(demand, parts[0][0]):
            return None
        if sum(shortage.free * number for shortage, number in parts) < wanted:
            return None
        if wanted > 1 and found is None:
            found = max((shortage for shortage, _ in parts), key=lambda s: s.free)
    return found


def _by_request(groups: Iterable[Group]) -> dict[tuple[int, str], list[tuple[Shortage, int]]]:
    found: dict[tuple[int, str], list[tuple[Shortage, int]]] = {}
    for group in groups:
        for shortage in shortages_of(group):
            key = (shortage.claim, shortage.request)
            found.setdefault(key, []).append((shortage, group.number))
    return found


def closest(groups: Iterable[Group]) -> Shortage | None:
    """The first request at fault, as seen by the node that lacks least."""
    best = None
    for group in groups:
        lacking = decisive(shortages_of(group))
        if lacking:
            missing = lacking[0].wanted - lacking[0].free
            if best is None or missing < best[0]:
                best = (missing, lacking[0])
    return None if best is None else best[1]


def _used_up(groups: Sequence[Group], shortage: Shortage) -> Reason:
    """What is in use. A device that is not held, but is blocked by what its neighbours hold, says most."""
    lost = totals(groups, shortage).lost
    if lost.get(Test.COUNTERS):
        return Reason.COUNTERS_IN_USE
    return USED[max(USED, key=lambda test: lost.get(test, 0))]


def wants_all(demand: Demand, shortage: Shortage) -> bool:
    """Whether a request is for all devices of a node, however many there are."""
    if shortage.claim >= len(demand.open):
        return False  # extended resources are numbers
    for request in demand.open[shortage.claim].spec.devices.requests:
        for name, spec in request.alternatives():
            if name == shortage.request:
                return spec.allocation_mode == "All"
    return False


class Totals(Struct, frozen=True):
    """One request over several nodes."""

    matching: int
    free: int
    most_free: int
    """On one node."""
    lost: dict[Test, int]


def totals(groups: Iterable[Group], shortage: Shortage) -> Totals:
    matching = free = most = 0
    lost: dict[Test, int] = {}
    for each, number in _by_request(groups).get((shortage.claim, shortage.request), ()):
        matching += each.matching * number
        free += each.free * number
        most = max(most, each.free)
        for test, devices in each.lost:
            lost[test] = lost.get(test, 0) + devices * number
    return Totals(matching, free, most, lost)


# What is short on an empty node.


def lacking_requests(verdict: DevicesVerdict) -> frozenset[RequestKey]:
    """The requests for which a node does not have enough: no alternative of them is served."""
    served = {_parent(each) for each in verdict.shortages if each.lacks is None}
    return frozenset(map(_parent, verdict.shortages)) - served


def lack_ever(
    verdict: DevicesVerdict, features: Features, everywhere: frozenset[RequestKey] = frozenset()
) -> DeviceLack:
    """What is wrong with a node that does not serve the claims even with nothing in use and nothing tainted.

    `everywhere` are requests that are served nowhere: if there are any, they are what is wrong.
    """
    if not verdict.shortages and verdict.flaw is not None:
        return DeviceLack(DEFECTS[verdict.flaw.defect], _of_flaw(verdict.flaw))
    lacking = decisive(verdict.shortages)
    if not lacking:
        return DeviceLack(
            Reason.REQUESTS_CONFLICT, verdict.shortages[0] if verdict.shortages else None
        )
    together = [s for s in lacking if s.lacks is Test.COMBINATION]
    if len(together) > 1:
        return DeviceLack(Reason.REQUESTS_CONFLICT, together[0])
    lacking = [s for s in lacking if _parent(s) in everywhere] or lacking
    # For a request with alternatives, the closest one counts.
    name = _parent(lacking[0])
    same = [s for s in lacking if _parent(s) == name]
    return max((DeviceLack(_lack_ever(s, features), s) for s in same), key=lambda lack: lack.hope)


def _of_flaw(flaw: Flaw) -> Shortage | None:
    if flaw.claim is None:
        return None
    return Shortage(flaw.claim, flaw.request, 0, 0, 0, (), None, flaw.why)


def _parent(shortage: Shortage) -> RequestKey:
    return shortage.claim, shortage.request.partition("/")[0]


def _lack_ever(shortage: Shortage, features: Features) -> Reason:
    lost = {test: number for test, number in shortage.lost if number}
    match shortage.lacks:
        case Test.NO_DEVICES:
            return Reason.NO_DEVICES
        case Test.TOO_MANY:
            return Reason.CLAIM_TOO_LARGE
        case Test.CONSTRAINT:
            return Reason.CONSTRAINT_UNMEETABLE
        case _ if not shortage.matching:
            return Reason.NO_SUCH_DEVICE
    partitioned = Test.COUNTERS in lost and not features.partitionable_devices
    if Test.BINDING_CONDITIONS in lost or partitioned:
        return Reason.FEATURE_OFF
    if Test.CAPACITY in lost and shortage.matching >= shortage.wanted:
        return Reason.CAPACITY_TOO_HIGH
    if Test.NO_ATTRIBUTE in lost and shortage.matching >= shortage.wanted:
        return Reason.CONSTRAINT_UNMEETABLE
    return Reason.COUNT_TOO_HIGH
