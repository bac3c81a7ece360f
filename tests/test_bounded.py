"""Memory that does not grow without end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.bounded import Bounded

KEYS = st.integers(0, 30)
STEPS = st.lists(st.tuples(st.sampled_from(("ask", "renew", "drop")), KEYS), max_size=120)


@given(st.integers(1, 20), STEPS)
def test_it_holds_the_youngest_entries_and_never_too_many(
    most: int, steps: list[tuple[str, int]]
) -> None:
    """Whatever is done, no more than `most` entries are held, each with the value it was made with, and none that is older than one
    that had to go."""
    held: Bounded[int, str] = Bounded(most)
    by_age: list[int] = []  # of all entries that were made and not dropped, the oldest first
    for step, key in steps:
        if step == "ask":
            found = held.get(key)
            if found is None:
                found = held[key] = f"made of {key}"
                by_age = [one for one in by_age if one != key] + [key]
            assert found == f"made of {key}"
        elif key in held:
            by_age.remove(key)
            if step == "renew":
                held.renew(key)
                by_age.append(key)
            else:
                del held[key]
        assert len(held) <= most
        assert list(held) == (by_age[-len(held) :] if held else [])


@pytest.mark.parametrize("most", [1, 2, 255, 256, 511, 512, 5000])
def test_next_to_nothing_goes_when_room_is_made(most: int) -> None:
    """A new entry takes the place of the oldest one, or of one in 256 where there are that many."""
    held: Bounded[int, int] = Bounded(most)
    for number in range(most + 1):
        held[number] = number
    gone = max(1, most // 256)
    assert list(held) == list(range(gone, most + 1))


def test_another_value_for_the_same_key_takes_no_room() -> None:
    """A key that is assigned to again stays one entry, as old as it was."""
    held: Bounded[str, int] = Bounded(2)
    held["a"] = 1
    held["b"] = 2
    held["a"] = 3
    assert list(held.items()) == [("a", 3), ("b", 2)]


def test_there_is_room_for_one_at_least() -> None:
    """A memory that can hold nothing is a mistake of whoever makes it."""
    with pytest.raises(ValueError, match="at least one entry, not 0"):
        Bounded(0)


@pytest.mark.parametrize("name", ["setdefault", "update", "__ior__"])
def test_nothing_gets_around_the_bound(name: str) -> None:
    """What a dict offers besides assignment to make entries is not there."""
    assert getattr(Bounded(1), name) is None
