"""Waiting in line, user by user."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.apiserver.protocol.round_robin import RoundRobin


def popped(waiting: RoundRobin[str]) -> list[str]:
    return [waiting.pop() for _ in range(len(waiting))]


def test_users_take_turns() -> None:
    """A user with one item waits for one item of each other user, however many those have."""
    waiting: RoundRobin[str] = RoundRobin()
    for item in ("a1", "a2", "a3", "b1", "c1", "c2"):
        waiting.put(item[0], item)
    assert popped(waiting) == ["a1", "b1", "c1", "a2", "c2", "a3"]


def test_an_item_that_came_too_early_is_the_next_of_its_user() -> None:
    """And its user is the next one, if nothing else of that user waits."""
    waiting: RoundRobin[str] = RoundRobin()
    for item in ("a1", "b1"):
        waiting.put(item[0], item)
    waiting.put_first("a", waiting.pop())
    assert popped(waiting) == ["a1", "b1"]


def test_nothing_waits() -> None:
    """An empty line has no next item."""
    with pytest.raises(IndexError):
        RoundRobin[str]().pop()


@given(st.lists(st.sampled_from("abcd")))
def test_everything_is_served_once_and_in_the_order_of_its_user(users: list[str]) -> None:
    """Nothing is lost, and no user overtakes another by more than one item while both wait."""
    waiting: RoundRobin[tuple[str, int]] = RoundRobin()
    for number, user in enumerate(users):
        waiting.put(user, (user, number))
    served = [waiting.pop() for _ in users]
    assert len(waiting) == 0
    for user in set(users):
        own = [number for name, number in served if name == user]
        assert own == [number for number, name in enumerate(users) if name == user]
    rounds = [sum(name == user for name, _ in served[:i]) for i, (user, _) in enumerate(served)]
    assert rounds == sorted(rounds)
