"""Laws of any history of a cluster with queues: what is reserved is what is still needed, and nothing outlives what it was for."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from quota.fitting.clusters import content
from rounds import rounds
from scheduler.laws.histories import History, fresh_state, next_places

Move = tuple[str, int]
OFTEN = ("create", "run", "start", "schedule", "suspend", "lose", "finish", "let_go", "release")
SELDOM = ("cycle", "requeue", "quota_back", "delete", "drain", "taint", "review", "restart")
MOVES = st.tuples(st.sampled_from((*OFTEN, *OFTEN, *SELDOM, "quiesce")), st.integers(0, 11))
HISTORIES = st.lists(MOVES, min_size=20, max_size=50)


def play(history: History, moves: list[Move]) -> None:
    for name, which in moves:
        if name == "quiesce":
            history.quiesce()
        else:
            move: Callable[[int], None] = getattr(history, name)
            move(which)


@settings(max_examples=rounds(50))
@given(HISTORIES)
def test_nothing_outlives_what_it_was_for(moves: list[Move]) -> None:
    """Once all is deleted, nothing is reserved, nothing is charged, every device is free, and the next pods go where they go in a fresh
    cluster."""
    history = History()
    play(history, moves)
    history.end()
    for state in (history.hall.cluster, history.state):
        assert list(state.ledger.holders()) == []
        assert content(state) == content(fresh_state())
    assert list(history.hall.rooms.book) == []
    assert not history.nominations
    assert not history.hall.admitted()
    assert next_places(history.state) == next_places(fresh_state())


@settings(max_examples=rounds(50))
@given(HISTORIES)
def test_what_is_reserved_is_what_is_still_needed(moves: list[Move]) -> None:
    """When nothing is under way any more, places are reserved for pods that have no node and for no others, by admission and by the
    scheduler alike, and no device has two holders."""
    history = History()
    play(history, moves)
    history.quiesce()
    for key, number in history.reserved():
        assert number <= history.waiting(key), key
    if not history.cordoned and not history.tainted:
        assert not any(map(history.waiting, history.jobs))
        for holders in history.holders():
            assert set(holders.values()) <= {1}
