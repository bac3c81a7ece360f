"""Everything that prunes, put together: bounds, symmetry, memory of failures, order among identical requests."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property

from drayman.allocator.problem.limits import MAX_ENTRIES
from drayman.allocator.problem.tables import Alternative, Tables
from drayman.allocator.pruning.bounds import Bounds
from drayman.allocator.pruning.symmetry import Symmetry
from drayman.allocator.pruning.twins import Twins
from drayman.allocator.tree.engine import PlacedDevice, Pruning
from drayman.allocator.tree.state import State, Transitions

_KINDS_A_BOUND = 16


def prune(tables: Tables, transitions: Transitions) -> Pruning:
    """What prunes a search of these tables without changing its answer."""
    return _Pruning(tables, transitions)


class _Pruning:
    def __init__(self, tables: Tables, transitions: Transitions) -> None:
        self._tables = tables
        self._transitions = transitions
        # Failing early would hide that a claim gets too many devices, which decides whether a later error is ever reached.
        self._bounded = not (tables.error_capable and _may_overflow(tables))
        self._bounds = Bounds(tables, transitions)
        self._twins = Twins(tables)
        self._failed = False  # whether any device has failed yet

    @cached_property
    def _symmetry(self) -> Symmetry:
        return Symmetry(self._tables, self._transitions)

    def enter(self, request: int, state: State) -> State | None:
        if not self._bounded:
            return state
        # As long as everything goes well a bound now and then will do; with many kinds of requests each costs a lot.
        if not self._failed and request % (1 + self._bounds.kinds_ahead(request) // _KINDS_A_BOUND):
            return state
        return self._bounds.enter(request, state)

    def key(self, request: int, state: State) -> Hashable:
        return self._symmetry.key(request, state)

    def first(self, alternative: Alternative, trail: PlacedDevice | None) -> int:
        return self._twins.first(alternative, trail)

    def more(self, alternative: Alternative, missing: int, rest: int, state: State) -> bool:
        return not self._bounded or self._bounds.more(alternative, missing, rest, state)

    def equivalent(self, alternative: Alternative, position: int, start: int, state: State) -> int:
        self._failed = True
        return self._symmetry.equivalent(alternative, position, start, state)


def _may_overflow(tables: Tables) -> bool:
    most = [0] * len(tables.claims)
    for request in tables.requests:
        most[request.claim] += max(a.number for a in request.alternatives)
    return any(number > MAX_ENTRIES for number in most)
