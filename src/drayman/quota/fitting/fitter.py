"""Finds room for all pods of a workload, and says when room that was found does not hold any more.

The pods are placed one after the other first, as they would be if they came like that; that is enough nearly always, and what is known of
nodes is kept between workloads. If one of them finds nothing, they are placed together by the joint search, because an earlier pod may have
taken what a later one needs. All of it happens in a trial: nothing is kept until the caller says so (`RoomBook.keep`).

Thousands of workloads that are alike may wait for room, and all of them are tried when some may have become free. So a refusal is
remembered, and given again as long as nothing has changed that leaves a mark (`placement/marks.py`).

Volumes that are yet to be provisioned are looked at, but not reserved.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from drayman.allocator import Policy
from drayman.api.resource import AllocationResult, ResourceClaim
from drayman.bounded import Bounded
from drayman.inventory.identity import DeviceId
from drayman.placement.claims import ClaimsNotReadyError
from drayman.placement.decision.deciding import Decider, Round
from drayman.placement.demand import Demand
from drayman.placement.fit import FITS, unschedulable_message
from drayman.placement.joint.arranging import Arranger
from drayman.placement.joint.seating import Seat, Seats, taken_as_it_is
from drayman.placement.marks import Position
from drayman.placement.placing import Found, NotFound
from drayman.placement.state import ClusterState
from drayman.quota.fitting.book import RoomBook
from drayman.quota.fitting.expecting import ExpectedPod, WorkloadPods, expected_pods
from drayman.quota.fitting.reservation import (
    ReservedPlace,
    RoomReservation,
    SharedClaim,
    place_of,
    with_places,
)


class Unfit(Struct, frozen=True):
    """There is no room for all pods of a workload."""

    message: str
    placed: int = 0
    """How many of its pods find room, one after the other."""
    gave_up: bool = False
    """Whether a search ended without an answer: it makes sense to try again, even if nothing changes."""


class Intact(Struct, frozen=True):
    """All room that is kept for a workload is still there."""


class Moved(Struct, frozen=True, eq=False):
    """Some of the room is not there any more, but other room is."""

    reservation: RoomReservation
    reason: str


_INTACT = Intact()


_MOST_REFUSALS: Final = 1_024
_MOST_ON_A_NODE: Final = 1_024
"""Pods: more than any kubelet takes."""


class _Moment(NamedTuple):
    """Equal as long as no node looks otherwise."""

    position: Position
    numbers: tuple[int, int, int]


class Fitter:
    """Answers for one cluster state. Changes nothing."""

    def __init__(self, state: ClusterState, book: RoomBook, policy: Policy = Policy.BEST) -> None:
        self._state = state
        self._book = book
        self._policy = policy
        self._decider = Decider(state, policy=policy)
        self._refused_before: Bounded[Hashable, tuple[_Moment, Unfit]] = Bounded(_MOST_REFUSALS)

    def fit(self, workload: WorkloadPods, now: float) -> RoomReservation | Unfit:
        """Room for all pods of a workload, beside everything that is used and kept."""
        if not self.is_imaginable(workload):
            return Unfit(f"there are not enough nodes for {workload.count:,} pods")
        pods = tuple(expected_pods(workload))
        round_, moment = self._decider.round(now), self._moment()
        likeness = self._likeness(pods, round_)
        before = None if likeness is None else self._refused_before.get(likeness)
        if before is not None and before[0] == moment:
            return before[1]
        found = self._places(pods, round_)
        if not isinstance(found, Unfit):
            return RoomReservation(workload, found)
        if likeness is not None and not found.gave_up:
            self._refused_before[likeness] = (moment, found)
        return found

    def is_imaginable(self, workload: WorkloadPods) -> bool:
        """Whether so many pods can be on the nodes at all. A number is quickly written."""
        return workload.count <= _MOST_ON_A_NODE * max(1, len(self._state.nodes))

    def refit(
        self, found: RoomReservation, moving: frozenset[str], now: float
    ) -> RoomReservation | Unfit:
        """Room with other places for some of the pods, by uid; the others have theirs, which has to be free."""
        with self._state.trial():
            expected = []
            for place in found.places:
                if place.uid in moving:
                    expected.append(ExpectedPod(place.pod_set, place.number, place.pod))
                else:
                    self._book.put_back(place)
            places = self._places(expected, self._decider.round(now))
        if isinstance(places, Unfit):
            return places
        return with_places(found, {place.uid: place for place in places})

    def places_for(
        self, pods: Sequence[ExpectedPod], now: float
    ) -> tuple[ReservedPlace, ...] | Unfit:
        """Room for some pods of a workload."""
        return self._places(pods, self._decider.round(now))

    def seats(self, workload: WorkloadPods, node: str | None, now: float) -> int:
        """How many of the pods of a workload find room on a node, or anywhere, as they would if they came one after the other."""
        round_, number = self._decider.round(now), 0
        refused: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
        with self._state.trial():
            for each in expected_pods(workload) if self.is_imaginable(workload) else ():
                # Pods of a set differ in their domain alone.
                kind = (each.pod_set, tuple(each.pod.spec.node_selector.items()))
                if kind in refused:
                    continue
                try:
                    demand = self._demand(each, round_)
                except ClaimsNotReadyError:
                    return 0
                found = self._found_on(demand, node, round_)
                if found is None:
                    refused.add(kind)
                else:
                    round_.suppose(demand, taken_as_it_is(found))
                    number += 1
        return number

    def _found_on(self, demand: Demand, node: str | None, round_: Round) -> Found | None:
        if node is None:
            found = round_.find(demand)
            return found if isinstance(found, Found) else None
        there = self._state.nodes.get(node)
        is_possible = there is not None and demand.impossible is None
        return round_.placer(demand).found_on(demand, there) if there and is_possible else None

    def is_about_nodes_alone(self, workload: WorkloadPods, now: float) -> bool:
        """Whether a place for a pod of a workload depends on its node and the devices there, and on nothing else."""
        if self._state.has_floating_devices:
            return False
        return self._likeness(tuple(expected_pods(workload)), self._decider.round(now)) is not None

    @property
    def moment(self) -> Hashable:
        """Equal as long as nothing has changed that a place may depend on."""
        return self._moment()

    def _moment(self) -> _Moment:
        marks = self._state.marks
        numbers = (marks.epoch, marks.floating_taken, marks.floating_freed)
        return _Moment(marks.position, numbers)

    def _likeness(self, pods: Sequence[ExpectedPod], round_: Round) -> Hashable:
        """Equal for workloads that get the same answer; None if that depends on more than nodes and their devices."""
        kinds: dict[tuple[str, Hashable], tuple[Hashable, list[int]]] = {}
        for each in pods:
            # Pods of a set differ in their domain alone.
            kind = (each.pod_set, tuple(each.pod.spec.node_selector.items()))
            if kind not in kinds:
                try:
                    demand = self._demand(each, round_)
                except ClaimsNotReadyError:
                    return None
                if demand.shape.meets_others or demand.needs.shape.volumes:
                    return None
                kinds[kind] = (demand.key, [])
            kinds[kind][1].append(each.number)
        return tuple((name, key, len(numbers)) for (name, _), (key, numbers) in kinds.items())

    def review(self, reservation: RoomReservation, now: float) -> Intact | Moved | Unfit:
        """Whether the room that is kept for a workload still holds. Pods that are bound do not count."""
        kept = [place for place in reservation.places if self._book.counts(place)]
        round_ = self._decider.round(now)
        lost: dict[str, str] = {}
        with self._state.trial():
            self._book.set_aside(reservation)
            for place in kept:
                reason = self._why_lost(place, round_)
                if reason:
                    lost[place.uid] = reason
                else:
                    self._book.put_back(place)
            if not lost:
                return _INTACT
            expected = [
                ExpectedPod(each.pod_set, each.number, each.pod)
                for each in kept
                if each.uid in lost
            ]
            found = self._places(expected, round_)
        reason = "; ".join(dict.fromkeys(lost.values()))
        if isinstance(found, Unfit):
            return Unfit(f"{reason}. {found.message}", found.placed, found.gave_up)
        return Moved(with_places(reservation, {place.uid: place for place in found}), reason)

    def _places(
        self, pods: Sequence[ExpectedPod], round_: Round
    ) -> tuple[ReservedPlace, ...] | Unfit:
        try:
            seats = self._one_after_the_other(pods, round_)
            if isinstance(seats, Unfit) and len(pods) > 1:
                seats = self._together(pods, round_, seats)
        except ClaimsNotReadyError as error:
            return Unfit(str(error))
        if isinstance(seats, Unfit):
            return seats
        by_uid = {seat.demand.needs.uid: seat for seat in seats}
        return self._reserved(pods, [by_uid[each.pod.metadata.uid] for each in pods])

    def _one_after_the_other(self, pods: Sequence[ExpectedPod], round_: Round) -> Seats | Unfit:
        seats: list[Seat] = []
        with self._state.trial():
            for each in pods:
                # A claim that several of them use has its devices after the first one.
                demand = self._demand(each, round_)
                found = round_.find(demand)
                if isinstance(found, NotFound):
                    return self._refused(pods, each, len(seats), found)
                seat = Seat(demand, taken_as_it_is(found))
                round_.suppose(seat.demand, seat.found)
                seats.append(seat)
        return tuple(seats)

    def _together(
        self, pods: Sequence[ExpectedPod], round_: Round, refused: Unfit
    ) -> Seats | Unfit:
        demands = [self._demand(each, round_) for each in pods]
        arranger = Arranger(round_, self._policy)
        found = arranger.arrange(demands, len(demands), tuple(self._state.nodes.values()))
        if found is None:
            return replace(refused, gave_up=refused.gave_up or arranger.gave_up)
        return found

    def _refused(
        self, pods: Sequence[ExpectedPod], each: ExpectedPod, placed: int, found: NotFound
    ) -> Unfit:
        words = unschedulable_message(len(self._state.nodes), found.verdicts.values())
        if len(pods) == 1:
            head = f"there is no room for the pod of pod set {each.pod_set!r}"
        else:
            head = f"there is room for {placed} of {len(pods)} pods, and then, for pod set {each.pod_set!r}"
        return Unfit(f"{head}: {words}", placed, found.retry)

    def _demand(self, each: ExpectedPod, round_: Round) -> Demand:
        """What a pod asks for. A claim on which other reservations count has its devices already. Raises ClaimsNotReadyError."""
        pod = each.pod
        if pod.spec.scheduling_group is not None and self._state.gangs.pod_group_of(pod) is None:
            # The group is made together with its pods, once the workload has started.
            pod = replace(pod, spec=replace(pod.spec, scheduling_group=None))
        claims = [self._as_it_will_be(claim) for claim in round_.claims(pod)]
        return round_.demand_with(pod, claims)

    def _as_it_will_be(self, claim: ResourceClaim) -> ResourceClaim:
        if claim.status.allocation is not None or not claim.metadata.uid:
            return claim
        allocation = self._book.allocation(claim)
        if allocation is None:
            return claim
        return replace(claim, status=replace(claim.status, allocation=allocation))

    def _reserved(
        self, pods: Sequence[ExpectedPod], seats: Sequence[Seat]
    ) -> tuple[ReservedPlace, ...]:
        places: list[ReservedPlace] = []
        shared: dict[str, AllocationResult] = {}
        for each, seat in zip(pods, seats, strict=True):
            own = self._own_devices(seat.found, shared)
            claims = []
            for claim in seat.demand.claims:
                allocation = shared.get(claim.metadata.uid) or self._book.allocation(claim)
                if claim.metadata.uid and allocation is not None:
                    claims.append(SharedClaim(uid=claim.metadata.uid, allocation=allocation))
            places.append(
                place_of(
                    each.pod_set,
                    each.number,
                    each.pod,
                    seat.found.node.facts.name,
                    own,
                    claims,
                    self._state.mapped_devices,
                )
            )
        return tuple(places)

    def _own_devices(
        self, found: Found, shared: dict[str, AllocationResult]
    ) -> list[AllocationResult]:
        """The devices of claims that are made for a pod. Those of claims that exist are noted as shared."""
        own = []
        for item in () if found.plan is None else found.plan.claims:
            if item.claim.metadata.uid:
                shared[item.claim.metadata.uid] = item.allocation
            else:
                own.append(item.allocation)
        return own

    def _why_lost(self, place: ReservedPlace, round_: Round) -> str:
        """What keeps a pod from the place that was kept for it; empty if nothing does. Its own room has to be free."""
        node = self._state.nodes.get(place.node)
        if node is None:
            return f"node {place.node} is gone"
        try:
            demand = self._demand(ExpectedPod(place.pod_set, place.number, place.pod), round_)
        except ClaimsNotReadyError as error:
            return str(error)
        verdict = demand.impossible or round_.placer(demand).node_verdict_on(demand, node)
        if verdict is not FITS:
            return f"node {place.node}: {', '.join(verdict.reasons)}"
        return self._lost_device(place)

    def _lost_device(self, place: ReservedPlace) -> str:
        """What is wrong with a device that was kept: it is gone, tainted, or somebody else has it."""
        own = {id(result) for each in place.devices for result in each.devices.results}
        results = [result for each in place.allocations for result in each.devices.results]
        view = self._state.view(self._state.nodes[place.node])
        for result in results:
            if result.admin_access:
                continue
            device = DeviceId.of(result)
            words = f"device {device.device} of pool {device.pool} on node {place.node}"
            if device not in view.ids_of(view.hardware.everything):
                return f"{words} is gone"
            if device not in view.ids_of(view.tolerated(result.tolerations)):
                return f"{words} is tainted"
            # Devices of a claim that others use as well are held by it, and shares by several.
            is_alone = id(result) in own and result.share_id is None
            if is_alone and self._state.ledger.holders_of(device):
                return f"{words} is in use"
        return ""
