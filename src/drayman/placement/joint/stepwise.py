"""Places for pods that affect each other across nodes, one pod at a time.

Affinity and spreading, claims and volumes that several of the pods use, devices that several nodes share: there it is not enough to know
what each node holds. So the pods are placed one after the other in nested trials. Where one finds no place, the choice before it is
revised. Places that were tried in vain with the same pods in them are not tried in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from drayman.placement.claims import ClaimsNotReadyError
from drayman.placement.decision.deciding import Round
from drayman.placement.demand import Demand
from drayman.placement.domains.budget import Budget
from drayman.placement.joint.seating import Seat, Seating, Seats
from drayman.placement.nodes import NodeState

DEFAULT_LIMIT: Final = 4_000
"""How many places are tried at most. A try takes a fraction of a millisecond."""


@dataclass(slots=True)
class _Step:
    """A pod, and the places for it that have not been tried."""

    kind: Hashable
    places: Iterator[tuple[NodeState, Demand] | None]
    """None: the pod is left out."""
    trial: ExitStack = field(default_factory=ExitStack)
    at: tuple[str, Hashable] | None = None
    seat: Seat | None = None


class Stepwise:
    """One search."""

    def __init__(
        self,
        round_: Round,
        seating: Seating,
        demands: Sequence[Demand],
        is_allowed: Callable[[NodeState], bool],
        spare: int,
        limit: int = DEFAULT_LIMIT,
    ) -> None:
        """`spare`: how many of the pods may be left out."""
        self._round = round_
        self._seating = seating
        self._demands = demands
        self._is_allowed = is_allowed
        self._spare = spare
        self._budget = Budget(limit)
        self._failed: set[Hashable] = set()
        self._steps: list[_Step] = []
        self._left_out = 0

    def search(self) -> Seats | None:
        """Seats for the pods, without those that may be left out; None if there is no way. Raises OutOfSteps."""
        try:
            return self._search()
        finally:
            while self._steps:
                self._undo()

    def _search(self) -> Seats | None:
        while len(self._steps) < len(self._demands):
            is_known_to_fail = self._key() in self._failed
            if not is_known_to_fail:
                self._begin()
                if self._advance():
                    continue
            if not self._revise():
                return None
        return tuple(step.seat for step in self._steps if step.seat is not None)

    def _begin(self) -> None:
        demand = self._demands[len(self._steps)]
        self._steps.append(_Step(demand.key, self._places(demand)))

    def _revise(self) -> bool:
        """Take back the last choices until there is another one. Returns whether there is."""
        while self._steps:
            step = self._steps[-1]
            if step.at is not None or step.seat is not None or self._is_left_out(step):
                self._undo_choice(step)
                if self._advance():
                    return True
            self._undo()
            self._failed.add(self._key())
        return False

    def _advance(self) -> bool:
        """Give the last pod the next place that takes it. Returns whether there is one."""
        step = self._steps[-1]
        for place in step.places:
            if place is None:
                if self._left_out == self._spare:
                    continue
                self._left_out += 1
                step.at = ("", step.kind)
                return True
            self._budget.spend()
            node, demand = place
            seats = self._seating.in_turn(node, (demand,))
            if seats:
                step.trial.enter_context(self._round.decider.state.trial())
                self._seating.take(seats[0])
                step.at, step.seat = (node.facts.name, step.kind), seats[0]
                return True
        return False

    def _undo_choice(self, step: _Step) -> None:
        if self._is_left_out(step):
            self._left_out -= 1
        step.at = step.seat = None
        step.trial.close()

    def _undo(self) -> None:
        step = self._steps[-1]
        self._undo_choice(step)
        self._steps.pop()

    @staticmethod
    def _is_left_out(step: _Step) -> bool:
        return step.at is not None and step.seat is None

    def _key(self) -> Hashable:
        """Which pods are where, whatever the order in which they came there."""
        counts = Counter(step.at for step in self._steps if step.at is not None)
        return len(self._steps), frozenset(counts.items())

    def _places(self, before: Demand) -> Iterator[tuple[NodeState, Demand] | None]:
        """The nodes that take the pod at the moment, best first."""
        try:
            # Pods before it may have been given a claim that it uses, too.
            demand = self._round.demand(before.pod)
        except ClaimsNotReadyError:
            demand = None
        if demand is not None:
            for standing in self._round.placer(demand).standings(demand):
                if self._is_allowed(standing.node):
                    yield standing.node, demand
        yield None
