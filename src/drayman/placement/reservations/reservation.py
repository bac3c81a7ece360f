"""What is reserved for a unit that waits, and how that counts for others.

A reservation is for a moment to come: until then the room may be used, and much of it is in use. So it counts only in the decisions of
others that may still be there at that moment, on a trial (`counted`). What they find then is free now and not needed later:

- the devices that the unit will get are out of reach;
- of each node, so much counts as used in addition as the unit will need there beyond what the pods that end before leave free.

Sums are enough as long as nobody cares about particular other pods. Where somebody does, the caller has to check the reservation again
with the others in place (`Reservation.is_delicate`).
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.meta import ObjectMeta
from drayman.api.resource import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from drayman.inventory.identity import PoolId
from drayman.placement.demand import Demand
from drayman.placement.fit import PodNeeds
from drayman.placement.fit.requests import CPU, MEMORY, STORAGE
from drayman.placement.joint.seating import Seat
from drayman.placement.runs.book import Departure
from drayman.placement.state import ClusterState

Rank = tuple[int, int]
"""Of a unit among those that wait: the lowest comes first."""
Amounts = Counter[str]
_PODS: Final = "<pods>"


class Reserved(Struct, frozen=True, eq=False):
    """A place for one pod of a unit."""

    node: str
    needs: PodNeeds
    """Including what its devices take of the node."""
    devices: tuple[AllocationResult, ...]


class Reservation(Struct, frozen=True, eq=False):
    """Room for a unit, from some moment on."""

    key: str
    """Of the unit."""
    title: str
    """`pod group ml/train`, `pod ml/solo`."""
    rank: Rank
    at: float
    places: tuple[Reserved, ...]
    gone: tuple[Departure, ...]
    """The pods that have to end first, and others that end before then, in the order of their ends."""
    is_delicate: bool
    """Whether it depends on more than amounts and devices: on other pods, ports or volumes."""
    leaving: tuple[Departure, ...] = ()
    """When its own pods will have ended, those of which it is known."""

    @property
    def until(self) -> float | None:
        """When all of its room will be free again; None if that is not known."""
        if len(self.leaving) < len(self.places):
            return None
        return max(each.ending.at for each in self.leaving)

    def is_there(self, at: float) -> bool:
        """Whether its unit has its room at some time."""
        until = self.until
        return self.at <= at and (until is None or until > at)

    @property
    def nodes(self) -> frozenset[str]:
        return frozenset(place.node for place in self.places)

    @property
    def pools(self) -> frozenset[PoolId]:
        return frozenset(
            PoolId(result.driver, result.pool)
            for place in self.places
            for allocation in place.devices
            for result in allocation.devices.results
        )

    def with_departure(self, departure: Departure) -> Reservation:
        """The same with another pod that will have ended before."""
        place = bisect(self.gone, departure.order, key=lambda each: each.order)
        return replace(self, gone=(*self.gone[:place], departure, *self.gone[place:]))

    @property
    def rests_on(self) -> tuple[Departure, ...]:
        """The pods whose places it takes: those that end on its nodes; where there are none, all that end before."""
        nodes = self.nodes
        near = tuple(each for each in self.gone if each.node in nodes)
        return near or self.gone


def reserved_seats(state: ClusterState, seats: Iterable[Seat]) -> tuple[Reserved, ...]:
    """What is to be reserved for a unit that would get these seats."""
    found: list[Reserved] = []
    for seat in seats:
        plan = seat.found.plan
        devices = () if plan is None else tuple(item.allocation for item in plan.claims)
        needs = seat.demand.needs.plus(state.mapped_devices.requests_of(devices))
        found.append(Reserved(seat.found.node.facts.name, needs, devices))
    return tuple(found)


def is_delicate(demand: Demand) -> bool:
    """Whether a pod depends on more than amounts and devices."""
    shape = demand.needs.shape
    return demand.shape.meets_others or bool(shape.ports or shape.volumes or demand.held)


def are_touched(reservations: Iterable[Reservation], seats: Iterable[Seat]) -> bool:
    """Whether seats might be on reserved room. If they are not, others have them without further ado."""
    found = tuple(seats)
    nodes = {seat.found.node.facts.name for seat in found}
    pools = {
        PoolId(result.driver, result.pool)
        for seat in found
        if seat.found.plan is not None
        for item in seat.found.plan.claims
        for result in item.allocation.devices.results
    }
    delicate = any(is_delicate(seat.demand) for seat in found)
    return any(
        delicate or each.is_delicate or each.nodes & nodes or each.pools & pools
        for each in reservations
    )


def count_in(state: ClusterState, reservations: Sequence[Reservation]) -> None:
    """In a trial: count what is reserved as out of reach for a unit that may be there at all of these moments."""
    devices: dict[str, dict[tuple[str, ...], DeviceRequestAllocationResult]] = {}
    for reservation in reservations:
        for place in reservation.places:
            results = (result for each in place.devices for result in each.devices.results)
            here = devices.setdefault(place.node, {})
            here.update({(r.driver, r.pool, r.device, r.share_id or ""): r for r in results})
    for node, amounts in _needed(state, reservations).items():
        for needs in _fillers(node, amounts):
            state.keep_room(needs, node, ())
    for node, held in devices.items():
        if held:
            merged = DeviceAllocationResult(results=tuple(held.values()))
            state.hold(f"<reserved> {node}", AllocationResult(devices=merged))


def _needed(state: ClusterState, reservations: Sequence[Reservation]) -> Mapping[str, Amounts]:
    """What has to be left of each node, beyond what is used now, so that nothing is short at any of the moments."""
    needed: dict[str, Amounts] = {}
    for moment in reservations:
        there = [each for each in reservations if each.is_there(moment.at)]
        for node, amounts in _lacking(state, there, moment.gone).items():
            # The union of counters takes the larger amounts.
            needed[node] = needed.get(node, Counter()) | amounts
    return needed


def _lacking(
    state: ClusterState, there: Sequence[Reservation], gone: Sequence[Departure]
) -> Mapping[str, Amounts]:
    """What reserved units need of each node beyond what those leave that have ended."""
    taken: dict[str, Amounts] = {}
    for reservation in there:
        for place in reservation.places:
            taken.setdefault(place.node, Counter()).update(_amounts(place.needs))
    left: dict[str, Amounts] = {node: Counter() for node in taken}
    for departure in gone:
        needs = state.needs_of(departure.pod.metadata.uid) if departure.node in left else None
        if needs is not None:
            left[departure.node].update(_amounts(needs))
    # Subtraction of counters drops what is not positive.
    return {node: amounts - left[node] for node, amounts in taken.items()}


def _amounts(needs: PodNeeds) -> Amounts:
    shape = needs.shape
    amounts = Counter(dict(shape.extended))
    amounts.update({CPU: shape.cpu, MEMORY: shape.memory, STORAGE: shape.storage, _PODS: 1})
    return amounts


def _fillers(node: str, amounts: Amounts) -> Iterator[PodNeeds]:
    """Pods that are not there, and take these amounts."""
    rest = {name: amount for name, amount in amounts.items() if name != _PODS}
    for number in range(max(amounts[_PODS], bool(rest))):
        name = f"<reserved> {node} {number}"
        nobody = PodNeeds.of(Pod(metadata=ObjectMeta(uid=name, name=name)))
        yield nobody if number else nobody.plus(rest)
