"""Bars show counts in proportion and lose nothing."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from drayman.cli.map.bars import SEGMENTS, bar, cells_for, legend, words
from drayman.placement.occupancy import State

NUMBERS = st.lists(st.integers(0, 50_000), min_size=1, max_size=6)


@given(numbers=NUMBERS, width=st.integers(6, 60))
def test_a_bar_is_full_and_shows_everything_there_is(numbers: list[int], width: int) -> None:
    """All cells are used if there is anything, each number that is not zero has a cell, and zero has none."""
    cells = cells_for(numbers, width)
    assert sum(cells) == (width if any(numbers) else 0)
    assert [bool(cell) for cell in cells] == [bool(number) for number in numbers]


@given(numbers=NUMBERS, width=st.integers(6, 60))
def test_more_never_gets_fewer_cells(numbers: list[int], width: int) -> None:
    """Of two numbers, the larger has at least as many cells but for one that rounding may cost."""
    pairs = sorted(zip(numbers, cells_for(numbers, width), strict=True))
    assert all(small[1] <= large[1] + 1 for small, large in itertools.pairwise(pairs))


def test_states_can_be_told_apart_without_colour() -> None:
    """Every segment has a character of its own, also where there is only ASCII."""
    assert len({segment.glyph for segment in SEGMENTS}) == len(SEGMENTS)
    assert len({segment.ascii_glyph for segment in SEGMENTS}) == len(SEGMENTS)
    assert {state for segment in SEGMENTS for state in segment.states} == set(State)
    counts = {State.USED: 1, State.PARTITIONED: 1, State.FREE: 2}
    assert bar(counts, 8, ascii_only=True).plain == "##++...."
    assert legend(counts, ascii_only=True).plain == "# used  + in part  . free"
    assert words(counts) == "1 used, 1 in part, 2 free"
