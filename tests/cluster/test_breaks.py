"""Long work lets other tasks run; short work does not notice."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from drayman.cluster.breaks import STRETCH_S, Breaks, Turnstile
from patience import PATIENCE_S


@dataclass(slots=True)
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_break_is_taken_after_a_stretch_of_work() -> None:
    """Other tasks run as often as a stretch of work has gone by, not at each piece of it."""
    clock, ran = Clock(), 0

    async def other() -> None:
        nonlocal ran
        while True:
            ran += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    breaks = Breaks(clock)
    for _ in range(100):
        clock.now += STRETCH_S / 10
        await breaks.between()
    task.cancel()
    assert 8 <= ran <= 11


async def test_one_task_passes_in_each_iteration() -> None:
    """However many come together, others run between any two of them; a cancelled one takes no place."""
    turnstile, order = Turnstile(), list[str]()

    async def pass_through(name: str) -> None:
        await turnstile.enter()
        order.append(name)

    async def other() -> None:
        while True:
            order.append("-")
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(pass_through(name)) for name in "abcd"]
    ticking = asyncio.create_task(other())
    await asyncio.sleep(0)
    tasks[2].cancel()
    await asyncio.wait(tasks)
    ticking.cancel()
    passed = [name for name in order if name != "-"]
    assert passed == ["a", "b", "d"]
    assert "ab" not in "".join(order)
    assert "bd" not in "".join(order)
    async with asyncio.timeout(PATIENCE_S):
        await turnstile.enter()
