"""A work queue gives each key out once, to one worker at a time."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.cluster import Backoff, WorkQueue
from drayman.cluster.breaks import STRETCH_S


async def test_keys_come_in_the_order_of_arrival_and_once() -> None:
    """A key that is added again while it waits keeps its place."""
    queue: WorkQueue[str] = WorkQueue()
    for key in "abcab":
        queue.add(key)
    assert await queue.take() == ["a"]
    assert await queue.take(10) == ["b", "c"]


async def test_a_key_under_work_comes_again_only_after_it_is_done() -> None:
    """What changed while a key was worked on is looked at afterwards, once."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    assert await queue.take() == ["a"]
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done("a")
    assert await queue.take(5) == ["a"]
    queue.done("a")
    assert len(queue) == 0


async def test_taking_waits_for_a_key() -> None:
    """Several workers wait; each key goes to one of them."""
    queue: WorkQueue[int] = WorkQueue()
    workers = [asyncio.create_task(queue.take()) for _ in range(3)]
    await asyncio.sleep(0)
    for key in range(3):
        queue.add(key)
    assert sorted(await asyncio.gather(*workers)) == [[0], [1], [2]]


async def test_the_shortest_delay_counts() -> None:
    """A later delay does not put off an earlier one."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 60)
    queue.add_after("a", 0.002)
    queue.add_after("a", 60)
    assert await queue.take() == ["a"]
    queue.add_after("b", 0)
    assert await queue.take() == ["b"]
    assert len(queue) == 0


async def test_retries_are_counted_until_forgotten() -> None:
    """A key that fails comes back, and its row of failures ends when it is forgotten."""
    counted: list[int] = []

    class Counting(Backoff):
        def delay(self, failures: int) -> float:
            counted.append(failures)
            return 0.001

    queue: WorkQueue[str] = WorkQueue(backoff=Counting())
    for _ in range(3):
        queue.retry("a")
        assert await queue.take() == ["a"]
        queue.done("a")
    queue.forget("a")
    queue.retry("a")
    assert counted == [1, 2, 3, 1]


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "take", "done"]), st.integers(0, 3)), max_size=40
)


async def carry_out(steps: list[tuple[str, int]]) -> None:
    queue: WorkQueue[int] = WorkQueue()
    unseen: set[int] = set()
    taken: set[int] = set()
    for step, key in steps:
        if step == "add":
            queue.add(key)
            unseen.add(key)
        elif step == "take" and len(queue):
            for found in await queue.take(key + 1):
                assert found not in taken, "given to two workers at once"
                taken.add(found)
                unseen.discard(found)
        elif step == "done" and key in taken:
            taken.discard(key)
            queue.done(key)
        assert len(queue) == len(unseen - taken)


@given(steps=STEPS)
def test_no_change_is_missed_and_no_key_shared(steps: list[tuple[str, int]]) -> None:
    """Whatever the order: a key added since it was taken is ready as soon as nobody works on it."""
    asyncio.run(carry_out(steps))


async def test_other_tasks_run_between_keys_whose_work_never_waits() -> None:
    """Thousands of keys that need no write must not keep requests from being answered."""
    queue: WorkQueue[int] = WorkQueue()
    for key in range(100):
        queue.add(key)
    worked = 0

    async def work() -> None:
        nonlocal worked
        while True:
            (key,) = await queue.take()
            until = time.monotonic() + STRETCH_S
            while time.monotonic() < until:
                pass
            worked += 1
            queue.done(key)

    worker = asyncio.create_task(work())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert 0 < worked < 10
    worker.cancel()


async def test_a_key_at_rest_comes_back_with_a_change() -> None:
    """What was refused for good is not tried again by itself, but at once when it is added."""
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(initial=0.001, cap=0.001))
    queue.retry("a")
    assert await queue.take() == ["a"]
    queue.rest("a")
    queue.done("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.take(), 0.05)
    queue.add("a")
    assert await queue.take() == ["a"]
