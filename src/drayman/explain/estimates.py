"""When something that waits will start, as far as that can be estimated, and whether it only waits because others come first.

The same as the scheduler does (`placement.reservations`), for the cluster as it was read: what waits is gone through in the order in which
the scheduler does, and the first few that do not fit get the moment at which they will. A reader sees only pods that still exist, so the
scheduler may know of more earlier runs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice
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
from drayman.placement.gangs.importance import importance_of_waiting
from drayman.placement.joint.gangs import GangDecider, NoRoom, Starting
from drayman.placement.joint.seating import Seat, Seats, taken_as_it_is
from drayman.placement.pauses import completed
from drayman.placement.reservations.making import (
    MOST_RESERVATIONS,
    Beside,
    Unit,
    binding,
    end_of,
    may_reserve,
    reserve,
    seats_beside,
)
from drayman.placement.reservations.reservation import Reservation
from drayman.placement.runs.book import Departure
from drayman.placement.runs.declaring import RUNTIME
from drayman.placement.world import World
from drayman.reasons.reason import Headline, Outlook
from drayman.reasons.reserved import estimated_start, room_reserved
from drayman.reasons.waiting import held_by_itself
from drayman.reasons.wording import and_list, counted

MOST_BEFORE: Final = 64
"""How many units are looked at until as many have a reservation. Where those after them would have one, an estimate is too early."""
MOST_NAMED: Final = 8


class Prospect(Struct, frozen=True):
    """What there is to say about the start of something that waits."""

    held: Headline | None = None
    """If it fits, but the room is reserved for others."""
    estimate: Estimate | None = None
    """If it does not fit."""

    def start(self, why: Headline) -> Estimate | None:
        """The estimate for something that waits for this reason. What never fits is not waiting for anybody's end."""
        return None if why.reason.kind is Outlook.NEVER else self.estimate


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
        self._units: dict[str, _Waiting] = {}  # by key, in the order of the scheduler
        self._standing: list[Reservation] = []

    def of(self, pod: Pod) -> Prospect:
        """What there is to say about a pod, or the gang that it is in. Nothing where no run time is known at all."""
        if not self._state.runs.tells_anything:
            return _NOTHING
        if not self._units:
            self._units = {each.unit.key: each for each in self._in_order()}
            self._standing = self._reserved()
        waiting = self._units.get(self._key(pod))
        return _NOTHING if waiting is None else self._prospect(waiting)

    def _prospect(self, waiting: _Waiting) -> Prospect:
        unit, now = waiting.unit, self._world.now
        found = self._decide(waiting)
        if isinstance(found, tuple):
            if waiting.is_promised_room:
                return _NOTHING
            bound = binding(self._state.runs, self._standing, unit, now)
            if not bound or self._beside(waiting, found, bound) is not None:
                return _NOTHING
            noun = "pod" if waiting.gang is None else "gang"
            end = end_of(self._state.runs, unit.pods, now)
            return Prospect(held=room_reserved(bound[0], end, noun))
        if found is None:
            return _NOTHING
        departures = self._state.runs.departures(now)
        reservation = self._reserve(waiting, self._standing, departures)
        first = [each for each in self._standing if each.rank < unit.rank]
        return Prospect(estimate=_estimate(self._world, reservation, departures, first))

    def _reserved(self) -> list[Reservation]:
        """What is reserved for those that come first. What fits is about to be placed, and is left out as in any explanation."""
        standing: list[Reservation] = []
        refused: set[Hashable] = set()
        departures = self._state.runs.departures(self._world.now)
        for each in islice(self._units.values(), MOST_BEFORE):
            if each.likeness in refused or each.is_promised_room:
                continue
            outcome = self._decide(each)
            if outcome is None or isinstance(outcome, tuple):
                continue
            refused.add(each.likeness)
            reservation = (
                self._reserve(each, standing, departures) if may_reserve(outcome) else None
            )
            standing += [] if reservation is None else [reservation]
            if len(standing) == MOST_RESERVATIONS:
                break
        return standing

    def _reserve(
        self, waiting: _Waiting, standing: list[Reservation], departures: list[Departure]
    ) -> Reservation | None:
        others = [each for each in standing if each.rank < waiting.unit.rank]
        search = reserve(
            self._state, waiting.unit, others, departures, lambda: self._seats(waiting)
        )
        return completed(search)

    def _beside(
        self, waiting: _Waiting, seats: Seats, reservations: list[Reservation]
    ) -> Seats | None:
        ways = Beside(
            lambda: self._seats(waiting),
            lambda seat: self._round.suppose(seat.demand, seat.found),
            lambda each: self._seats(self._units[each.key]) is not None,
        )
        return seats_beside(self._state, reservations, seats, ways)

    def _seats(self, waiting: _Waiting) -> Seats | None:
        found = self._decide(waiting)
        return found if isinstance(found, tuple) else None

    def _decide(self, waiting: _Waiting) -> Seats | NoNode | NoRoom | None:
        """What a unit gets in the state as it is, or that it has no room; None if it waits for something else."""
        if waiting.gang is None:
            outcome = self._round.consider(waiting.unit.pods[0])
            if isinstance(outcome, Fitting):
                return (Seat(outcome.demand, taken_as_it_is(outcome.found)),)
            return outcome if isinstance(outcome, NoNode) else None
        decided = self._gangs.decide_about(waiting.gang, waiting.unit.pods)
        if isinstance(decided, Starting):
            return decided.seats
        return decided if isinstance(decided, NoRoom) else None

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
            gang = self._state.gangs.unit_of(members[0])
            stated = self._state.gangs.stated_priority(gang)
            metadata = members[0].metadata
            title = str(gang) if gang is not None else f"pod {metadata.namespace}/{metadata.name}"
            rank = (-importance_of_waiting(stated, members), number)
            unit = Unit(key, title, rank, tuple(members))
            found.append(_Waiting(unit, gang))
        return sorted(found, key=lambda each: each.unit.rank)

    def _key(self, pod: Pod) -> str:
        gang = self._state.gangs.unit_of(pod)
        return pod.metadata.uid if gang is None else f"{gang} {gang.uid}"


class _Waiting(Struct, frozen=True, eq=False):
    """A unit that waits."""

    unit: Unit
    gang: GangKey | None

    @property
    def is_promised_room(self) -> bool:
        """Whether others make way for it: what it gets is not for those before it to have, and it needs no other room."""
        return any(pod.status.nominated_node_name for pod in self.unit.pods)

    @property
    def likeness(self) -> Hashable:
        """Equal for pods of one owner: where one of them finds no room, neither do the others."""
        pod = self.unit.pods[0]
        owners = tuple(each.uid for each in pod.metadata.owner_references)
        return (owners, priority_of(pod)) if owners and self.gang is None else self.unit.key


def _estimate(
    world: World,
    reservation: Reservation | None,
    departures: list[Departure],
    before: list[Reservation],
) -> Estimate:
    unknown = len(world.state.runs.running) - len(departures)
    if reservation is None:
        endless = [each.title for each in before if each.until is None]
        why = "it does not fit after the end of all pods on nodes either"
        if unknown:
            runs = "runs" if unknown == 1 else "run"
            why = f"it is not known how long {counted(unknown, 'pod')} on nodes {runs} ({RUNTIME} says it)"
        elif endless:
            why = (
                f"it is not known how long {and_list(endless)} will run, for which room is reserved"
                f" ({RUNTIME} says it)"
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
