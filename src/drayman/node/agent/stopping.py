"""Ends containers: each is asked, and has a while. Whoever wants one ended that is being ended already may only shorten that."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from drayman.node.agent.containers import Containers
from drayman.node.agent.processes.attempts import Attempt
from drayman.node.streams.finishing import cancelled

LEAST_S: Final = 2.0
"""How long a container has from its signal on, also if its hook took all the time or there was none, as with a kubelet."""
_LOOK_S: Final = 0.05
"""Until a container whose process is being made is told again to end."""


class _End:
    """How long a container has: until `at`, of the loop's time. Whatever waits for that learns when it becomes less."""

    def __init__(self, grace_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self.at = self._loop.time() + grace_s
        self._waiting: asyncio.Timeout | None = None
        self._least = 0.0

    @property
    def is_over(self) -> bool:
        return self.at <= self._loop.time()

    def shorten(self, grace_s: float) -> None:
        self.at = min(self.at, self._loop.time() + grace_s)
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(max(self.at, self._least))

    async def until(self, work: Awaitable[None], least_s: float = 0.0) -> None:
        """Do something until its end or the container's, and for `least_s` in any case."""
        self._least = self._loop.time() + least_s
        try:
            async with asyncio.timeout_at(max(self.at, self._least)) as self._waiting:
                await work
        except TimeoutError:
            pass  # its time is up
        finally:
            self._waiting = None


class Stops:
    """Of the containers of one pod.

    `before` is awaited before a container is told to end, and counts towards its time; `signals` says by which signal it is told.
    """

    def __init__(
        self,
        containers: Containers,
        before: Callable[[str], Awaitable[None]],
        signals: Mapping[str, int],
    ) -> None:
        self._containers = containers
        self._signals = signals
        self._before = before
        self._tasks: dict[Attempt, asyncio.Task[None]] = {}
        self._ends: dict[Attempt, _End] = {}

    async def stop(self, name: str, grace_s: float) -> None:
        """Returns when what now runs of a container has ended."""
        attempt = self._containers.attempt(name)
        if attempt is None:
            return
        task = self._tasks.get(attempt)
        if task is None:
            self._ends[attempt] = _End(grace_s)
            task = asyncio.create_task(self._stop(name, attempt, self._ends[attempt]))
            self._tasks[attempt] = task
            task.add_done_callback(lambda _: self._forget(attempt))
        else:
            self._ends[attempt].shorten(grace_s)
        await asyncio.wait((task,))
        if not task.cancelled():
            task.result()

    def _forget(self, attempt: Attempt) -> None:
        del self._tasks[attempt], self._ends[attempt]

    def shorten(self, grace_s: float) -> None:
        """Leave no more time than this to those that are being ended."""
        for end in self._ends.values():
            end.shorten(grace_s)

    async def _stop(self, name: str, attempt: Attempt, end: _End) -> None:
        if not end.is_over:
            await end.until(self._before(name))
        await end.until(self._tell(name, attempt), LEAST_S)
        await self._containers.kill(name, attempt)

    async def _tell(self, name: str, attempt: Attempt) -> None:
        """Returns when it has ended of itself."""
        while self._containers.runs(name, attempt):
            attempt.signal(self._signals[name])
            if attempt.pid is not None:
                await self._containers.ended(name)
                return
            await asyncio.sleep(_LOOK_S)

    async def close(self) -> None:
        """Leave the containers alone."""
        await cancelled(*self._tasks.values())
