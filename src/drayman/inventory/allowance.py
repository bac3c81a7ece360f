"""How much may be worked out before others get their turn.

A decision takes as long as its pod makes it take: selectors may be costly, devices many, and the search for them hard. Where others wait
on the same event loop, the work of a decision is limited. What is worked out is kept, so a decision that was interrupted goes on from
there when it is made again.

The unit of work is that of CEL's costs, less than a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Final

STEP: Final = 100
"""The work of one step of a search for devices."""
BYTE: Final = 100
"""The work of compiling one byte of an expression."""
PART: Final = 200_000
"""The work that is done at a time where others wait: less than a tenth of a second."""
LONG: Final = 100_000
"""Work that cannot be interrupted and takes so much is not begun within a limit. It is left to be done elsewhere."""


class UnfinishedError(Exception):
    """There was more to work out than the limit allows."""

    def __init__(self, rest: Callable[[], object] | None = None) -> None:
        super().__init__("there is more to work out")
        self.rest = rest
        """What must be done elsewhere before it makes sense to try again; it may be called in any thread."""


class Part:
    """What is worked out within a limit."""

    __slots__ = ("has_advanced",)

    def __init__(self) -> None:
        self.has_advanced = False
        """Whether anything was worked out that need not be worked out again."""


class Allowance:
    """The work that may still be done. Without a limit to begin with."""

    __slots__ = ("_part", "left")

    def __init__(self) -> None:
        self.left = inf
        self._part: Part | None = None

    def keep(self) -> None:
        """Note that something was worked out for good."""
        if self._part is not None:
            self._part.has_advanced = True

    def spend(self, work: float) -> None:
        """Account for work that is about to be done. Raises UnfinishedError if the limit was reached before."""
        if self.left <= 0:
            raise UnfinishedError
        self.left -= work

    def check(self, work: float, do: Callable[[], object]) -> None:
        """Account for work that cannot be interrupted. Raises UnfinishedError, also if it is too much for any limit."""
        if work >= LONG and self.left != inf:
            raise UnfinishedError(do)
        self.spend(work)

    def note(self, work: float) -> None:
        """Account for work that has been done."""
        self.left -= work

    @contextmanager
    def limited(self, work: float) -> Iterator[Part]:
        """Within the block, no more than this may be done, and what was begun."""
        self.left, self._part = work, Part()
        try:
            yield self._part
        finally:
            self.left, self._part = inf, None
