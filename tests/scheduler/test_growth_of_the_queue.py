"""An event costs the queue one attempt for each shape, however many pods of the shape sleep."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drayman.api.core import Pod, PodSpec
from drayman.api.meta import ObjectMeta
from drayman.placement.wake import Wake
from drayman.scheduler.queue import Queue
from steps import steps_of

FEW, TIMES = 50, 16
SHAPE = "shape"


def pod(number: int, priority: int = 0) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=f"p{number}", uid=f"p{number}"), spec=PodSpec(priority=priority)
    )


def asleep(number: int) -> Queue:
    """A queue in which so many pods of one shape sleep."""
    queue = Queue()
    for each in range(number):
        queue.add(pod(each))
    for entry in queue.take(number, 0.0):
        queue.sleep(entry, SHAPE, Wake.ANYTHING)
    return queue


def wake_and_refuse(queue: Queue) -> None:
    """Something happens, and the pod that is woken for its shape is refused again."""
    queue.wake(Wake.NODES)
    (entry,) = queue.take(10, 0.0)
    queue.sleep(entry, SHAPE, Wake.ANYTHING)


def test_an_event_costs_the_same_however_many_sleep() -> None:
    """The steps of fifty events with sixteen times as many sleepers are nearly the same."""

    def fifty(queue: Queue) -> int:
        return steps_of(lambda: [wake_and_refuse(queue) for _ in range(50)])

    few, many = fifty(asleep(FEW)), fifty(asleep(TIMES * FEW))
    assert many < 1.5 * few, (few, many)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["sleep", "wake", "leave", "change"]),
            st.integers(0, 5),
            st.integers(0, 2),
        )
    )
)
def test_the_first_of_a_shape_is_woken(steps: list[tuple[str, int, int]]) -> None:
    """It is the one with the highest priority, and of these the oldest, after any history."""
    queue = Queue()
    for what, number, priority in steps:
        uid = f"p{number}"
        if what == "sleep":
            queue.add(pod(number, priority))
            for entry in queue.take(10, 0.0):
                queue.sleep(entry, SHAPE, Wake.ANYTHING)
        elif what == "leave":
            queue.remove(uid)
        elif what == "change":
            if uid in queue:
                queue.add(pod(number, priority))
        else:
            everyone = [queue.get(f"p{each}") for each in range(6)]
            asleep = [each for each in everyone if each is not None and queue.is_idle(each)]
            awake = [each for each in everyone if each is not None and each not in asleep]
            queue.wake(Wake.NODES)
            taken = queue.take(10, 0.0)
            if not awake and asleep:
                assert taken == [min(asleep, key=lambda each: each.rank)]
            for entry in taken:
                queue.sleep(entry, SHAPE, Wake.ANYTHING)
