"""Turns of units that are in queues of KAI, as the queue of a scheduler gives them out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drayman.quota.shares.live import LiveShares
from drayman.quota.shares.reach import Means, Reaching
from drayman.scheduler.queue import Queue
from drayman.scheduler.queue_turns import QueueTurns
from scheduler.queue_yard import Yard

LEAVES = ("a", "b", "c")


def test_a_queue_within_its_quota_comes_first() -> None:
    """Whoever came first; then the one that has less of its share."""
    yard = Yard(queues={"a": 0, "b": 2})
    for name in ("a0", "a1", "b0", "b1", "b2"):
        yard.add(name, name[0])
    assert [yard.take(1) for _ in range(5)] == [["b0"], ["b1"], ["a0"], ["a1"], ["b2"]]


def test_without_queues_labels_mean_nothing_until_there_are_some() -> None:
    """Pods come in the order of arrival. The first Queue orders those that are in line by then."""
    yard = Yard()
    for name in ("a0", "a1", "b0", "a2", "b1"):
        yard.add(name, name[0])
    assert yard.take(1) == ["a0"]
    yard.set_queue("a", 0)
    yard.set_queue("b", 2)
    assert yard.take(2) == ["b0", "b1"]
    yard.remove_queue("a")
    yard.remove_queue("b")
    yard.add("b2", "b")
    assert yard.take() == ["a1", "a2", "b2"]


def test_a_unit_that_moves_to_another_queue_stands_in_line_there() -> None:
    """It is given out once, when it is the turn of its new queue."""
    yard = Yard(queues={"a": 0, "b": 8})
    yard.add("moves", "a")
    yard.add("stays", "a")
    yard.add("other", "b")
    assert yard.take(1) == ["other"]
    yard.add("moves", "b")
    assert yard.take() == ["moves", "stays"]


def test_a_group_comes_the_sooner_the_fewer_of_its_members_run() -> None:
    """One that lacks members before one that has just enough, and that before one that has more, whichever is older."""
    yard = Yard(queues={"a": 8})
    for name, hour, running in (("more", "00", 2), ("enough", "01", 1), ("none", "02", 0)):
        yard.set_group(name, 1, f"2026-01-01T{hour}:00:00Z")
        for number in range(running):
            yard.run(f"{name}-{number}", "a", group=name)
    for name in ("more", "enough", "none"):
        yard.add(f"{name}-waits", "a", group=name)
    assert [list(each.pods) for each in yard.queue.take(3, 0.0)] == [
        ["none-waits"],
        ["enough-waits"],
        ["more-waits"],
    ]


def test_work_in_no_queue_keeps_its_own_place() -> None:
    """It takes nobody's turn, and nobody takes its."""
    yard = Yard(queues={"a": 0, "b": 1})
    for name, leaf in (("a0", "a"), ("lost", "nowhere"), ("b0", "b")):
        yard.add(name, leaf)
    assert yard.take() == ["b0", "a0", "lost"]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(LEAVES), st.integers(1, 3)),
        st.tuples(st.just("take"), st.just(""), st.integers(1, 3)),
        st.tuples(st.just("queue"), st.sampled_from(LEAVES), st.integers(0, 4)),
        st.tuples(st.just("end"), st.just(""), st.integers(0, 9)),
        st.tuples(st.just("remove"), st.just(""), st.integers(0, 9)),
    ),
    max_size=40,
)


@given(STEPS)
def test_turns_that_are_kept_are_those_from_scratch(steps: list[tuple[str, str, int]]) -> None:
    """Whatever comes, goes, starts or ends in between: who is next does not depend on what was asked before."""
    yard = Yard(queues=dict.fromkeys(LEAVES, 1))
    running: list[str] = []
    waiting: list[str] = []
    for number, (what, leaf, size) in enumerate(steps):
        if what == "add":
            yard.add(f"p{number}", leaf, size)
            waiting.append(f"p{number}")
        elif what == "queue":
            yard.set_queue(leaf, size)
        elif what == "end" and running:
            yard.state.queues.displace(running.pop(size % len(running)))
        elif what == "remove" and waiting:
            yard.queue.remove(waiting.pop(size % len(waiting)))
        elif what == "take":
            kept = yard.queue.arbiter
            for _ in range(size):
                expected = _next_from_scratch(yard, waiting)
                yard.queue.arbiter = kept
                taken = yard.take(1)
                assert taken == expected
                running += taken
                waiting = [each for each in waiting if each not in taken]


def _next_from_scratch(yard: Yard, waiting: list[str]) -> list[str]:
    """Who would be the next in a queue that has only just heard of everybody."""
    fresh = Queue()
    fresh.arbiter = QueueTurns(yard.state, LiveShares(yard.state))
    for uid in waiting:
        entry = yard.queue.get(uid)
        assert entry is not None
        fresh.add(entry.pod, None, None, entry.leaf)
    return [entry.key for entry in fresh.take(1, 0.0)]


def test_nobody_is_in_reach_who_has_only_their_own() -> None:
    """A unit takes from queues that have more than their share. Of others nobody is offered, and nobody's protection is awaited."""
    yard = Yard(gpus=6, queues={"a": 2, "b": 2, "c": 2})
    for number in range(4):
        yard.add(f"b{number}", "b")
    yard.add("c0", "c")
    yard.add("c1", "c")
    yard.take()
    yard.add("a0", "a")
    reaches, retry = Reaching(yard.state, yard.shares).of("a0", 0.0)
    assert [each.means for each in reaches] == [Means.RECLAIM]
    assert set(reaches[0].first) <= {f"b{number}" for number in range(4)}
    assert len(reaches[0].first) == 2
    assert retry is None
