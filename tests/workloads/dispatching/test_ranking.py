"""Whom a workload is offered to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.workloads.dispatching.ranking import Outlook, Room, first_admitted, offer

NOW, LATER, NEVER, REFUSED, AWAY = Room


@pytest.mark.parametrize(
    ("rooms", "offered", "wanted"),
    [
        pytest.param({"a": NOW, "b": NOW}, (), ("a", "b"), id="all that have room"),
        pytest.param({"a": LATER, "b": NOW}, (), ("b",), id="not those that are busy"),
        pytest.param({"a": LATER, "b": LATER}, (), ("a", "b"), id="busy ones if nobody has room"),
        pytest.param({"a": NEVER, "b": LATER}, (), ("b",), id="never one without the devices"),
        pytest.param({"a": NEVER, "b": REFUSED, "c": AWAY}, (), (), id="nobody at all"),
        pytest.param(
            {"a": LATER, "b": NOW}, ("a",), ("b", "a"), id="whoever was asked stays asked"
        ),
        pytest.param({"a": AWAY, "b": NOW}, ("a",), ("b",), id="unless it does not answer"),
        pytest.param({"a": REFUSED, "b": NOW}, ("a",), ("b",), id="or must not have it any more"),
    ],
)
def test_a_workload_is_offered_to(
    rooms: dict[str, Room], offered: tuple[str, ...], wanted: tuple[str, ...]
) -> None:
    outlooks = [Outlook(name, room) for name, room in rooms.items()]
    assert offer(outlooks, offered).clusters == wanted


def test_it_is_said_why_others_are_not_asked() -> None:
    """With each of their reasons, as one text."""
    found = offer(
        [
            Outlook("a", NOW),
            Outlook("b", NEVER, "1 cannot allocate all claims."),
            Outlook("c", AWAY, "it does not answer"),
        ]
    )
    assert found.message == (
        "The workload is offered to a, where its pods have room. "
        "b: 1 cannot allocate all claims. c: it does not answer"
    )


def test_of_several_that_have_admitted_it_the_best_gets_it() -> None:
    """The best is the first that it was offered to, not the first to answer."""
    assert first_admitted(("b", "a"), {"a", "b"}) == "b"
    assert first_admitted(("b", "a"), {"a"}) == "a"
    assert first_admitted(("b", "a"), {"c"}) is None


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(Room)),
    st.sets(st.sampled_from("abcdef")),
)
def test_law_only_those_are_asked_that_could_run_it(
    rooms: dict[str, Room], before: set[str]
) -> None:
    """All that have room are, the rest only if they were asked before or nobody has room; and those with room come first."""
    found = offer([Outlook(name, room) for name, room in rooms.items()], before).clusters
    assert all(rooms[name] <= LATER for name in found)
    with_room = [name for name, room in rooms.items() if room is NOW]
    assert list(found[: len(with_room)]) == with_room
    if with_room:
        assert set(found) - set(with_room) <= before
    assert len(set(found)) == len(found)
