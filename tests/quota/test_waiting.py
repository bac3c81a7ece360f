"""Who comes next in a cluster queue, and who has been tried in vain."""

from __future__ import annotations

import pytest

from drayman.quota.demands import PodSetDemand
from drayman.quota.entries import Entry, Facts
from drayman.quota.waiting import Again, Waiting
from steps import steps_of


def entry(
    name: str, cpu: int = 1, priority: int = 0, since: float = 0.0, later: float = 0
) -> Entry:
    demand = PodSetDemand("main", 1, None, {"cpu": cpu}, (), {"cpu": cpu}, {}, None, (), None)
    return Entry(
        Facts(
            key=name,
            namespace="default",
            uid=name,
            queue="default/l",
            priority=priority,
            created=since,
            queued_since=since,
            active=True,
            finished=False,
            evicted=False,
            evicted_for="",
            requeue_at=later,
            demands=(demand,),
            failed_checks=False,
            gates_closed=False,
            admitted=False,
            pods_ready=False,
        )
    )


def queue_of(*entries: Entry, strict: bool = False) -> Waiting:
    waiting = Waiting(strict=strict)
    for each in entries:
        waiting.add(each, 0.0)
    return waiting


def head(waiting: Waiting) -> str | None:
    found = waiting.head()
    return None if found is None else found.key


def test_priority_then_age_then_name() -> None:
    """The order of a queue."""
    waiting = queue_of(
        entry("b", since=1), entry("a", since=1), entry("old", since=0), entry("top", priority=1)
    )
    seen = []
    while (found := waiting.head()) is not None:
        seen.append(found.key)
        waiting.discard(found.key)
    assert seen == ["top", "old", "a", "b"]


def test_those_of_one_shape_are_refused_together_and_come_back_together() -> None:
    """The next one that is tried has another shape; who comes later waits with the others."""
    waiting = queue_of(entry("a"), entry("b", since=1), entry("other", cpu=2, since=2))
    first = waiting.head()
    assert first is not None
    waiting.refuse(first, Again.NO_QUOTA)
    assert head(waiting) == "other"
    waiting.add(entry("c", since=3), 0.0)
    waiting.discard("other")
    assert head(waiting) is None
    assert len(waiting) == 3
    waiting.wake()
    assert head(waiting) == "a"


def test_a_strict_queue_stays_with_its_head() -> None:
    """Whatever it was refused for, except that the queue does not serve its namespace."""
    first = entry("a")
    waiting = queue_of(first, entry("b", since=1), strict=True)
    waiting.refuse(first, Again.NO_QUOTA)
    assert head(waiting) == "a"
    waiting.refuse(first, Again.NAMESPACE)
    assert head(waiting) == "b"
    waiting.wake()
    assert head(waiting) == "b"
    waiting.wake_strangers()
    assert head(waiting) == "a"


def test_who_waits_for_victims_comes_before_all_others() -> None:
    """Also when it got nothing once they were gone. Until it leaves, or another one drives out somebody."""
    low, high = entry("low", since=5), entry("high", priority=1)
    waiting = queue_of(low, high)
    waiting.refuse(low, Again.VICTIMS)
    assert head(waiting) == "low"
    waiting.refuse(low, Again.AT_ONCE)
    assert head(waiting) == "low"
    waiting.refuse(low, Again.NO_QUOTA)
    assert head(waiting) == "high"
    waiting.wake()
    assert head(waiting) == "low"
    waiting.refuse(high, Again.VICTIMS)
    assert head(waiting) == "high"
    waiting.discard(high.key)
    assert head(waiting) == "low"
    waiting.add(high, 0.0)
    assert head(waiting) == "high"


def test_who_has_no_room_does_not_come_first_for_its_victims() -> None:
    """Whoever drove others out and finds no room is set aside, though another one of its shape is ready; others have their turn."""
    preemptor = entry("preemptor")
    waiting = queue_of(preemptor, entry("alike", since=1), entry("other", cpu=2, since=2))
    waiting.refuse(preemptor, Again.VICTIMS)
    waiting.refuse(preemptor, Again.ROOM)
    assert waiting.is_aside(preemptor)
    assert head(waiting) == "alike"
    waiting.wake_roomless()
    assert head(waiting) == "preemptor"


@pytest.mark.parametrize("strict", [False, True])
def test_all_of_a_shape_wait_for_room_if_none_of_them_has_any(strict: bool) -> None:
    """Others are tried, also in a strict queue, and all come back when there may be room."""
    first = entry("a")
    waiting = queue_of(first, entry("b"), entry("c", cpu=2, since=9), strict=strict)
    waiting.refuse(first, Again.ROOM_OF_ALL)
    assert head(waiting) == "c"
    assert waiting.wake_roomless()
    waiting.discard("a")
    assert head(waiting) == "b"


@pytest.mark.parametrize("again", [Again.NO_QUOTA, Again.ALONE, Again.ROOM, Again.NAMESPACE])
def test_one_workload_is_tried_again_whatever_it_was_refused_for(again: Again) -> None:
    """Others of its shape are not. It waits once, however often that is said."""
    first = entry("a")
    waiting = queue_of(first, entry("b", since=1))
    waiting.refuse(first, again)
    for _ in range(2):
        waiting.try_again(first)
        assert head(waiting) == "a"
    waiting.discard("a")
    assert head(waiting) == (None if again is Again.NO_QUOTA else "b")
    waiting.wake()
    assert head(waiting) == "b"


def test_who_must_not_be_tried_yet_is_passed_over() -> None:
    """Its time comes."""
    waiting = queue_of(entry("later", later=10.0), entry("now", since=1))
    assert head(waiting) == "now"
    waiting.wake_due(10.0)
    assert head(waiting) == "later"


def test_whoever_changes_shape_leaves_its_group() -> None:
    """It is tried again, and the others stay where they are."""
    first, second = entry("a"), entry("b", since=1)
    waiting = queue_of(first, second)
    waiting.refuse(first, Again.NO_QUOTA)
    waiting.add(entry("b", cpu=7, since=1), 0.0)
    assert head(waiting) == "b"
    waiting.discard("b")
    assert head(waiting) is None


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("is_alike", [True, False], ids=["of the same shape", "of another shape"])
def test_whoever_comes_and_goes_takes_up_no_more_room(strict: bool, is_alike: bool) -> None:
    """Behind one that stays, another one is stopped and resumed for ever: the queue does not grow, and the order stays."""
    first, last = entry("a"), entry("z", since=9)
    waiting = queue_of(first, last, strict=strict)
    if is_alike:
        waiting.refuse(first, Again.NO_QUOTA)
    coming = entry("b", cpu=1 if is_alike else 2, since=1)
    sizes = []
    for _ in range(10):
        for _ in range(200):
            waiting.discard("b")
            waiting.add(coming, 0.0)
        sizes.append(_kept(waiting))
    assert max(sizes) < 200
    waiting.wake()
    seen = []
    while (found := waiting.head()) is not None:
        seen.append(found.key)
        waiting.discard(found.key)
    assert seen == ["a", "b", "z"]


def _kept(waiting: Waiting) -> int:
    """How many items a queue keeps."""
    groups = (*waiting._pooled.values(), *waiting._ready.values())
    return sum(len(group.heap) for group in groups) + len(waiting._fronts)


def test_workloads_that_wait_for_a_time_cost_nothing_until_then() -> None:
    """A cycle takes the same steps however many were evicted and are not due yet."""

    def steps(number: int) -> int:
        waiting = queue_of(*(entry(f"w{each}", later=100.0 + each) for each in range(number)))
        return steps_of(lambda: waiting.wake_due(99.0))

    assert steps(160) == steps(10)


def test_the_time_of_a_workload_may_change() -> None:
    """Only its last time counts, whether that is earlier or later, and however often it changes."""
    waiting = queue_of()
    for number in range(200):
        waiting.add(entry("late", later=10.0 + number), 0.0)
        waiting.add(entry("early", later=500.0 - number), 0.0)
    waiting.wake_due(208.9)
    assert head(waiting) is None
    waiting.wake_due(209.0)
    assert head(waiting) == "late"
    waiting.discard("late")
    waiting.wake_due(301.0)
    assert head(waiting) == "early"
