"""Decisions in the log: one line each, and not too many of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drayman.scheduler.decision_log import Rate


@given(st.lists(st.integers(0, 400)), st.integers(1, 5))
def test_no_second_has_more_lines_than_are_allowed(pauses: list[int], most: int) -> None:
    """Seconds count from the first line in them; a line after a quiet second is always written."""
    now = 0.0
    rate = Rate(lambda: now, most)
    written: list[float] = []
    for pause in pauses:
        now += pause / 1024  # which floats add without an error
        if rate.admits():
            written.append(now)
    for at in written:
        assert sum(at <= other < at + 1 for other in written) <= 2 * most
    now += 1.0
    assert rate.admits()
