"""What waits for room: pods on their own, and gangs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from drayman.allocator import Policy
from drayman.api.core import Pod
from drayman.api.pods import containers_of, is_active
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.outcomes import Fitting, NoNode, NoPlacement
from drayman.placement.demand import Demand
from drayman.placement.domains.copies import CopyCounts
from drayman.placement.domains.following import Domains
from drayman.placement.gangs.book import GangBook
from drayman.placement.gangs.gang import GangKey
from drayman.placement.gangs.importance import importance_of_waiting
from drayman.placement.joint.gangs import Flawed, GangDecider, Incomplete, NoRoom, Starting
from drayman.placement.joint.seating import Seat, Seats, taken_as_it_is
from drayman.placement.nodes import NodeState
from drayman.placement.reservations import making
from drayman.placement.reservations.foreseen import Foreseen
from drayman.placement.reservations.making import end_of
from drayman.placement.reservations.reservation import Reservation, count_in
from drayman.placement.world import World
from drayman.quota.fitting.reservation import ReservedPlace
from drayman.quota.fitting.rooms import Rooms
from drayman.reasons.gangs import GangReasons
from drayman.reasons.headline import Headlines
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.reserved import room_reserved
from drayman.reasons.waiting import before_nodes, held_by_itself

_LAST: Final = (sys.maxsize, 0)
_MOST_HOMES: Final = 16
"""Places in which it is tried to make room for a gang."""


class Unit(Struct, frozen=True, eq=False):
    """Pods that wait, and that are decided about together."""

    pods: tuple[Pod, ...]
    gang: GangKey | None = None

    @property
    def name(self) -> str:
        if self.gang is not None:
            return str(self.gang)
        metadata = self.pods[0].metadata
        return f"pod {metadata.namespace}/{metadata.name}"

    @property
    def first(self) -> Pod:
        return self.pods[0]


class Refused(Struct, frozen=True, eq=False):
    """A unit for which there is no room."""

    demands: tuple[Demand, ...]
    """Of the pods that have to start together."""
    homes: tuple[tuple[NodeState, ...], ...]
    """The nodes of each place in which they could be."""
    gave_up: bool
    outcome: NoNode | NoRoom


class Otherwise(Struct, frozen=True, eq=False):
    """A unit that waits for something other than room, so that no move helps it."""

    outcome: NoPlacement | Flawed | Incomplete | None


class Deciding:
    """The decisions about pods and gangs of a world, and about those that come in place of others."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._foreseen = Foreseen(world, lambda pod: held_by_itself(pod) is None)
        self._reserved: list[Reservation] = []
        self._places: dict[str, ReservedPlace] = {}  # of waiting pods, by uid
        self.state = world.state
        self.round = Decider(world.state).round(world.now)
        self._gangs = GangDecider(
            self.round, Domains(self.state), CopyCounts(self.state), Policy.BEST
        )
        self._headlines = Headlines(self.state)
        self._reasons = GangReasons(self.state)

    def count_reserved(self) -> None:
        """In a trial: the places of admitted workloads are taken, each for its own pod."""
        rooms = Rooms(self.state)
        for workload in self._world.objects.queued_workloads:
            rooms.follow(workload)
        for pod in self._world.objects.pods:
            place = rooms.see(pod)
            if place is not None and not pod.spec.node_name:
                self._places[pod.metadata.uid] = place

    def reservations(self) -> dict[str, Reservation]:
        """What the scheduler reserves for units that wait, by key."""
        return {each.key: each for each in self._foreseen.standing}

    def key_of(self, unit: Unit) -> str:
        return self._foreseen.key_of(unit.first)

    def reserve(self, reservations: Iterable[Reservation]) -> None:
        """From now on, units that come later do not get what is reserved, unless they end before."""
        self._reserved += reservations

    def reserved_for_others(self, unit: Unit) -> Headline | None:
        """Why a unit waits that would fit if nothing were reserved; None if it would not."""
        bound = self._binding(unit)
        if not bound or not isinstance(self._beside(unit, ()), tuple):
            return None
        noun = "pod" if unit.gang is None else "gang"
        return room_reserved(bound[0], end_of(self.state.runs, unit.pods, self._world.now), noun)

    def _binding(self, unit: Unit) -> list[Reservation]:
        if not self._reserved:
            return []
        key = self.key_of(unit)
        known = self._foreseen.units.get(key)
        rank = _LAST if known is None else known.unit.rank
        wanted = making.Unit(key, unit.name, rank, unit.pods)
        return making.binding(self.state.runs, self._reserved, wanted, self._world.now)

    def decide(self, unit: Unit) -> Seats | Refused | Otherwise:
        """What becomes of a unit, in the state as it is, beside what is reserved for others."""
        return self._beside(unit, self._binding(unit))

    def _beside(
        self, unit: Unit, reservations: Sequence[Reservation]
    ) -> Seats | Refused | Otherwise:
        own = [each for pod in unit.pods if (each := self._places.get(pod.metadata.uid))]
        if not own and not reservations:
            return self._decided(unit)
        with self.state.trial():
            for place in own:
                self._give_up(place)
            count_in(self.state, reservations)
            return self._decided(unit)

    def _give_up(self, place: ReservedPlace) -> None:
        if self.state.counts(place.uid):
            self.state.give_up_room(place.uid, len(place.devices))

    def _decided(self, unit: Unit) -> Seats | Refused | Otherwise:
        if held_by_itself(unit.first) is not None:
            return Otherwise(None)
        if unit.gang is None:
            return self._about_pod(unit.first)
        outcome = self._gangs.decide_about(unit.gang, unit.pods)
        if isinstance(outcome, Starting):
            return outcome.seats
        if not isinstance(outcome, NoRoom):
            return Otherwise(outcome)
        demands = tuple(each.demand for each in outcome.fewest.members)
        homes = self._gangs.homes(outcome)[:_MOST_HOMES]
        return Refused(demands[: max(outcome.needed, 1)], homes, outcome.gave_up, outcome)

    def seats(self, pods: Sequence[Pod], gang: GangKey | None) -> Seats | None:
        """Seats for all of these pods, which wait; None if there are none."""
        found = self.decide(Unit(tuple(pods), gang))
        return found if isinstance(found, tuple) and len(found) == len(pods) else None

    def take(self, seats: Seats) -> None:
        """In a trial: the pods are there."""
        for seat in seats:
            self.give_up_places((seat.demand,))
            self.round.suppose(seat.demand, seat.found)

    def give_up_places(self, demands: Iterable[Demand]) -> None:
        """In a trial: nothing is kept any more for the pods that ask for this."""
        for demand in demands:
            place = self._places.get(demand.pod.metadata.uid)
            if place is not None:
                self._give_up(place)

    def why(self, outcome: NoPlacement | NoRoom | Flawed | Incomplete | None, pod: Pod) -> Headline:
        """Why a pod, or its gang, waits about which this was decided."""
        match outcome:
            case None:
                text = "There is nothing to decide about it."
                return held_by_itself(pod) or Headline.of(Reason.NO_PODS, text)
            case NoNode(demand, not_found):
                return self._headlines.of(demand, not_found)
            case NoRoom() | Flawed() | Incomplete():
                return self._reasons.of(self.round, self._gangs, outcome).headline
            case _:
                found = before_nodes(self._world, outcome, pod)
                return found or Headline.of(Reason.SEARCH_LIMIT, "It could not be decided about.")

    def _about_pod(self, pod: Pod) -> Seats | Refused | Otherwise:
        outcome = self.round.consider(pod)
        match outcome:
            case Fitting(demand, found):
                return (Seat(demand, taken_as_it_is(found)),)
            case NoNode(demand, not_found):
                everywhere = tuple(self.state.nodes.values())
                return Refused((demand,), (everywhere,), not_found.retry, outcome)
            case _:
                return Otherwise(outcome)


def waiting_units(world: World, pods: Iterable[Pod] | None = None) -> list[Unit]:
    """What waits in a cluster, the most important first, then the oldest; or only what these pods are in.

    Unless pods are given, only those count that ask for devices.
    """
    gangs = world.state.gangs
    waiting = [p for p in world.objects.pods if _waits(p)]
    of_gangs: dict[GangKey, list[Pod]] = {}
    for pod in waiting:
        key = gangs.unit_of(pod)
        if key is not None:
            of_gangs.setdefault(key, []).append(pod)
    wanted = [p for p in waiting if _asks_for_devices(p)] if pods is None else pods
    found: dict[object, Unit] = {}
    for pod in wanted:
        key = gangs.unit_of(pod)
        if key is None:
            found[pod.metadata.uid] = Unit((pod,))
        elif key not in found:
            members = of_gangs.get(key) or [pod]
            found[key] = Unit(tuple(sorted(members, key=_age)), key)
    return sorted(found.values(), key=lambda u: (-importance_of(gangs, u), _age(u.first)))


def importance_of(gangs: GangBook, unit: Unit) -> int:
    return importance_of_waiting(gangs.stated_priority(unit.gang), unit.pods)


def _waits(pod: Pod) -> bool:
    return not pod.spec.node_name and is_active(pod) and held_by_itself(pod) is None


def _asks_for_devices(pod: Pod) -> bool:
    """By a claim, or as an extended resource."""
    if pod.spec.resource_claims:
        return True
    return any("/" in name for c in containers_of(pod) for name in c.resources.requests)


def _age(pod: Pod) -> tuple[str, str, str]:
    metadata = pod.metadata
    return metadata.creation_timestamp or "", metadata.namespace, metadata.name
