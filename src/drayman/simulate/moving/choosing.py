"""Which pods to move for one unit: the cheapest without which it fits.

For each place in which the unit could be, the cheapest movers are looked for (`clearing`), and the decision about the unit has the last
word: where it says that they do not suffice, all that could be moved in that place are gone, and come back as long as the unit fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from drayman.placement.domains.budget import Budget, OutOfSteps
from drayman.placement.nodes import NodeState
from drayman.simulate.moving.clearing import MoverSearch
from drayman.simulate.moving.movers import Mover, cost_of
from drayman.simulate.moving.sequence import Intent, Stuck, carried_out
from drayman.simulate.moving.units import Deciding, Refused, Unit

_MOST_ATTEMPTS: Final = 12
"""How often another set of movers is tried for one unit."""
_MOST_SPARED: Final = 24
"""How many movers it is tried for whether they can stay."""


class Obstacle(Struct, frozen=True):
    """Why no moves make room."""

    reason: str
    is_final: bool = True
    """Whether that is known; otherwise the search ended early."""


NOTHING_HELPS: Final = Obstacle("no pods that can be moved are in the way")
NO_PLACE: Final = Obstacle("pods that would have to move have no other place")
OUT_OF_STEPS: Final = Obstacle("the search has ended before all ways were tried", is_final=False)


def too_many(most: int) -> Obstacle:
    return Obstacle(f"more than {most} pods would have to move")


class Choosing:
    """The search for one unit that was refused. Leaves the state as it was."""

    def __init__(
        self,
        deciding: Deciding,
        unit: Unit,
        refused: Refused,
        movers: Callable[[str], Sequence[Mover]],
        *,
        most: int,
        steps: int,
    ) -> None:
        """`movers` has the pods on a node that may be moved for the unit, of which no more than `most` are."""
        self._deciding = deciding
        self._state = deciding.state
        self._unit = unit
        self._refused = refused
        self._movers = movers
        self._most = most
        self._budget = Budget(steps)
        self._stuck: set[str] = set()
        self._homes = list(refused.homes)
        # For pods that are alike, each seat was made with as few movers as possible.
        self._are_alike = len({demand.key for demand in refused.demands}) == 1

    def first(self) -> Intent | Obstacle:
        """What to move, if all of it has another place."""
        try:
            found, _ = self._cheapest()
        except OutOfSteps:
            return OUT_OF_STEPS
        if found is None:
            return NOTHING_HELPS
        return self._excess(found) or Intent(self._unit, tuple(found))

    def proven(self) -> Intent | Obstacle:
        """What to move, all of it with another place."""
        try:
            return self._proven()
        except OutOfSteps:
            return OUT_OF_STEPS

    def _proven(self) -> Intent | Obstacle:
        obstacle = NOTHING_HELPS
        for _ in range(_MOST_ATTEMPTS):
            found, home = self._cheapest()
            if found is None:
                return obstacle
            excess = self._excess(found)
            if excess is not None:
                return excess if obstacle is NOTHING_HELPS else obstacle
            intent = Intent(self._unit, tuple(found))
            with self._state.trial():
                result = carried_out(self._deciding, [intent])
            if not isinstance(result, Stuck):
                return intent
            obstacle = NO_PLACE
            if result.mover is None:
                self._homes.remove(home)
            else:
                self._stuck.add(result.mover.key)
        return OUT_OF_STEPS

    def _excess(self, found: Sequence[Mover]) -> Obstacle | None:
        is_excessive = sum(len(mover.pods) for mover in found) > self._most
        return too_many(self._most) if is_excessive else None

    def _cheapest(self) -> tuple[list[Mover] | None, tuple[NodeState, ...]]:
        """The cheapest movers without which the unit fits, and the place that they make room in."""
        best: tuple[list[Mover] | None, tuple[NodeState, ...]] = (None, ())
        for home in self._homes:
            search = MoverSearch(self._deciding, self._available, self._budget)
            cleared = search.cheapest(home, self._refused.demands)
            found = None if cleared is None else self._sufficient(cleared, home)
            if found is None:
                continue
            if best[0] is None or cost_of(found) < cost_of(best[0]):
                best = (found, home)
        return best

    def _sufficient(self, found: list[Mover], home: Sequence[NodeState]) -> list[Mover] | None:
        """Movers without which the unit fits, by the decision about it: those that were found, as few of them as suffice, or more."""
        if not self._fits_without(found):
            more = [m for node in home for m in self._available(node.facts.name)]
            found = list({mover.key: mover for mover in (*found, *more)}.values())
            if not self._fits_without(found):
                return None
        elif len(found) > _MOST_SPARED or self._are_alike:
            return found
        for mover in sorted(found, key=lambda mover: mover.cost, reverse=True)[:_MOST_SPARED]:
            rest = [each for each in found if each is not mover]
            if self._fits_without(rest):
                found = rest
        return found

    def _fits_without(self, movers: Sequence[Mover]) -> bool:
        self._budget.spend(len(self._refused.demands))
        with self._state.trial() as trial:
            for mover in movers:
                mover.leave(trial)
            return isinstance(self._deciding.decide(self._unit), tuple)

    def _available(self, node: str) -> list[Mover]:
        return [mover for mover in self._movers(node) if mover.key not in self._stuck]
