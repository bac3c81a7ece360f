"""How full queues are, compared with each other."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from drayman.quota.shares.fullness import fullness

AMOUNTS = st.integers(0, 1_000)
SHARES = st.fractions(min_value=Fraction(1, 10), max_value=1_000)


@given(AMOUNTS, SHARES)
def test_a_queue_that_uses_just_its_share_is_as_full_as_any_other_that_does(
    share: int, other: Fraction
) -> None:
    """Large or small, and less full than one that uses more of its share."""
    own = share + 1
    assert fullness(own, own) == fullness(7, 7)
    assert (fullness(own, other) > fullness(7, 7)) == (own > other)


@given(st.integers(1, 1_000), AMOUNTS, SHARES)
def test_who_uses_something_without_a_share_is_fuller_than_all_with_one(
    used: int, others: int, share: Fraction
) -> None:
    """However little it is, and however much the others are beyond their shares."""
    assert fullness(used, 0) > fullness(others * 10**9, share)
    assert fullness(-used, 0) < fullness(-others * 10**9, share)


@given(st.integers(-1_000, 1_000), st.integers(-1_000, 1_000), st.one_of(st.just(0), SHARES))
def test_who_uses_more_is_fuller(one: int, other: int, share: Fraction | int) -> None:
    """Of the same share, also of none."""
    assert (fullness(one, share) < fullness(other, share)) == (one < other)
