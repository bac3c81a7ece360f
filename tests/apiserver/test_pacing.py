"""The time of the event loop, given to users in turn."""

from __future__ import annotations

import asyncio

from drayman.apiserver.serving.pacing import MOST_WOKEN, Pace

FLOOD = 5 * MOST_WOKEN


async def test_work_begins_at_once_while_there_is_time() -> None:
    """And not before what waits."""
    pace = Pace(budget_s=60.0)
    assert pace.may_begin()
    assert pace.may_begin()
    waiting = asyncio.create_task(pace.wait("a"))
    await asyncio.sleep(0)
    assert not pace.may_begin()
    await waiting
    assert pace.may_begin()


async def begin(pace: Pace, user: str) -> None:
    if not pace.may_begin():
        await pace.wait(user)


async def test_another_user_does_not_wait_for_a_flood() -> None:
    """Where each piece takes all the time there is, the other user is second in line, whenever it comes."""
    pace = Pace(budget_s=0.0)
    done: list[str] = []

    async def work(user: str) -> None:
        await begin(pace, user)
        done.append(user)

    async with asyncio.TaskGroup() as group:
        for _ in range(FLOOD):
            group.create_task(work("mallory"))
        while len(done) < 10:
            await asyncio.sleep(0)
        came = len(done)
        group.create_task(work("alice"))
    assert len(done) == FLOOD + 1
    assert done.index("alice") <= came + 3


async def test_those_who_give_up_do_not_stop_the_others() -> None:
    """Everyone else has a turn, even if all that are woken together are cancelled then."""
    pace = Pace(budget_s=0.0)
    done: list[int] = []

    async def work(number: int) -> None:
        await begin(pace, "mallory")
        done.append(number)

    tasks = [asyncio.create_task(work(number)) for number in range(FLOOD)]
    await asyncio.sleep(0)
    for task in tasks[1 : 2 * MOST_WOKEN]:
        task.cancel()
    await asyncio.wait(tasks)
    assert sorted(done) == [0, *range(2 * MOST_WOKEN, FLOOD)]
