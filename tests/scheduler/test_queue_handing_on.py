"""One pod is woken to try for all of its shape. If it never answers, another one has to."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from drayman.api.core import Pod, PodSpec
from drayman.api.meta import ObjectMeta
from drayman.placement.wake import Wake
from drayman.scheduler.queue import Queue
from drayman.scheduler.unit import QueuedUnit

SHAPE = "shape"


def pod(name: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="default", uid=name), spec=PodSpec())


def asleep(*names: str) -> Queue:
    queue = Queue()
    for name in names:
        queue.add(pod(name))
    for entry in queue.take(100, 0.0):
        queue.sleep(entry, SHAPE, Wake.ANYTHING)
    return queue


def taken(queue: Queue) -> list[QueuedUnit]:
    return queue.take(100, 0.0)


GOES_WITHOUT_ANSWER: dict[str, Callable[[Queue, QueuedUnit], object]] = {
    "removed": lambda queue, entry: queue.remove(entry.key),
    "waits for a claim": lambda queue, entry: queue.wait(entry),
    "fails": lambda queue, entry: queue.hold_back(entry, 0.0),
    "has another shape": lambda queue, entry: queue.sleep(entry, "other", Wake.ANYTHING),
}


@pytest.mark.parametrize("name", GOES_WITHOUT_ANSWER)
def test_the_next_one_tries(name: str) -> None:
    """A woken pod that is removed, waits, fails or turns out to be of another shape is followed by the next of its shape."""
    queue = asleep("a", "b")
    queue.wake(Wake.NODES)
    (first,) = taken(queue)
    GOES_WITHOUT_ANSWER[name](queue, first)
    assert [entry.key for entry in taken(queue)] == ["b"]


def test_a_pod_that_is_removed_in_line_is_followed() -> None:
    """It need not have been tried."""
    queue = asleep("a", "b")
    queue.wake(Wake.NODES)
    queue.remove("a")
    assert [entry.key for entry in taken(queue)] == ["b"]


def test_woken_pods_are_counted_together() -> None:
    """An event that wakes one more while others of the shape are still being tried loses none of them."""
    names = [f"p{number}" for number in range(12)]
    queue = asleep(*names)
    queue.wake(Wake.NODES)
    (first,) = taken(queue)
    queue.placed(first)
    second, third = taken(queue)
    queue.sleep(second, SHAPE, Wake.ANYTHING)
    queue.wake(Wake.NODES)
    queue.placed(third)
    rounds = 0
    while entries := taken(queue):
        rounds += 1
        for entry in entries:
            queue.placed(entry)
    assert len(queue) == 0, f"asleep for ever after {rounds} rounds"
