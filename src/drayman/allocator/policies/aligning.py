"""The allocation that reaches the best levels of the stated alignments, or the proof that a required one is out of reach.

A ladder is an objective of its own that comes before all others: branch and bound with nothing else in mind finds the best levels, and
usually sees at the first look that nothing better exists. Where a required level is out of reach with the alternatives that were chosen,
the other choices are tried in the user's order.
"""

from __future__ import annotations

from collections.abc import Sequence

from drayman.allocator.policies.alternatives import choice_of, choices, fixed
from drayman.allocator.policies.firstfit import FirstFit
from drayman.allocator.policies.improve import align
from drayman.allocator.problem.tables import Alternative, Tables
from drayman.allocator.tree.engine import OutOfSteps


class Aligner:
    """A search for the best levels."""

    def __init__(self, tables: Tables, max_steps: int, *, in_order: bool) -> None:
        """`in_order`: of allocations that reach the same levels, the first in search order is wanted."""
        self._tables = tables
        self._max_steps = max_steps
        self._in_order = in_order
        self.steps = 0

    def run(self, found: Sequence[tuple[Alternative, int]]) -> list[tuple[Alternative, int]] | None:
        """Begins with an allocation that was found without regard to alignment. None if what is required is impossible.

        Raises OutOfSteps if that is still open. If only the best level is, what was found is the answer.
        """
        tried = choice_of(found)
        better = self._with(tried, found)
        if better is not None:
            return better
        for choice in choices(self._tables):
            if choice == tried:
                continue
            start = self._start(choice)
            better = None if start is None else self._with(choice, start)
            if better is not None:
                return better
        return None

    def _with(
        self, choice: dict[int, int], found: Sequence[tuple[Alternative, int]]
    ) -> list[tuple[Alternative, int]] | None:
        tables = fixed(self._tables, choice)
        result = align(tables, found, self._max_steps - self.steps, in_order=self._in_order)
        self.steps += result.steps
        if not result.is_violated:
            return result.placements
        if not result.is_proven:
            raise OutOfSteps
        return None

    def _start(self, choice: dict[int, int]) -> list[tuple[Alternative, int]] | None:
        if self.steps >= self._max_steps:
            raise OutOfSteps
        run = FirstFit(fixed(self._tables, choice), self._max_steps - self.steps, strict=False)
        try:
            return run.run()
        finally:
            self.steps += run.steps
