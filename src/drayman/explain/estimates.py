"""When something that waits will start, as far as that can be estimated, and whether it only waits because others come first.

It rests on the reservations that the scheduler makes, worked out for the cluster as it was read (`placement.reservations.foreseen`).
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.times import timestamp_at
from drayman.explain.answer import AwaitedEnd, Estimate
from drayman.placement.nominations import Nominations
from drayman.placement.reservations.foreseen import Foreseen, Waiting
from drayman.placement.reservations.making import binding, end_of
from drayman.placement.reservations.reservation import Reservation
from drayman.placement.runs.book import Departure
from drayman.placement.runs.declaring import RUNTIME
from drayman.placement.world import World
from drayman.reasons.reason import Headline, Outlook
from drayman.reasons.reserved import estimated_start, room_reserved
from drayman.reasons.waiting import held_by_itself
from drayman.reasons.wording import and_list, counted

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

    def __init__(self, world: World, nominations: Nominations | None = None) -> None:
        """`nominations` is what is kept for pods that wait."""
        self._world = world
        self._state = world.state
        self._foreseen = Foreseen(world, lambda pod: held_by_itself(pod) is None, nominations)

    def of(self, pod: Pod) -> Prospect:
        """What there is to say about a pod, or the gang that it is in. Nothing where no run time is known at all."""
        if not self._state.runs.tells_anything:
            return _NOTHING
        waiting = self._foreseen.units.get(self._foreseen.key_of(pod))
        return _NOTHING if waiting is None else self._prospect(waiting)

    def _prospect(self, waiting: Waiting) -> Prospect:
        unit, now, standing = waiting.unit, self._world.now, self._foreseen.standing
        found = self._foreseen.decide(waiting)
        if isinstance(found, tuple):
            if self._foreseen.is_promised_room(waiting):
                return _NOTHING
            bound = binding(self._state.runs, standing, unit, now)
            if not bound or self._foreseen.beside(waiting, found, bound) is not None:
                return _NOTHING
            noun = "pod" if waiting.gang is None else "gang"
            end = end_of(self._state.runs, unit.pods, now)
            return Prospect(held=room_reserved(bound[0], end, noun))
        if found is None:
            return _NOTHING
        departures = self._state.runs.departures(now)
        reservation = self._foreseen.reserve(waiting, standing, departures)
        first = [each for each in standing if each.rank < unit.rank]
        return Prospect(estimate=_estimate(self._world, reservation, departures, first))


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
