"""Branch and bound over the devices of a problem whose alternatives are decided.

Two passes: the first looks for the lowest cost and tries what looks cheapest first; the second takes devices in search order and stops
at the first allocation of that cost, so that equally good devices are always given out in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from drayman.allocator.policies.ladders import Ladders
from drayman.allocator.policies.objective import Objective
from drayman.allocator.problem.limits import MAX_ENTRIES
from drayman.allocator.problem.outcome import Cost
from drayman.allocator.problem.tables import Alternative, Tables
from drayman.allocator.pruning.bounds import Bounds
from drayman.allocator.pruning.symmetry import Symmetry, reach
from drayman.allocator.tree.engine import OutOfSteps
from drayman.allocator.tree.state import State, Transitions


class Improvement(Struct, frozen=True):
    placements: list[tuple[Alternative, int]]
    cost: Cost
    steps: int


def improve(
    tables: Tables, found: Sequence[tuple[Alternative, int]], max_steps: int, *, is_first: bool
) -> Improvement:
    """The best allocation that can be found within the steps, at least as good as the one given.

    `is_first`: no allocation comes before the one given in search order.
    """
    search = _BranchAndBound(tables, found, max_steps)
    if not (is_first and search.is_proven()):
        try:
            search.run(is_first=is_first)
        except OutOfSteps:
            pass
    return Improvement(search.best, search.cost, search.steps)


class Alignment(Struct, frozen=True):
    """What a search for the best levels of stated alignments has come to."""

    placements: list[tuple[Alternative, int]]
    is_violated: bool
    """Whether a level that is required is not reached."""
    is_proven: bool
    """Whether there is nothing better."""
    steps: int


def align(
    tables: Tables,
    found: Sequence[tuple[Alternative, int]],
    max_steps: int,
    *,
    in_order: bool,
) -> Alignment:
    """The allocation that reaches the best levels, beginning with one that was found without regard to them.

    `in_order`: if there are several, the one that comes first in search order.
    """
    search = _LevelsOnly(tables, found, max_steps)
    is_proven = True
    try:
        search.run(is_first=not in_order)
    except OutOfSteps:
        is_proven = False
    return Alignment(search.best, search.is_violated, is_proven, search.steps)


class _Node:
    """A partial allocation: so many devices of a request are placed."""

    __slots__ = (
        "bound",
        "chosen",
        "floor",
        "number",
        "options",
        "path",
        "request",
        "start",
        "state",
    )

    def __init__(
        self,
        request: int,
        number: int,
        start: int,
        state: State,
        path: tuple[tuple[Alternative, int], ...],
        chosen: tuple[int, ...],
    ) -> None:
        self.request = request
        self.number = number
        self.start = start
        self.state = state
        self.path = path
        self.chosen = chosen  # positions that count for the cost
        self.bound: Cost | None = None  # lower bound for allocations that begin like this
        self.floor: Cost | None = None  # the bound of the node before, which holds here too
        self.options: Iterator[_Node] = iter(())  # one more device, worked out when needed


class _BranchAndBound:
    def __init__(
        self, tables: Tables, found: Sequence[tuple[Alternative, int]], max_steps: int
    ) -> None:
        self._tables = tables
        self._alternatives = [request.alternatives[0] for request in tables.requests]
        self._transitions = Transitions(tables, admin_blocks=False)
        self._objective = Objective(tables)
        self._max_steps = max_steps
        self._exact = False  # second pass: the cost is known, the order is wanted
        self._finished = False
        self._has_turned_back = False  # whether some partial allocation led nowhere
        self._least: Cost | None = None  # what every allocation costs, as far as is known
        self._has_improved = False  # whether something better was found than what was given
        self._is_settled = False  # whether the best is also known to come first in search order
        self.steps = 0
        self.best = list(found)
        self.cost = self._cost_of_given(found)

    def _cost_of_given(self, found: Sequence[tuple[Alternative, int]]) -> Cost:
        return self._objective.cost_of(found, self._transitions)

    @cached_property
    def _bounds(self) -> Bounds:
        return Bounds(self._tables, self._transitions)

    @cached_property
    def _symmetry(self) -> Symmetry:
        distinctions = self._objective.distinctions(reach(self._alternatives))
        return Symmetry(self._tables, self._transitions, distinctions)

    def is_proven(self) -> bool:
        """Whether nothing can cost less than what was found, as far as that can be seen without a search."""
        return self._objective.is_unbeatable(self.cost)

    def run(self, *, is_first: bool) -> None:
        """Find the best allocation. Raises OutOfSteps; what was found before is kept."""
        is_plain = self._objective.ladders is None
        if is_plain and len(self.best) == len(self._alternatives) == 1:
            only = self._alternatives[0]
            if not only.admin and only.sequence is None:
                self._choose_one(only)
                return
        self._explore()
        # If nothing is cheaper, what comes first in search order is the answer already.
        if not self._is_settled and (not is_first or self._has_improved):
            self._exact = True
            self._explore()

    def _choose_one(self, only: Alternative) -> None:
        """Compare all devices that the only request can have: there is nothing to combine."""
        self.steps += 1
        devices = self._transitions.available(self._transitions.initial(), only)
        self.cost, position = self._objective.cheapest(devices)
        self.best = [(only, position)]

    def _explore(self) -> None:
        self._finished = self._has_turned_back = False
        stack = [_Node(0, 0, 0, self._transitions.initial(), (), ())]
        self._open(stack[0])
        self._least = stack[0].bound
        while stack and not self._finished:
            child = next(stack[-1].options, None)
            if child is None:
                stack.pop()
                self._has_turned_back = True
            else:
                self._open(child)
                stack.append(child)

    def _open(self, node: _Node) -> None:
        """Find out what is worth trying after a node; note it down if it is a whole allocation."""
        self._count_step()
        if not self._enter_requests(node):
            return
        if node.request == len(self._alternatives):
            self._note(node)
            return
        alternative = self._alternatives[node.request]
        missing = alternative.number - node.number
        if node.bound is None:
            node.bound = self._bound(node, missing)
        if self._is_too_dear(node.bound):
            return
        rest = self._transitions.available(node.state, alternative) & -1 << node.start
        if rest.bit_count() >= missing:
            node.options = self._options(node, node.bound, alternative, rest)

    def _bound(self, node: _Node, missing: int) -> Cost:
        bound = self._at_least(node, missing)
        return bound if node.floor is None else max(bound, node.floor)

    def _at_least(self, node: _Node, missing: int) -> Cost:
        objective = self._objective
        bound = objective.at_least(node.chosen, node.state, node.request, missing)
        if objective.ladders is None:
            return bound
        rungs = objective.ladders.at_least(node.path, node.state, node.request, missing)
        return bound._replace(rungs=rungs)

    def _cost(self, node: _Node) -> Cost:
        """Of a whole allocation."""
        objective = self._objective
        cost = objective.cost(node.chosen, node.state)
        if objective.ladders is None:
            return cost
        return cost._replace(rungs=objective.ladders.reached(node.path))

    def _count_step(self) -> None:
        if self.steps >= self._max_steps:
            raise OutOfSteps
        self.steps += 1

    def _enter_requests(self, node: _Node) -> bool:
        """Move a node on to the next request that leaves a choice; False if what follows cannot be served."""
        while node.request < len(self._alternatives):
            alternative = self._alternatives[node.request]
            if node.number == 0:
                if not self._begin_request(node, alternative):
                    return False
                if alternative.sequence is not None:
                    if not self._place_all(node, alternative, alternative.sequence):
                        return False
                    continue
            if node.number < alternative.number:
                return True
            node.request, node.number, node.start = node.request + 1, 0, 0
        return True

    def _begin_request(self, node: _Node, alternative: Alternative) -> bool:
        if self._tables.requests[node.request].opens_claim and node.request:
            node.state = self._transitions.next_claim(node.state)
        # The first request can be served: there is an allocation. Unless values are to be ruled out, there is nothing to look for.
        is_open = node.request == 0 and not self._tables.matches
        narrowed = node.state if is_open else self._bounds.enter(node.request, node.state)
        if narrowed is None or narrowed.entries + alternative.number > MAX_ENTRIES:
            return False
        node.state = narrowed
        return True

    def _place_all(self, node: _Node, alternative: Alternative, sequence: tuple[int, ...]) -> bool:
        if not sequence:
            return False
        for position in sequence:
            if not self._transitions.can_place(node.state, alternative, position):
                return False
            self._put(node, alternative, position)
        node.request, node.number, node.start = node.request + 1, 0, 0
        return True

    def _put(self, node: _Node, alternative: Alternative, position: int) -> None:
        node.state = self._transitions.place(node.state, alternative, position)
        node.path = (*node.path, (alternative, position))
        node.bound = None
        if not alternative.admin:
            node.chosen = (*node.chosen, position)

    def _options(
        self, node: _Node, least: Cost, alternative: Alternative, rest: int
    ) -> Iterator[_Node]:
        """One device of each sort that can still lead somewhere, the most promising first.

        A device that costs no more than `least`, the minimum after this node, is as promising as possible: it is tried before the
        other devices are even looked at. Often that settles it.
        """
        missing = alternative.number - node.number
        dearer: list[tuple[Cost, int, _Node]] = []
        untried = rest
        while untried:
            low = untried & -untried
            position = low.bit_length() - 1
            # The devices of a request are taken in order, so enough of them must lie ahead.
            if (rest & -low).bit_count() < missing:
                break
            self._count_step()
            child = self._extend(node, position)
            child.floor = least
            child.bound = self._bound(child, missing - 1)
            if self._is_too_dear(child.bound):
                pass
            elif self._exact or child.bound == least:
                yield child
                if self._is_too_dear(least):
                    return
            else:
                dearer.append((child.bound, position, child))
            alike = self._alike(node, alternative, position)
            untried &= ~(alike | low)
        for _, _, child in sorted(dearer):
            yield child

    def _alike(self, node: _Node, alternative: Alternative, position: int) -> int:
        """The devices that lead to the same costs as this one."""
        used = 0
        if self._keeps_used_apart:
            for _, other in node.path:
                used |= 1 << other
        return self._symmetry.equivalent(
            alternative, position, node.start, node.state, unmovable=used
        )

    @cached_property
    def _keeps_used_apart(self) -> bool:
        """Whether devices that were used alike still differ, by the requests that have them."""
        ladders = self._objective.ladders
        return ladders is not None and ladders.tells_requests_apart

    def _extend(self, node: _Node, position: int) -> _Node:
        alternative = self._alternatives[node.request]
        child = _Node(
            node.request, node.number + 1, position + 1, node.state, node.path, node.chosen
        )
        self._put(child, alternative, position)
        return child

    def _is_too_dear(self, cost: Cost) -> bool:
        return cost > self.cost if self._exact else cost >= self.cost

    def _note(self, node: _Node) -> None:
        cost = self._cost(node)
        if not self._is_too_dear(cost):
            self.best = list(node.path)
            self.cost = cost
            self._has_improved = True
            # An allocation of the lowest possible cost is the answer if all devices before those it uses cost more.
            self._is_settled = cost == self._least and not self._has_turned_back
            self._finished = self._exact or self._is_settled


class _LevelsOnly(_BranchAndBound):
    """With the levels of stated alignments as the only objective."""

    @property
    def is_violated(self) -> bool:
        return self._ladders.is_violated(self.cost.rungs)

    @property
    def _ladders(self) -> Ladders:
        assert self._objective.ladders is not None  # there are stated alignments
        return self._objective.ladders

    def run(self, *, is_first: bool) -> None:
        if is_first and not any(self.cost.rungs):
            return
        super().run(is_first=is_first)

    def _cost_of_given(self, found: Sequence[tuple[Alternative, int]]) -> Cost:
        return _NOTHING._replace(rungs=self._ladders.reached(found))

    def _at_least(self, node: _Node, missing: int) -> Cost:
        rungs = self._ladders.at_least(node.path, node.state, node.request, missing)
        return _NOTHING._replace(rungs=rungs)

    def _cost(self, node: _Node) -> Cost:
        return _NOTHING._replace(rungs=self._ladders.reached(node.path))


_NOTHING: Final = Cost((), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
