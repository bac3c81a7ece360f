"""Branch and bound over the devices of a problem whose alternatives are decided.

Two passes: the first looks for the lowest cost and tries what looks cheapest first; the second takes devices in search order and stops
at the first allocation of that cost, so that equally good devices are always given out in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drayman.allocator.bounds import Bounds
from drayman.allocator.engine import OutOfSteps
from drayman.allocator.limits import MAX_ENTRIES
from drayman.allocator.objective import Cost, Objective
from drayman.allocator.state import State, Transitions
from drayman.allocator.symmetry import Symmetry
from drayman.allocator.tables import Alternative, Tables


@dataclass(frozen=True, slots=True)
class Improvement:
    placements: list[tuple[Alternative, int]]
    steps: int
    proven: bool  # whether nothing better can exist


def improve(
    tables: Tables, found: Sequence[tuple[Alternative, int]], max_steps: int
) -> Improvement:
    """The best allocation that can be found within the steps, at least as good as the one given."""
    search = _BranchAndBound(tables, found, max_steps)
    try:
        search.find_cost()
        search.find_first()
    except OutOfSteps:
        return Improvement(search.best, search.steps, proven=False)
    return Improvement(search.best, search.steps, proven=True)


class _Node:
    """A partial allocation: so many devices of a request are placed."""

    __slots__ = ("chosen", "number", "options", "path", "request", "start", "state")

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
        self.options: list[int] = []  # devices yet to be tried, the next one last


class _BranchAndBound:
    def __init__(
        self, tables: Tables, found: Sequence[tuple[Alternative, int]], max_steps: int
    ) -> None:
        self._tables = tables
        self._alternatives = [request.alternatives[0] for request in tables.requests]
        self._transitions = Transitions(tables, admin_blocks=False)
        self._objective = Objective(tables, self._transitions)
        self._bounds = Bounds(tables, self._transitions)
        self._symmetry = Symmetry(tables, self._transitions, self._objective.distinctions())
        self._max_steps = max_steps
        self._exact = False  # second pass: the cost is known, the order is wanted
        self._finished = False
        self.steps = 0
        self.best = list(found)
        self._best_cost = self._cost_of(found)

    def find_cost(self) -> None:
        """Find an allocation of the lowest cost. Raises OutOfSteps."""
        self._explore()

    def find_first(self) -> None:
        """Among allocations of the lowest cost find the first in search order. Raises OutOfSteps."""
        self._exact = True
        self._explore()

    def _cost_of(self, placements: Sequence[tuple[Alternative, int]]) -> Cost:
        state = self._transitions.initial()
        claim = 0
        for alternative, position in placements:
            if alternative.claim != claim:
                claim = alternative.claim
                state = self._transitions.next_claim(state)
            state = self._transitions.place(state, alternative, position)
        chosen = [position for alternative, position in placements if not alternative.admin]
        return self._objective.cost(chosen, state)

    def _explore(self) -> None:
        self._finished = False
        stack = [_Node(0, 0, 0, self._transitions.initial(), (), ())]
        self._open(stack[0])
        while stack and not self._finished:
            top = stack[-1]
            if not top.options:
                stack.pop()
                continue
            child = self._extend(top, top.options.pop())
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
        cost = self._objective.at_least(node.chosen, node.state, node.request, missing)
        if self._is_too_dear(cost):
            return
        rest = self._transitions.available(node.state, alternative) & -1 << node.start
        if rest.bit_count() >= missing:
            node.options = self._ordered(node, alternative, missing, rest)

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
        narrowed = self._bounds.enter(node.request, node.state)
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
        if not alternative.admin:
            node.chosen = (*node.chosen, position)

    def _ordered(self, node: _Node, alternative: Alternative, missing: int, rest: int) -> list[int]:
        """One device of each sort that can still lead somewhere, the most promising last."""
        options: list[tuple[Cost, int]] = []
        untried = rest
        while untried:
            low = untried & -untried
            position = low.bit_length() - 1
            # The devices of a request are taken in order, so enough of them must lie ahead.
            if (rest & -low).bit_count() < missing:
                break
            alike = self._symmetry.equivalent(alternative, position, node.start, node.state)
            untried &= ~(alike | low)
            self._count_step()
            child = self._extend(node, position)
            cost = self._objective.at_least(child.chosen, child.state, child.request, missing - 1)
            if not self._is_too_dear(cost):
                options.append((cost, position))
        if self._exact:
            return [position for _, position in reversed(options)]
        options.sort(reverse=True)
        return [position for _, position in options]

    def _extend(self, node: _Node, position: int) -> _Node:
        alternative = self._alternatives[node.request]
        child = _Node(
            node.request, node.number + 1, position + 1, node.state, node.path, node.chosen
        )
        self._put(child, alternative, position)
        return child

    def _is_too_dear(self, cost: Cost) -> bool:
        return cost > self._best_cost if self._exact else cost >= self._best_cost

    def _note(self, node: _Node) -> None:
        cost = self._objective.cost(node.chosen, node.state)
        if not self._is_too_dear(cost):
            self.best = list(node.path)
            self._best_cost = cost
            self._finished = self._exact
