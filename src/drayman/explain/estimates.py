"""When something that waits will start, as far as that can be estimated, and whether it only waits because others come first.

The same as the scheduler does (`placement.reservations`), for the cluster as it was read: what waits is gone through in the order in which
the scheduler does, what fits takes its place on a trial, and the first few that do not fit get the moment at which they will. A reader sees
only pods that still exist, so the scheduler may know of more earlier runs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from msgspec import Struct

from drayman.allocator import Policy
from drayman.api.core import Pod
from drayman.api.pods import is_leaving, priority_of
from drayman.api.times import timestamp_at
from drayman.explain.answer import AwaitedEnd, Estimate
from drayman.placement.decision.deciding import Decider
from drayman.placement.decision.outcomes import Fitting, NoNode
from drayman.placement.domains.copies import CopyCounts
from drayman.placement.domains.following import Domains
from drayman.placement.gangs.gang import GangKey
from drayman.placement.joint.gangs import GangDecider, NoRoom, Starting
from drayman.placement.joint.seating import Seat, Seats, taken_as_it_is
from drayman.placement.reservations.making import (
    Beside,
    Unit,
    binding,
    end_of,
    reserve,
    seats_beside,
)
from drayman.placement.reservations.reservation import Reservation
from drayman.placement.runs.book import Departure
from drayman.placement.victims import completed
from drayman.placement.world import World
from drayman.reasons.reason import Headline
from drayman.reasons.reserved import estimated_start, room_reserved
from drayman.reasons.waiting import held_by_itself
from drayman.reasons.wording import counted

MOST_RESERVATIONS: Final = 4
MOST_BEFORE: Final = 64
"""How many units that come first are looked at. Others are not taken into account, and the estimate is too early then."""
MOST_NAMED: Final = 8


class Prospect(Struct, frozen=True):
    """What there is to say about the start of something that waits."""

    held: Headline | None = None
    """If it fits, but the room is reserved for others."""
    estimate: Estimate | None = None
    """If it does not fit."""


_NOTHING: Final = Prospect()


class Prospects:
    """The prospects of what waits in one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._state = world.state
        self._round = Decider(world.state).round(world.now)
        self._gangs = GangDecider(
            self._round, Domains(world.state), CopyCounts(world.state), Policy.BEST
        )
        self._units: dict[str, _Waiting] | None = None

    def of(self, pod: Pod) -> Prospect:
        """What there is to say about a pod, or the gang that it is in. Nothing where no run time is known at all."""
        if not self._state.runs.tells_anything:
            return _NOTHING
        if self._units is None:
            self._units = {each.unit.key: each for each in self._in_order()}
        waiting = self._units.get(self._key(pod))
        if waiting is None:
            return _NOTHING
        with self._state.trial():
            return self._prospect(waiting, self._reserved_before(waiting))

    def _prospect(self, waiting: _Waiting, standing: list[Reservation]) -> Prospect:
        unit, now = waiting.unit, self._world.now
        found = self._seats(waiting)
        if isinstance(found, tuple):
            bound = binding(self._state.runs, standing, unit, now)
            if not bound or self._beside(waiting, found, bound) is not None:
                return _NOTHING
            noun = "pod" if waiting.gang is None else "gang"
            end = end_of(self._state.runs, unit.pods, now)
            return Prospect(held=room_reserved(bound[0], end, noun))
        if not found:
            return _NOTHING
        departures = self._state.runs.departures(now)
        reservation = self._reserve(waiting, standing, departures)
        return Prospect(estimate=_estimate(self._world, reservation, departures))

    def _reserved_before(self, waiting: _Waiting) -> list[Reservation]:
        """What is reserved for those that come first. Those of them that fit take their places."""
        standing: list[Reservation] = []
        refused: set[Hashable] = set()
        assert self._units is not None
        before = [each for each in self._units.values() if each.unit.rank < waiting.unit.rank]
        for each in before[:MOST_BEFORE]:
            if each.likeness in refused:
                continue
            seats = self._seats(each)
            if isinstance(seats, tuple):
                bound = binding(self._state.runs, standing, each.unit, self._world.now)
                beside = self._beside(each, seats, bound) if bound else seats
                for seat in beside or ():
                    self._round.suppose(seat.demand, seat.found)
            elif seats and len(standing) < MOST_RESERVATIONS:
                refused.add(each.likeness)
                departures = self._state.runs.departures(self._world.now)
                reservation = self._reserve(each, standing, departures)
                standing += [] if reservation is None else [reservation]
        return standing

    def _reserve(
        self, waiting: _Waiting, standing: list[Reservation], departures: list[Departure]
    ) -> Reservation | None:
        def seats() -> Seats | None:
            found = self._seats(waiting)
            return found if isinstance(found, tuple) else None

        return completed(reserve(self._state, waiting.unit, standing, departures, seats))

    def _beside(
        self, waiting: _Waiting, seats: Seats, reservations: list[Reservation]
    ) -> Seats | None:
        assert self._units is not None
        units = self._units

        def again() -> Seats | None:
            found = self._seats(waiting)
            return found if isinstance(found, tuple) else None

        ways = Beside(
            again,
            lambda seat: self._round.suppose(seat.demand, seat.found),
            lambda each: isinstance(self._seats(units[each.key]), tuple),
        )
        return seats_beside(self._state, reservations, seats, ways)

    def _seats(self, waiting: _Waiting) -> Seats | bool:
        """What a unit gets in the state as it is; else whether it waits for room that may become free."""
        if waiting.gang is None:
            outcome = self._round.consider(waiting.unit.pods[0])
            if isinstance(outcome, Fitting):
                return (Seat(outcome.demand, taken_as_it_is(outcome.found)),)
            return isinstance(outcome, NoNode) and not outcome.not_found.retry
        decided = self._gangs.decide_about(waiting.gang, waiting.unit.pods)
        if isinstance(decided, Starting):
            return decided.seats
        return isinstance(decided, NoRoom) and not (decided.gave_up or decided.is_joining)

    def _in_order(self) -> Iterable[_Waiting]:
        """What waits for the scheduler, in its order: priority, then age."""
        pods = [
            pod
            for pod in self._world.objects.pods
            if not pod.spec.node_name and not is_leaving(pod) and held_by_itself(pod) is None
        ]
        pods.sort(key=lambda p: (p.metadata.creation_timestamp or "", p.metadata.name))
        together: dict[str, list[Pod]] = {}
        for pod in pods:
            together.setdefault(self._key(pod), []).append(pod)
        found = []
        for number, (key, members) in enumerate(together.items()):
            gang = self._gang_of(members[0])
            metadata = members[0].metadata
            title = str(gang) if gang is not None else f"pod {metadata.namespace}/{metadata.name}"
            unit = Unit(key, title, (-priority_of(members[0]), number), tuple(members))
            found.append(_Waiting(unit, gang))
        return sorted(found, key=lambda each: each.unit.rank)

    def _gang_of(self, pod: Pod) -> GangKey | None:
        gangs = self._state.gangs
        key = gangs.key_of(pod)
        return None if key is None or gangs.gang(key) is None else key

    def _key(self, pod: Pod) -> str:
        gang = self._gang_of(pod)
        return pod.metadata.uid if gang is None else f"{gang} {gang.uid}"


class _Waiting(Struct, frozen=True, eq=False):
    """A unit that waits."""

    unit: Unit
    gang: GangKey | None

    @property
    def likeness(self) -> Hashable:
        """Equal for pods of one owner: where one of them finds no room, neither do the others."""
        pod = self.unit.pods[0]
        owners = tuple(each.uid for each in pod.metadata.owner_references)
        return (owners, priority_of(pod)) if owners and self.gang is None else self.unit.key


def _estimate(
    world: World, reservation: Reservation | None, departures: list[Departure]
) -> Estimate:
    unknown = len(world.state.runs.running) - len(departures)
    if reservation is None:
        pods = counted(unknown, "pod")
        why = (
            f"it is not known how long {pods} on nodes run" + ("s" if unknown == 1 else "")
            if unknown
            else "it does not fit after the end of all pods on nodes either"
        )
        return Estimate(sentence=f"No start can be estimated: {why}.", unknown=unknown)
    rests_on = reservation.rests_on
    return Estimate(
        sentence=estimated_start(reservation, world.now),
        start=timestamp_at(reservation.at),
        seconds=max(round(reservation.at - world.now), 0),
        rests_on=tuple(_awaited(each) for each in rests_on[:MOST_NAMED]),
        more=max(len(rests_on) - MOST_NAMED, 0),
        unknown=unknown,
    )


def _awaited(departure: Departure) -> AwaitedEnd:
    metadata, ending = departure.pod.metadata, departure.ending
    return AwaitedEnd(
        pod=metadata.name,
        namespace=metadata.namespace,
        node=departure.node,
        ends=timestamp_at(ending.at),
        basis=ending.basis.value,
        runs=ending.runs,
        overdue=ending.is_overdue,
    )
