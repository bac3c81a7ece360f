"""Sets of completion indexes, as a job's status writes them: `1,3-5,7`. A job may have a hundred thousand, so they stay intervals."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from drayman.api.integers import parse_integer

Interval = tuple[int, int]
"""The first and the last index."""


@dataclass(frozen=True, slots=True)
class IndexSet:
    """Ordered intervals that neither touch nor overlap."""

    intervals: tuple[Interval, ...] = ()

    @classmethod
    def parse(cls, text: str, completions: int) -> IndexSet:
        """Reads the text form. Indexes past the completions are left out, and so is what is not an interval."""
        found = []
        for part in text.split(",") if text else ():
            begin, _, end = part.partition("-")
            first, last = parse_integer(begin), parse_integer(end or begin)
            if first is not None and last is not None:
                found.append((first, min(last, completions - 1)))
        return cls.joined(interval for interval in found if interval[0] < completions)

    @classmethod
    def joined(cls, intervals: Iterable[Interval]) -> IndexSet:
        """A set of intervals that may be in any order and overlap."""
        result: list[Interval] = []
        for first, last in sorted(intervals):
            if result and first <= result[-1][1] + 1:
                result[-1] = (result[-1][0], max(result[-1][1], last))
            else:
                result.append((first, last))
        return cls(tuple(result))

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.intervals)

    def __contains__(self, index: int) -> bool:
        place = bisect_right(self.intervals, (index, float("inf"))) - 1
        return place >= 0 and index <= self.intervals[place][1]

    def __str__(self) -> str:
        return ",".join(map(_text, self.intervals))

    def with_indexes(self, indexes: Iterable[int]) -> IndexSet:
        added = [(index, index) for index in indexes]
        return IndexSet.joined((*self.intervals, *added)) if added else self

    def __or__(self, other: IndexSet) -> IndexSet:
        return IndexSet.joined((*self.intervals, *other.intervals))

    def overlap(self, other: IndexSet) -> int:
        """How many indexes are in both."""
        return len(self) + len(other) - len(self | other)

    def absent(self, count: int, completions: int) -> list[int]:
        """The first so many indexes that are not in the set."""
        found: list[int] = []
        candidate = 0
        for first, last in (*self.intervals, (completions, completions)):
            end = min(first, completions, candidate + count - len(found))
            found.extend(range(candidate, end))
            candidate = max(candidate, last + 1)
        return found[:count]


def _text(interval: Interval) -> str:
    first, last = interval
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"


NONE: Final = IndexSet()
