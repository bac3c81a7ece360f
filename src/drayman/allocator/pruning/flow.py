"""Counting out: whether every demand can have as many items of its own as it needs.

Items are the bits of a set: devices, or values of an attribute. This is bipartite matching with multiplicities, by augmenting paths
over bitsets.
"""

from __future__ import annotations

from collections.abc import Iterable


def serves(demands: Iterable[tuple[int, int]]) -> bool:
    """Whether each demand (a set, and how many members of it are needed) can be served, no member twice."""
    merged: dict[int, int] = {}
    for items, need in demands:
        if need > 0:
            merged[items] = merged.get(items, 0) + need
    if len(merged) == 1:
        ((items, need),) = merged.items()
        return items.bit_count() >= need
    return _Assignment(sorted(merged.items(), key=lambda demand: demand[0].bit_count())).complete()


def largest_matching(edges: Iterable[int]) -> int:
    """How many rows can have a member of their own; each row is the set of members it may have."""
    rows = [row for row in edges if row]
    assignment = _Assignment([(row, 1) for row in sorted(rows, key=int.bit_count)])
    return assignment.size()


class _Assignment:
    def __init__(self, demands: list[tuple[int, int]]) -> None:
        self._sets = [items for items, _ in demands]
        self._needs = [need for _, need in demands]
        self._given = [0] * len(demands)
        self._used = 0
        self._stuck = 0  # items from which no path leads to a free one, now and later

    def complete(self) -> bool:
        union = 0
        for items, need in zip(self._sets, self._needs, strict=True):
            if items.bit_count() < need:
                return False
            union |= items
        if union.bit_count() < sum(self._needs):
            return False
        return all(self._fill(index) for index in range(len(self._sets)))

    def size(self) -> int:
        return sum(self._fill(index) for index in range(len(self._sets)))

    def _fill(self, index: int) -> bool:
        free = self._sets[index] & ~self._used
        missing = self._needs[index]
        if free.bit_count() <= missing:
            self._given[index] = free
            missing -= free.bit_count()
        else:
            taken = 0
            while missing:
                low = free & -free
                taken |= low
                free ^= low
                missing -= 1
            self._given[index] = taken
        self._used |= self._given[index]
        return all(self._augment(index) for _ in range(missing))

    def _augment(self, root: int) -> bool:
        """Find one more item for a demand by moving items between the others."""
        reached_by: dict[int, tuple[int, int]] = {}  # demand: from which, giving up which item
        seen_items = self._stuck
        queue = [root]
        for index in queue:
            fresh = self._sets[index] & ~seen_items
            if not fresh:
                continue
            free = fresh & ~self._used
            if free:
                self._shift(index, free & -free, reached_by)
                return True
            seen_items |= fresh
            for other, given in enumerate(self._given):
                takeable = given & fresh
                if takeable and other != root and other not in reached_by:
                    reached_by[other] = (index, takeable & -takeable)
                    queue.append(other)
        self._stuck = seen_items
        return False

    def _shift(self, index: int, item: int, reached_by: dict[int, tuple[int, int]]) -> None:
        self._used |= item
        while index in reached_by:
            receiver, released = reached_by[index]
            self._given[index] = self._given[index] & ~released | item
            index, item = receiver, released
        self._given[index] |= item
