"""Policy `best`: the allocation that `objective` prefers.

First fit finds out whether there is one and sets a baseline. Then the alternatives of `firstAvailable` requests are fixed one request
at a time, each to the earliest possible; then devices are chosen by branch and bound. If the steps run out on the way, the best
allocation found so far is the answer: it is valid, and no worse than first fit's.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from drayman.allocator.policies.firstfit import FirstFit
from drayman.allocator.policies.improve import improve
from drayman.allocator.problem.limits import IMPROVEMENT_SLOTS, IMPROVEMENT_STEPS
from drayman.allocator.problem.outcome import Cost
from drayman.allocator.problem.tables import Alternative, Tables
from drayman.allocator.tree.engine import OutOfSteps


class Best:
    """A search for the best allocation."""

    def __init__(self, tables: Tables, max_steps: int) -> None:
        self._tables = tables
        self._max_steps = max_steps
        self.steps = 0
        self._is_first = False  # whether nothing comes before what was found last, in search order
        self.cost: Cost | None = None  # of what was found, if that was looked at

    def run(self) -> list[tuple[Alternative, int]] | None:
        """Devices and what they serve, in order; None if there is no allocation. Raises OutOfSteps."""
        found = self._feasible(self._tables)
        if found is None:
            return None
        choice, found = self._earliest_alternatives(found)
        if len(found) > IMPROVEMENT_SLOTS:
            return found
        budget = min(IMPROVEMENT_STEPS, self._max_steps - self.steps)
        tables = fixed(self._tables, choice)
        better = improve(tables, found, budget, is_first=self._is_first)
        self.steps += better.steps
        self.cost = better.cost
        return better.placements

    def _feasible(self, tables: Tables) -> list[tuple[Alternative, int]] | None:
        run = FirstFit(tables, self._max_steps - self.steps, strict=False)
        try:
            found = run.run()
        finally:
            self.steps += run.steps
        if found is not None:
            self._is_first = run.in_order
        return found

    def _earliest_alternatives(
        self, found: list[tuple[Alternative, int]]
    ) -> tuple[dict[int, int], list[tuple[Alternative, int]]]:
        """The lexicographically smallest choice of alternatives that can be served, and a way to serve it."""
        chosen = _choice(found)
        fixed_so_far: dict[int, int] = {}
        for index, request in enumerate(self._tables.requests):
            if not request.listed:
                continue
            for earlier in range(chosen[index]):
                alternative = request.alternatives[earlier]
                if alternative.candidates.bit_count() < max(1, alternative.number):
                    continue
                attempt = fixed(self._tables, {**fixed_so_far, index: earlier})
                try:
                    better = self._feasible(attempt)
                except OutOfSteps:
                    return chosen, found
                if better is not None:
                    found, chosen = better, _choice(better)
                    break
            fixed_so_far[index] = chosen[index]
        return chosen, found


def fixed(tables: Tables, choice: Mapping[int, int]) -> Tables:
    """The same problem with the alternative of some requests decided."""
    if not any(request.listed for request in tables.requests):
        return tables
    requests = tuple(
        replace(request, alternatives=(request.alternatives[choice[i]],), listed=False)
        if request.listed and i in choice
        else request
        for i, request in enumerate(tables.requests)
    )
    return replace(tables, requests=requests)


def _choice(placements: list[tuple[Alternative, int]]) -> dict[int, int]:
    return {alternative.request: alternative.index for alternative, _ in placements}
