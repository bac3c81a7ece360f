"""Counting out: the answers of augmenting paths are those of trying everything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drayman.allocator.pruning.flow import largest_matching, serves

ROWS = st.lists(st.integers(0, 31), max_size=6)


def most(rows: list[int]) -> int:
    """The most rows that get a member of their own in any order, each taking the best for those after it."""
    members = range(5)

    def best(left: tuple[int, ...], free: int) -> int:
        if not left:
            return 0
        row, rest = left[0], left[1:]
        taking = [
            1 + best(rest, free & ~(1 << m)) for m in members if row & free >> m << m & 1 << m
        ]
        return max([best(rest, free), *taking])

    return best(tuple(rows), 31)


@given(ROWS)
def test_the_largest_matching(rows: list[int]) -> None:
    """Also after rows for which there was nothing left."""
    assert largest_matching(rows) == most(rows)


@given(st.lists(st.tuples(st.integers(0, 31), st.integers(0, 3)), max_size=4))
def test_demands_for_several(demands: list[tuple[int, int]]) -> None:
    """A demand for several is as many rows."""
    rows = [items for items, need in demands for _ in range(need)]
    assert serves(demands) == (most(rows) == len(rows))
