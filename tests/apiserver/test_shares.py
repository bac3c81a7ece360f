"""How users share a total."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.apiserver.protocol.access import ADMIN, NODES, User
from drayman.apiserver.protocol.shares import Shares

ALICE, BOB, CAROL = User("alice"), User("bob"), User("carol")
NODE = User("system:node:n", groups=(NODES,))


def taken_by(shares: Shares, user: User, stack: ExitStack, amount: int = 1) -> int:
    """How much a user gets who takes until there is no room."""
    taken = 0
    while shares.has_room(user, amount):
        stack.enter_context(shares.taking(user, amount))
        taken += amount
    return taken


def test_one_user_gets_half_and_the_next_a_part_of_the_rest() -> None:
    """There is room for everyone who comes."""
    shares = Shares(1_000)
    with ExitStack() as stack:
        found = [taken_by(shares, user, stack) for user in (ALICE, BOB, CAROL)]
    assert found == [500, 250, 125]


def test_users_who_take_in_turn_get_the_same() -> None:
    """A third each for two, and a third is left."""
    shares = Shares(900)
    with ExitStack() as stack:
        while shares.has_room(ALICE) and shares.has_room(BOB):
            stack.enter_context(shares.taking(ALICE))
            stack.enter_context(shares.taking(BOB))
        assert shares.taken == 600


@pytest.mark.parametrize("user", [ADMIN, NODE], ids=lambda user: user.name)
def test_the_reserve_is_for_the_system(user: User) -> None:
    """However many users there are, an administrator and a node find room."""
    shares = Shares(100, reserve=10)
    with ExitStack() as stack:
        for number in range(200):
            taken_by(shares, User(f"u{number}"), stack)
        assert shares.taken == 90
        assert not shares.has_room(ALICE)
        assert taken_by(shares, user, stack) == 5


def test_more_than_is_free_is_refused() -> None:
    """An amount fits as a whole or not at all."""
    shares = Shares(10)
    assert shares.has_room(ALICE, 10)
    assert not shares.has_room(ALICE, 11)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 20))))
def test_what_is_given_back_leaves_no_trace(takes: list[tuple[str, int]]) -> None:
    """Taking and giving back is as if nothing had happened, and no more than the total is ever taken."""
    shares = Shares(100)
    with ExitStack() as stack:
        for name, amount in takes:
            if shares.has_room(User(name), amount):
                stack.enter_context(shares.taking(User(name), amount))
            assert shares.taken <= 100
    assert shares == Shares(100)
