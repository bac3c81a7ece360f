"""Room for units that wait: the cheapest pods to move for each, with a proven place for all of them.

First it is found out which pods are in the way of each unit, as if they just went (`choosing`). Then all of them are moved step by step
(`sequence`), while the room is kept for all units: so no pod is moved to where another unit is to be. If that works, it is the answer. If
a pod has no place, the units before the one for which it should go are settled, that one is looked at by itself, with other pods in the
way, and the search goes on with the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence, Set
from itertools import pairwise
from typing import Final

from msgspec import Struct

from drayman.placement.joint.gangs import NoRoom
from drayman.simulate.moving.choosing import Choosing, Obstacle
from drayman.simulate.moving.movers import Mover, Movers, is_moved_by
from drayman.simulate.moving.sequence import Intent, Moves, Stuck, carried_out
from drayman.simulate.moving.units import Deciding, Otherwise, Refused, Unit, importance_of

STEPS: Final = 200_000
"""Questions to nodes for one unit. A question takes a fraction of a millisecond."""


class Settled(Struct, frozen=True, eq=False):
    """What becomes of a unit."""

    unit: Unit
    outcome: Moves | Obstacle | Otherwise


class _Turn(Struct, frozen=True, eq=False):
    """A unit that fits once its movers are gone."""

    intent: Intent
    before: Refused | None


class Searching:
    """Looks for moves in one world. Changes the state, so it is to be used in a trial."""

    def __init__(self, deciding: Deciding, movers: Movers, most: int, steps: int = STEPS) -> None:
        """`most`: how many pods may be moved for one unit."""
        self._deciding = deciding
        self._state = deciding.state
        self._movers = movers
        self._most = most
        self._allowed = steps
        self._moved: set[str] = set()  # keys of movers: no pod is moved twice
        self._refused: dict[Hashable, Obstacle] = {}
        self._next = 1  # the number of the next step

    def make_room(self, units: Sequence[Unit]) -> list[Settled]:
        """Move pods so that the units fit, as many of them as possible, the first ones first, and let them have the room.

        Where that is impossible for a unit for which the scheduler reserves room, no other unit gets that.
        """
        own = self._deciding.reservations()
        keys = [self._deciding.key_of(unit) for unit in units]
        self._deciding.reserve(each for key, each in own.items() if key not in keys)
        ends = [at for at, key in enumerate(keys, 1) if key in own or at == len(keys)]
        found: list[Settled] = []
        for begin, end in pairwise((0, *ends)):
            found += self._make_room(units[begin:end], is_last=end == len(units))
            reservation = own.get(keys[end - 1])
            if reservation is not None and not isinstance(found[-1].outcome, Moves):
                self._deciding.reserve((reservation,))
        return found

    def _make_room(self, units: Sequence[Unit], *, is_last: bool) -> list[Settled]:
        left = list(units)
        found: list[Settled] = []
        while left:
            turns = self._turns(left)
            done = self._together(turns, is_last=is_last)
            if len(done) == 0:
                done = [self._alone(left[0], turns[0])]
            found += done
            left = left[len(done) :]
        return found

    def _turns(self, units: Sequence[Unit]) -> list[Settled | _Turn]:
        """What each unit needs, on top of those before it, if everything that has to move just went."""
        turns: list[Settled | _Turn] = []
        with self._state.trial() as trial:
            going: set[str] = set()
            for unit in units:
                turn = self._turn(unit, going)
                turns.append(turn)
                if isinstance(turn, Settled):
                    continue
                for mover in turn.intent.movers:
                    mover.leave(trial)
                    going.add(mover.key)
                seats = self._deciding.decide(unit)
                if isinstance(seats, tuple):
                    self._deciding.take(seats)
        return turns

    def _turn(self, unit: Unit, going: Set[str]) -> Settled | _Turn:
        before = self._deciding.decide(unit)
        if isinstance(before, tuple):
            return _Turn(Intent(unit), None)
        if isinstance(before, Otherwise):
            return Settled(unit, before)
        shape = self._shape(unit, before)
        if shape in self._refused:
            return Settled(unit, self._refused[shape])
        intent = self._choosing(unit, before, going).first()
        if isinstance(intent, Intent):
            return _Turn(intent, before)
        self._refused[shape] = intent
        return Settled(unit, intent)

    def _together(self, turns: Sequence[Settled | _Turn], *, is_last: bool) -> list[Settled]:
        """Carry out as many as work together, counted from the first. Returns what became of them."""
        number = len(turns)
        while number:
            intents = [turn.intent for turn in turns[:number] if isinstance(turn, _Turn)]
            with self._state.trial():
                tried = carried_out(self._deciding, intents, self._next)
            if not isinstance(tried, Stuck):
                # What comes last need not be carried out once more: nothing is tried on top of it.
                is_over = is_last and number == len(turns)
                return self._settled(
                    turns[:number], tried if is_over else self._carried_out(intents)
                )
            stuck = intents[tried.intent]
            number = next(
                at
                for at, turn in enumerate(turns)
                if isinstance(turn, _Turn) and turn.intent is stuck
            )
        return []

    def _carried_out(self, intents: Sequence[Intent]) -> list[Moves]:
        done = carried_out(self._deciding, intents, self._next)
        if isinstance(done, Stuck):
            raise RuntimeError("moves that have worked in a trial do not work after it")
        self._moved.update(mover.key for intent in intents for mover in intent.movers)
        self._next += sum(len(moves.steps) for moves in done)
        return done

    @staticmethod
    def _settled(turns: Sequence[Settled | _Turn], done: Sequence[Moves]) -> list[Settled]:
        moves = iter(done)
        return [
            turn if isinstance(turn, Settled) else Settled(turn.intent.unit, next(moves))
            for turn in turns
        ]

    def _alone(self, unit: Unit, turn: Settled | _Turn) -> Settled:
        """A unit for which the pods in its way have no other place: perhaps others can go."""
        if isinstance(turn, Settled):
            return turn
        if turn.before is None:
            raise RuntimeError("a unit that fits does not")
        intent = self._choosing(unit, turn.before, frozenset()).proven()
        if isinstance(intent, Intent):
            (moves,) = self._carried_out([intent])
            return Settled(unit, moves)
        self._refused[self._shape(unit, turn.before)] = intent
        return Settled(unit, intent)

    def _choosing(self, unit: Unit, refused: Refused, going: Set[str]) -> Choosing:
        may_move = self._may_move(unit, going)
        return Choosing(
            self._deciding, unit, refused, may_move, most=self._most, steps=self._allowed
        )

    def _may_move(self, unit: Unit, going: Set[str]) -> Callable[[str], Sequence[Mover]]:
        priority = importance_of(self._state.gangs, unit)

        def movers_on(node: str) -> Sequence[Mover]:
            return [
                mover
                for mover in self._movers.on(node)
                if mover.key not in self._moved
                and mover.key not in going
                and (unit.gang is None or mover.gang != unit.gang)
                and is_moved_by(mover, unit.first, priority)
            ]

        return movers_on

    def _shape(self, unit: Unit, refused: Refused) -> Hashable:
        """Equal for units that are refused alike. As moves only take room from others, what was refused before is refused again."""
        kinds = frozenset(Counter(demand.key for demand in refused.demands).items())
        first = unit.first
        about: Hashable = ()
        if isinstance(refused.outcome, NoRoom):
            gang = refused.outcome.gang
            if self._state.gangs.placed(gang.key):
                return unit.name
            about = (gang.least, gang.least_children, gang.subgroups, gang.wish, gang.slices)
        priority = importance_of(self._state.gangs, unit)
        return kinds, about, priority, first.spec.scheduler_name
