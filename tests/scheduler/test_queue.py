"""The queue: who is next, who waits for what."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drayman.api.core import Pod, PodSpec
from drayman.api.meta import ObjectMeta
from drayman.placement.wake import Wake
from drayman.scheduler.queue import Queue
from drayman.scheduler.unit import QueuedUnit


def pod(name: str, priority: int = 0) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=name),
        spec=PodSpec(priority=priority),
    )


def filled(*names: str) -> Queue:
    queue = Queue()
    for name in names:
        queue.add(pod(name))
    return queue


def taken(queue: Queue, now: float = 0.0, most: int = 100) -> list[str]:
    return [entry.key for entry in queue.take(most, now)]


def asleep(queue: Queue, shape: str = "shape", interest: Wake = Wake.ANYTHING) -> list[QueuedUnit]:
    entries = queue.take(100, 0.0)
    for entry in entries:
        queue.sleep(entry, shape, interest)
    return entries


def test_order_is_priority_then_arrival() -> None:
    """The highest priority comes first; among equals, who came first."""
    queue = Queue()
    for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5)):
        queue.add(pod(name, priority))
    assert taken(queue) == ["b", "d", "a", "c"]


def test_a_taken_pod_is_not_given_out_again() -> None:
    """A pod that is being tried is not in line, unless it changes meanwhile."""
    queue = filled("a")
    assert taken(queue) == ["a"]
    assert taken(queue) == []
    queue.add(pod("a"))
    assert taken(queue) == ["a"]


def test_a_removed_pod_is_forgotten_wherever_it_is() -> None:
    """In line, asleep, waiting or held back: a pod that is gone is never given out."""
    queue = filled("line", "asleep", "waiting", "held")
    by_name = {entry.key: entry for entry in queue.take(4, 0.0)}
    queue.add(pod("line"))
    queue.sleep(by_name["asleep"], "shape", Wake.ANYTHING)
    queue.wait(by_name["waiting"])
    queue.hold_back(by_name["held"], 0.0)
    for name in by_name:
        queue.remove(name)
    queue.wake(Wake.ANYTHING)
    queue.wake_pods(by_name)
    assert taken(queue, now=1000.0) == []
    assert len(queue) == 0


def test_an_event_wakes_the_first_of_each_shape() -> None:
    """Thousands of pods that wait for the same thing cost one attempt."""
    queue = filled("a", "b", "c")
    asleep(queue)
    queue.wake(Wake.DEVICES)
    assert taken(queue) == ["a"]


def test_success_wakes_twice_as_many_of_the_shape() -> None:
    """While pods of a shape are placed, more of them follow: one, two, four."""
    queue = filled(*"abcdefgh")
    asleep(queue)
    queue.wake(Wake.DEVICES)
    rounds = []
    while entries := queue.take(100, 0.0):
        rounds.append([entry.key for entry in entries])
        for entry in entries:
            queue.placed(entry)
    assert rounds == [["a"], ["b", "c"], ["d", "e", "f", "g"], ["h"]]


def test_a_refusal_puts_the_shape_back_to_sleep() -> None:
    """If the first of a shape still does not fit, the others are not tried until something else happens."""
    queue = filled("a", "b")
    asleep(queue)
    queue.wake(Wake.DEVICES)
    (first,) = queue.take(100, 0.0)
    queue.sleep(first, "shape", Wake.ANYTHING)
    assert taken(queue) == []
    queue.wake(Wake.DEVICES)
    assert taken(queue) == ["a"]


def test_events_of_no_interest_wake_nobody() -> None:
    """A pod without devices does not care about devices."""
    queue = filled("a")
    asleep(queue, interest=Wake.NODES)
    queue.wake(Wake.DEVICES)
    assert taken(queue) == []
    queue.wake(Wake.NODES)
    assert taken(queue) == ["a"]


def test_a_pod_that_waits_for_its_own_claim_is_woken_by_name_only() -> None:
    """Other events do not help a pod whose claim does not exist."""
    queue = filled("a")
    (entry,) = queue.take(1, 0.0)
    queue.wait(entry)
    queue.wake(Wake.ANYTHING)
    assert taken(queue) == []
    queue.wake_pods(["a"])
    assert taken(queue) == ["a"]


def test_errors_double_the_wait_up_to_the_longest() -> None:
    """1 s, 2 s, 4 s, then the longest back-off."""
    queue = Queue(longest_backoff_s=5.0)
    queue.add(pod("a"))
    waits, now = [], 0.0
    for _ in range(4):
        (entry,) = queue.take(1, now)
        due = queue.hold_back(entry, now)
        assert queue.next_due() == due
        assert taken(queue, due - 0.01) == []
        assert not queue.is_any_due(due - 0.01)
        assert queue.is_any_due(due)
        waits.append(due - now)
        now = due
    assert waits == [1.0, 2.0, 4.0, 5.0]


def test_a_pod_that_sleeps_until_a_time_is_tried_then() -> None:
    """At the earliest time that was named, once, and not where something else has brought it back."""
    queue = filled("a", "b")
    first, second = queue.take(2, 0.0)
    queue.sleep_alone(first, 20.0)
    queue.sleep_alone(first, 10.0)
    queue.sleep_alone(first, 30.0)
    queue.sleep_alone(second, 15.0)
    assert queue.next_due() == 10.0
    assert taken(queue, 9.0) == []
    assert taken(queue, 10.0) == ["a"]
    queue.remove("b")
    assert queue.next_due() is None
    queue.sleep_alone(first)
    assert taken(queue, 100.0) == []


def test_a_placed_pod_that_failed_comes_back() -> None:
    """A decision that could not be written is made again after a while."""
    queue = filled("a")
    (entry,) = queue.take(1, 0.0)
    queue.placed(entry)
    assert len(queue) == 0
    queue.hold_back(entry, 0.0)
    assert taken(queue, 2.0) == ["a"]


def test_a_new_form_of_a_sleeping_pod_is_tried_at_once() -> None:
    """What changed may fit now."""
    queue = filled("a")
    asleep(queue)
    queue.add(pod("a", priority=3))
    assert [entry.pod.spec.priority for entry in queue.take(1, 0.0)] == [3]


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "take", "wake", "remove", "held"]), st.integers(0, 5))
    )
)
def test_no_pod_is_lost_and_none_is_given_out_twice(steps: list[tuple[str, int]]) -> None:
    """Whatever happens, a pod that was not removed is in line, with somebody, or can be woken."""
    queue = Queue()
    known: set[str] = set()
    for step, number in steps:
        name = f"p{number}"
        if step == "add":
            queue.add(pod(name))
            known.add(name)
        elif step == "remove":
            queue.remove(name)
            known.discard(name)
        elif step == "wake":
            queue.wake(Wake.DEVICES)
        else:
            entries = queue.take(number, 0.0)
            assert len({entry.key for entry in entries}) == len(entries)
            for entry in entries:
                if step == "held":
                    queue.hold_back(entry, 0.0)
                else:
                    queue.sleep(entry, number % 2, Wake.ANYTHING)
    found: set[str] = set()
    for _ in range(20):
        queue.wake(Wake.DEVICES)
        for entry in queue.take(100, 1e9):
            found.add(entry.key)
            queue.placed(entry)
    assert found == known
