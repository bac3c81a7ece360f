"""Room that is reserved for units in the queue, and what others may do meanwhile.

The first few units that are refused for lack of room get a reservation, if it is known when enough pods will have ended (`placement.runs`).
Where nothing is known about any pod, all of this costs one look. Finding a moment takes several decisions, so it is done in parts, and no
more than a small share of the scheduler's time goes into it. Until it is found, nothing is held back.

A reservation is renewed whenever its unit is refused again: something has ended, or its moment has passed without that. It stays in force
until the new one is found. If none is found, it is withdrawn for a stated reason (`Withdrawal`), and not at once if no moment is known any
more: what a pod leaves is shown piece by piece, first that it has ended, then that its devices are free.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable
from enum import Enum
from typing import Final

from msgspec import Struct

from drayman.cluster.breaks import STRETCH_S
from drayman.inventory.allowance import UnfinishedError
from drayman.placement.decision.deciding import Decider, Round
from drayman.placement.decision.outcomes import Fitting, NoNode, NoPlacement, Unfinished
from drayman.placement.decision.placements import Placement
from drayman.placement.joint.gangs import NoRoom, Starting
from drayman.placement.joint.seating import Seat, Seats, taken_as_it_is
from drayman.placement.reservations import making
from drayman.placement.reservations.making import (
    MOST_RESERVATIONS,
    Beside,
    Unit,
    binding,
    reserve,
    seats_beside,
)
from drayman.placement.reservations.reservation import Reservation
from drayman.placement.runs.book import Departure
from drayman.placement.wake import Wake
from drayman.reasons.reserved import room_reserved
from drayman.scheduler.gangs import GangCycle, work_for
from drayman.scheduler.queue import Queue
from drayman.scheduler.reservation_line import ReservationLine
from drayman.scheduler.unit import QueuedUnit

_log: Final = logging.getLogger(__name__)

SHARE_OF_TIME: Final = 20
"""No more than such a part of the scheduler's time goes into reservations."""
LONGEST_REST_S: Final = 60.0
LEAST_REST_S: Final = 0.05
LONGEST_S: Final = 10.0
"""The work that goes into one reservation. What takes longer is given up until the unit is tried again."""
SAME_S: Final = 1.0
"""A moment that moves by less stays the same for others."""
DOUBT_S: Final = 5.0
"""How long a reservation stays in force though no moment is found at which its unit fits."""


class Withdrawal(Enum):
    """Why room is not reserved for a unit any more."""

    ENDED = "it does not wait for room any more"
    PROMISED = "other pods are preempted for it"
    UNKNOWN = "it is not known any more when there will be room for it"
    LATE = "its moment has passed, and the search for another one takes too long"
    OUTRANKED = f"room is reserved for {MOST_RESERVATIONS} others that come before it"


class Held(Struct, frozen=True, eq=False):
    """A unit fits, but only where room is reserved for one that comes before it."""

    reservation: Reservation
    shape: Hashable
    """Equal for units that are held back alike."""
    message: str


class Reserving:
    """The reservations of one scheduler."""

    def __init__(
        self,
        decider: Decider,
        gangs: GangCycle,
        queue: Queue,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
    ) -> None:
        self._decider = decider
        self._state = decider.state
        self._gangs = gangs
        self._queue = queue
        self._clock = clock
        self._wall_clock = wall_clock
        self._standing: dict[str, Reservation] = {}  # by key of the unit
        self._searches: dict[str, _Search] = {}
        self._line = ReservationLine(queue)
        self._due_at = 0.0
        self._doubted: dict[str, float] = {}  # since when, by key of the unit
        self.withdrawn: Callable[[Reservation, Withdrawal], None] = lambda *_: None
        """Called with each reservation that is withdrawn without another one in its place."""
        queue.unit_left = self.give_up

    @property
    def standing(self) -> list[Reservation]:
        """What is reserved, for those that come first at the beginning."""
        return sorted(self._standing.values(), key=lambda each: each.rank)

    @property
    def is_any(self) -> bool:
        """Whether anything is reserved. Nearly always not."""
        return bool(self._standing)

    @property
    def is_searching(self) -> bool:
        return bool(self._searches)

    # What others may do.

    def binding(self, entry: QueuedUnit) -> list[Reservation]:
        """The reservations that a unit must not be in the way of if it starts now: none, if its room was made for it."""
        if self._is_promised(entry):
            return []
        return binding(self._state.runs, self.standing, _unit(entry), self._wall_clock())

    def decide(
        self, entry: QueuedUnit, round_: Round, reservations: list[Reservation], work: float
    ) -> Placement | NoPlacement | Held:
        """The decision about a pod that is on its own, beside what is reserved."""
        with self._state.allowance.limited(work) as part:
            try:
                first = round_.consider(entry.pod)
                if not isinstance(first, Fitting):
                    return first
                seats = seats_beside(
                    self._state,
                    reservations,
                    (Seat(first.demand, first.found),),
                    self._ways(entry, round_),
                )
            except UnfinishedError as error:
                return Unfinished(error.rest, part.has_advanced)
        if seats is None:
            shape = (first.demand.key, self._run_time(entry))
            return self._held(entry, reservations, shape)
        return round_.place(seats[0].demand, seats[0].found)

    def admit(
        self,
        entry: QueuedUnit,
        round_: Round,
        reservations: list[Reservation],
        starting: Starting,
    ) -> Starting | Held | Unfinished:
        """A gang that could start, beside what is reserved."""
        ways = self._ways(entry, round_)
        try:
            with self._state.allowance.limited(work_for(entry)):
                seats = seats_beside(self._state, reservations, starting.seats, ways)
        except UnfinishedError as error:
            return Unfinished(error.rest, has_advanced=False)
        if seats is None:
            return self._held(entry, reservations, ("gang", entry.key))
        return Starting(starting.gang, seats, starting.as_one)

    def placed(self, placements: list[Placement]) -> None:
        """Pods got their nodes. What they leave before a reservation begins will be there for that."""
        now = self._wall_clock()
        for placement in placements:
            ending = self._state.runs.would_end(placement.pod, now)
            if ending is None:
                continue
            departure = Departure(placement.pod, placement.node, ending)
            for key, each in self._standing.items():
                if ending.at <= each.at:
                    self._standing[key] = each.with_departure(departure)

    # Reservations.

    def refused(self, entry: QueuedUnit, why: NoNode | NoRoom) -> None:
        """There is no room for a unit: when will there be?"""
        if self._is_promised(entry):
            self.give_up(entry.key, Withdrawal.PROMISED)
            return
        if _only_joins(why):
            self.give_up(entry.key)
            return
        if not self._state.runs.tells_anything:
            self._line.leave(entry.key)
            self._searches.pop(entry.key, None)
            self._settle(entry, Withdrawal.UNKNOWN)
            return
        search = self._searches.get(entry.key)
        if search is not None:
            search.is_outdated = True
            return
        if not making.may_reserve(why) or not self._is_among_the_first(entry):
            self._line.leave(entry.key)
        elif self._clock() < self._line.rests_until:
            self._line.wait(entry)
        else:
            self._line.take(entry.key)
            self._searches[entry.key] = _Search(entry, self._search(entry))

    def give_up(self, key: str, why: Withdrawal = Withdrawal.ENDED) -> None:
        """A unit does not wait for room, or has it: nothing is reserved for it."""
        self._line.leave(key)
        self._searches.pop(key, None)
        if self._withdraw(key, why):
            self._queue.wake(Wake.RESERVATIONS)

    def _withdraw(self, key: str, why: Withdrawal) -> bool:
        """Returns whether anything was reserved."""
        self._doubted.pop(key, None)
        former = self._standing.pop(key, None)
        if former is not None:
            self.withdrawn(former, why)
        return former is not None

    def advance(self, part_s: float) -> bool:
        """Look for moments, for about so long. Returns whether there is more to do."""
        if not self._searches:
            return False
        begun = self._clock()
        self._due_at = begun + part_s
        while self._searches and self._go_on(next(iter(self._searches.values()))):
            if self._clock() >= self._due_at:
                break
        now = self._clock()
        rested = max(self._line.rests_until, now)
        rested += max((now - begun) * SHARE_OF_TIME, LEAST_REST_S)
        self._line.rest(min(rested, now + LONGEST_REST_S))
        return self.is_searching

    def _go_on(self, search: _Search) -> bool:
        """Do a part of a search. Returns whether it was the last."""
        begun = self._clock()
        found: Reservation | Withdrawal = Withdrawal.LATE
        try:
            next(search.steps)
        except StopIteration as end:
            found = end.value or Withdrawal.UNKNOWN
        except UnfinishedError:
            pass  # it is retried with its unit
        except Exception:
            # As in a round: a unit that the scheduler cannot handle must not hold up the others.
            _log.exception("%s", search.entry)
        else:
            search.took += self._clock() - begun
            if search.took < LONGEST_S:
                return False
        del self._searches[search.entry.key]
        self._settle(search.entry, found)
        if search.is_outdated and self._queue.unit(search.entry.key) is search.entry:
            self._line.wait(search.entry)
        return True

    async def complete(self) -> None:
        """Look for moments until all are found, with breaks for others."""
        while self.advance(STRETCH_S):
            await asyncio.sleep(0)

    def _search(self, entry: QueuedUnit) -> making.Reserving:
        now = self._wall_clock()
        round_ = self._decider.round(now)
        departures = self._state.runs.departures(now)
        return (
            yield from reserve(
                self._state,
                _unit(entry),
                self.standing,
                departures,
                lambda: self._seats_soon(entry, round_),
                lambda: self._clock() >= self._due_at,
            )
        )

    def _settle(self, entry: QueuedUnit, found: Reservation | Withdrawal) -> None:
        key = entry.key
        if self._queue.unit(key) is not entry:
            return
        before = self._standing.get(key)
        if self._is_promised(entry):
            self.give_up(key, Withdrawal.PROMISED)
        elif isinstance(found, Reservation):
            self._doubted.pop(key, None)
            self._standing[key] = found
            self._try_again(entry, found.at - self._wall_clock())
            for late in self.standing[MOST_RESERVATIONS:]:
                self._withdraw(late.key, Withdrawal.OUTRANKED)
            if not _is_same(before, self._standing.get(key)):
                self._queue.wake(Wake.RESERVATIONS)
        elif before is not None and not self._stays(entry, before, found):
            self.give_up(key, found)

    def _stays(self, entry: QueuedUnit, before: Reservation, why: Withdrawal) -> bool:
        """Whether a reservation stays in force for now, though it was not renewed."""
        if why is Withdrawal.LATE:
            return before.at > self._wall_clock()
        now = self._clock()
        left = self._doubted.setdefault(entry.key, now) + DOUBT_S - now
        if left > 0:
            self._try_again(entry, left)
        return left > 0

    def _try_again(self, entry: QueuedUnit, in_s: float) -> None:
        self._queue.wake_at(entry, self._clock() + max(in_s, LEAST_REST_S))

    # How units are asked about.

    def _ways(self, entry: QueuedUnit, round_: Round) -> Beside:
        return Beside(
            lambda: self._seats(entry, round_),
            lambda seat: round_.suppose(seat.demand, seat.found),
            lambda reservation: self._still_fits(reservation, round_),
        )

    def _seats(self, entry: QueuedUnit, round_: Round) -> Seats | None:
        """What a unit gets in the state as it is, of a trial too. Raises UnfinishedError."""
        if entry.gang is None:
            outcome = round_.consider(entry.pod)
            if not isinstance(outcome, Fitting):
                return None
            return (Seat(outcome.demand, taken_as_it_is(outcome.found)),)
        decided = self._gangs.outcome(entry, round_)
        return decided.seats if isinstance(decided, Starting) else None

    def _seats_soon(self, entry: QueuedUnit, round_: Round) -> Seats | None:
        """The same, with no more work than a decision may take."""
        with self._state.allowance.limited(work_for(entry)):
            return self._seats(entry, round_)

    def _still_fits(self, reservation: Reservation, round_: Round) -> bool:
        entry = self._queue.unit(reservation.key)
        return entry is None or self._seats(entry, round_) is not None

    def _is_promised(self, entry: QueuedUnit) -> bool:
        """Whether room is being made for it: then it needs no other."""
        nominations = self._decider.nominations
        return bool(nominations) and any(uid in nominations for uid in entry.pods)

    def _is_among_the_first(self, entry: QueuedUnit) -> bool:
        """Whether few enough units that come before it have a reservation, or are about to get one."""
        ranks = {key: each.rank for key, each in self._standing.items()}
        ranks |= {key: each.entry.rank for key, each in self._searches.items()}
        return sum(rank < entry.rank for rank in ranks.values()) < MOST_RESERVATIONS

    def _run_time(self, entry: QueuedUnit) -> float | None:
        return making.end_of(self._state.runs, entry.pods.values(), 0.0)

    def _held(self, entry: QueuedUnit, reservations: list[Reservation], shape: Hashable) -> Held:
        self._line.leave(entry.key)
        first = reservations[0]
        end = making.end_of(self._state.runs, entry.pods.values(), self._wall_clock())
        noun = "pod" if entry.gang is None else "gang"
        return Held(first, ("held", shape), str(room_reserved(first, end, noun)))


class _Search:
    """A moment that is being looked for."""

    __slots__ = ("entry", "is_outdated", "steps", "took")

    def __init__(self, entry: QueuedUnit, steps: making.Reserving) -> None:
        self.entry = entry
        self.steps = steps
        self.took = 0.0
        self.is_outdated = False
        """Whether the unit was refused again since it began: it is tried once more afterwards, for others may run by now."""


def _unit(entry: QueuedUnit) -> Unit:
    return Unit(entry.key, str(entry), entry.rank, tuple(entry.pods.values()))


def _only_joins(why: NoNode | NoRoom) -> bool:
    return isinstance(why, NoRoom) and why.is_joining


def _is_same(before: Reservation | None, after: Reservation | None) -> bool:
    if before is None or after is None:
        return before is after
    return abs(before.at - after.at) < SAME_S and before.nodes == after.nodes
