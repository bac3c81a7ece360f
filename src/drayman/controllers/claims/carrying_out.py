"""Carrying out many decisions at once, so that one that is refused does not hold up the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError
from drayman.cluster.writes import Write

AT_ONCE: Final = 10
"""How many are written at the same time where each is written for itself."""

Steps = Callable[[Client], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be written about one object."""

    writes: Sequence[Write]
    """In one transaction."""
    steps: Steps
    """The same as calls one after the other, for a cluster without transactions."""


def one_by_one(writes: Sequence[Write]) -> Steps:
    """Steps that are the writes. What was written stays if a later one is refused."""

    async def steps(client: Client) -> None:
        for write in writes:
            await client.write_all([write])

    return steps


async def together(client: Client, tasks: Sequence[Task]) -> ClusterError | None:
    """Writes everything in one transaction, or nothing; what it was refused with."""
    writes = [write for task in tasks for write in task.writes]
    return await _attempt(client.write_all(writes)) if writes else None


async def apart(client: Client, tasks: Sequence[Task]) -> list[ClusterError | None]:
    """Writes each task for itself, several at the same time; for each, what it was refused with."""
    room = asyncio.Semaphore(AT_ONCE)

    async def alone(task: Task) -> ClusterError | None:
        async with room:
            if client.transactional:
                return await together(client, [task])
            return await _attempt(task.steps(client))

    return await asyncio.gather(*(alone(task) for task in tasks))


async def _attempt(work: Awaitable[object]) -> ClusterError | None:
    try:
        await work
    except ClusterError as error:
        return error
    return None
