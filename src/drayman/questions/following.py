"""Explanations of an object over time: a new one whenever the answer has changed.

The cluster is read again when anything that the answer was read from changes. On a busy cluster that is all the time, so the pause between
two readings grows with what a reading costs, and only an answer that differs is given.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import msgspec

from drayman.cluster import Client, WatchOptions
from drayman.cluster.errors import (
    ExpiredError,
    ForbiddenError,
    MethodNotAllowedError,
    ProtocolError,
    UnreachableError,
)
from drayman.cluster.resources import Resource
from drayman.cluster.watching import Change
from drayman.explain.answer import Explanation
from drayman.placement.prices import NO_PRICES, PriceTable
from drayman.placement.world import World
from drayman.questions.explaining import explanation_of, read_for
from drayman.questions.reading import sources
from drayman.questions.subjects import Target

SHORTEST_PAUSE_S: Final = 0.5
"""Between two readings: changes come in groups, such as those of a pod and its claims."""
PAUSE_PER_READING: Final = 3.0
"""At most a quarter of the time is spent on reading."""
POLL_S: Final = 5.0
"""How often to poll what may be listed but not watched."""
RECHECK_S: Final = 10.0
"""How often to read again when nothing has changed: some answers change with time, such as those about a scheduler that has stopped."""
HEARTBEAT_S: Final = 1.0
"""How often to check whether the answers are still wanted."""


async def follow(
    client: Client,
    subject: Target,
    namespace: str,
    *,
    heartbeat: Callable[[], None],
    working: Callable[[], AbstractContextManager[None]] = nullcontext,
    prices: PriceTable = NO_PRICES,
) -> AsyncGenerator[tuple[Explanation, float], None]:
    """The explanation, and each that differs from the one before, with the time of its reading.

    `heartbeat` is called while nothing changes, and ends this by raising; `working` is entered while the cluster is read and searched.
    Raises QuestionError once the object is gone.
    """
    loop = asyncio.get_running_loop()
    given: Explanation | None = None
    while True:
        began = loop.time()
        with working():
            world = await read_for(client, subject, namespace, prices)
            found = explanation_of(world, subject, namespace)
        if given is None or not _same(found, given):
            yield found, world.now
            given = found
        spent = loop.time() - began
        await _change(client, world, namespace, heartbeat)
        await asyncio.sleep(max(SHORTEST_PAUSE_S, PAUSE_PER_READING * spent))


def _same(found: Explanation, given: Explanation) -> bool:
    """Whether the answers are alike. Versions change with every write, even of what does not matter."""
    return msgspec.structs.replace(found, evidence=given.evidence) == given


async def _change(
    client: Client, world: World, namespace: str, heartbeat: Callable[[], None]
) -> None:
    """Returns once something has changed that the world was read from, or time may have changed the answer."""
    until = asyncio.get_running_loop().time() + RECHECK_S
    waiting = [
        asyncio.create_task(_changed(client, resource, scope, version))
        for resource, scope, version in sources(world, namespace)
    ]
    try:
        done: set[asyncio.Task[None]] = set()
        while not done and asyncio.get_running_loop().time() < until:
            heartbeat()
            done, _ = await asyncio.wait(
                waiting, timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED
            )
        for task in done:
            task.result()
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def _changed(
    client: Client, resource: Resource[Any], namespace: str | None, version: str
) -> None:
    options = WatchOptions(resource_version=version)
    try:
        async with client.watch(resource, namespace, options=options) as events:
            async for event in events:
                if isinstance(event, Change):
                    return
    except (ForbiddenError, MethodNotAllowedError):
        await asyncio.sleep(POLL_S)
    except (ExpiredError, ProtocolError, UnreachableError):
        return  # what was missed is found by reading again, which also fails if the server does not answer
