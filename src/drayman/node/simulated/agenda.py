"""What is to be done when: one queue of times instead of a task for everything that waits.

A cluster has thousands of pods that each wait for something. A task and a timer for each would cost more than the work that is due.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Agenda(Generic[K]):
    """Entries with a time each, taken out when they are due. Times are those of the event loop."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._times: dict[K, float] = {}
        self._count = 0
        self._changed = asyncio.Event()

    def put(self, entry: K, time: float) -> None:
        """Schedule an entry for a time, replacing any earlier schedule."""
        self._times[entry] = time
        self._count += 1
        heapq.heappush(self._heap, (time, self._count, entry))
        if self._heap[0][2] == entry:
            self._changed.set()

    def put_earlier(self, entry: K, time: float) -> None:
        """The same, unless it is already due sooner."""
        if time < self._times.get(entry, float("inf")):
            self.put(entry, time)

    def discard(self, entry: K) -> None:
        self._times.pop(entry, None)

    def due(self, now: float, most: int) -> list[K]:
        """Takes out what is due, the earliest first and up to so many. The rest stays due."""
        found: list[K] = []
        while self._heap and self._heap[0][0] <= now and len(found) < most:
            time, _, entry = heapq.heappop(self._heap)
            if self._times.get(entry) == time:  # else it was moved or discarded
                del self._times[entry]
                found.append(entry)
        return found

    async def wait(self) -> None:
        """Returns when something is due."""
        loop = asyncio.get_running_loop()
        while True:
            self._changed.clear()
            if not self._heap:
                await self._changed.wait()
                continue
            delay = self._heap[0][0] - loop.time()
            if delay <= 0:
                return
            try:
                async with asyncio.timeout(delay):
                    await self._changed.wait()
            except TimeoutError:
                return
