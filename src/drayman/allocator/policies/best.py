"""Policy `best`: the allocation that `objective` prefers.

First fit finds out whether there is one and sets a baseline. Then the alternatives of `firstAvailable` requests are fixed one request
at a time, each to the earliest possible; then the levels of stated alignments, if there are any (`aligning`); then devices are chosen by
branch and bound. If the steps run out on the way, the best allocation found so far is the answer: it is valid, and no worse than first
fit's.
"""

from __future__ import annotations

from drayman.allocator.policies.aligning import Aligner
from drayman.allocator.policies.alternatives import choice_of, fixed
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
        self.is_misaligned = False  # whether only a required alignment is in the way

    def run(self) -> list[tuple[Alternative, int]] | None:
        """Devices and what they serve, in order; None if there is no allocation. Raises OutOfSteps."""
        found = self._feasible(self._tables)
        if found is None:
            return None
        choice, found = self._earliest_alternatives(found)
        if self._tables.alignment:
            aligned = self._aligned(found)
            if aligned is None:
                self.is_misaligned = True
                return None
            choice, found = choice_of(aligned), aligned
        if len(found) > IMPROVEMENT_SLOTS:
            return found
        budget = min(IMPROVEMENT_STEPS, self._max_steps - self.steps)
        tables = fixed(self._tables, choice)
        better = improve(tables, found, budget, is_first=self._is_first)
        self.steps += better.steps
        self.cost = better.cost
        return better.placements

    def _aligned(
        self, found: list[tuple[Alternative, int]]
    ) -> list[tuple[Alternative, int]] | None:
        run = Aligner(self._tables, self._max_steps - self.steps, in_order=False)
        try:
            aligned = run.run(found)
        finally:
            self.steps += run.steps
        if aligned != found:
            self._is_first = False
        return aligned

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
        chosen = choice_of(found)
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
                    found, chosen = better, choice_of(better)
                    break
            fixed_so_far[index] = chosen[index]
        return chosen, found
