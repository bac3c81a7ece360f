"""Makes reservations, and decides what others may do while they stand.

A unit that was refused for lack of room gets the earliest moment at which it fits, beside what is reserved for units that come before it.
A unit that comes after it may have room that will be gone by then only if it will have ended by then; otherwise it has to find room that is
not reserved. What comes before it is never held back by it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from drayman.api.core import Pod
from drayman.placement.decision.outcomes import NoNode
from drayman.placement.joint.gangs import NoRoom
from drayman.placement.joint.seating import Seat, Seats
from drayman.placement.pauses import never
from drayman.placement.reservations.earliest import earliest, leave
from drayman.placement.reservations.reservation import (
    Rank,
    Reservation,
    are_touched,
    count_in,
    is_delicate,
    reserved_seats,
)
from drayman.placement.runs.book import HORIZON_S, Departure, RunBook
from drayman.placement.state import ClusterState

MOST_RESERVATIONS: Final = 4
"""How many units have a reservation at the same time: those that come first."""


class Unit(Struct, frozen=True, eq=False):
    """Pods that wait and are decided about together."""

    key: str
    title: str
    rank: Rank
    pods: tuple[Pod, ...]


Reserving = Generator[None, None, Reservation | None]
"""Yields where a break is due; the state is then as it was."""


def may_reserve(why: NoNode | NoRoom) -> bool:
    """Whether a unit that was refused gets a reservation: not members that only join a gang, and not pods without devices."""
    match why:
        case NoRoom():
            return not (why.is_joining or why.gave_up)
        case NoNode(demand, not_found):
            return demand.asks_for_devices and not not_found.retry


def end_of(runs: RunBook, pods: Iterable[Pod], start: float) -> float | None:
    """When the last of some pods that start together will have ended; None if that is not known."""
    last = start
    for pod in pods:
        ending = runs.would_end(pod, start)
        if ending is None:
            return None
        last = max(last, ending.at)
    return last


def binding(
    runs: RunBook, reservations: Iterable[Reservation], unit: Unit, start: float
) -> list[Reservation]:
    """Those that a unit that starts at some time must not be in the way of: of units that come before it and are not done by then."""
    before = [
        each
        for each in reservations
        if each.rank < unit.rank
        and each.key != unit.key
        and (each.until is None or each.until > start)
    ]
    if not before:
        return []
    end = end_of(runs, unit.pods, start)
    return [each for each in before if end is None or end > each.at]


def reserve(
    state: ClusterState,
    unit: Unit,
    others: Sequence[Reservation],
    departures: Sequence[Departure],
    seats: Callable[[], Seats | None],
    is_due: Callable[[], bool] = never,
) -> Reserving:
    """Room for a unit, as early as it can be had; None if it is not known to become free.

    `seats` returns what the unit gets in the state as it is. `departures` are the pods that are known to end, in that order.
    """

    def fits(at: float) -> Seats | None:
        count_in(state, binding(state.runs, others, unit, at))
        return seats()

    # Those for which room is reserved end, too.
    later = [leaving for each in others for leaving in each.leaving]
    ends = sorted((*departures, *later), key=lambda each: each.order)
    moment = yield from earliest(state, ends, fits, is_due)
    if moment is None:
        return None
    return Reservation(
        unit.key,
        unit.title,
        unit.rank,
        moment.at,
        reserved_seats(state, moment.found),
        moment.gone,
        any(is_delicate(seat.demand) for seat in moment.found),
        tuple(_leaving(state.runs, moment.found, moment.at)),
    )


def _leaving(runs: RunBook, seats: Seats, start: float) -> Iterator[Departure]:
    for seat in seats:
        ending = runs.would_end(seat.demand.pod, start)
        if ending is not None and ending.at - start <= HORIZON_S:
            yield Departure(seat.demand.pod, seat.found.node.facts.name, ending)


class Beside(Struct, frozen=True, eq=False):
    """The ways to ask about a unit while room is reserved for others."""

    seats: Callable[[], Seats | None]
    """What the unit gets in the state as it is."""
    take: Callable[[Seat], None]
    """In a trial: count a seat as taken."""
    still_fits: Callable[[Reservation], bool]
    """Whether the unit of a reservation fits in the state as it is."""


def seats_beside(
    state: ClusterState, reservations: Sequence[Reservation], first: Seats, ways: Beside
) -> Seats | None:
    """Seats with which a unit is in the way of none of these reservations; None if there are none.

    `first` has what it would get if nothing were reserved.
    """
    if not are_touched(reservations, first):
        return first
    with state.trial():
        count_in(state, reservations)
        seats = ways.seats()
    if seats is None:
        return None
    if any(each.is_delicate for each in reservations) or any(is_delicate(s.demand) for s in seats):
        with state.trial():
            for seat in seats:
                ways.take(seat)
            for each in reservations:
                with state.trial() as trial:
                    leave(state, trial, each.gone)
                    if not ways.still_fits(each):
                        return None
    return seats
