"""What has to be looked at, each item once, and what has to be retried after a failure, with growing delays."""

from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

RETRY_S: Final = 0.2
LONGEST_RETRY_S: Final = 30.0


class Due(NamedTuple):
    """Something to look at: the object with this uid, or the namespace of this name."""

    sort: str
    which: str


class DueItems:
    """A queue without duplicates."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._queue: deque[Due] = deque()
        self._queued: set[Due] = set()
        self._later: list[tuple[float, Due]] = []  # a heap
        self._failures: dict[Due, int] = {}

    def ask(self, item: Due) -> None:
        """Schedule a look at an item."""
        if item not in self._queued:
            self._queued.add(item)
            self._queue.append(item)

    def ask_after(self, item: Due, seconds: float) -> None:
        """Schedule a look at an item after a while. A request in the meantime does not replace this one."""
        heapq.heappush(self._later, (self._clock() + seconds, item))

    def failed(self, item: Due) -> None:
        """Schedule another look at an item, after a delay that doubles with every failure."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        self.ask_after(item, min(RETRY_S * 2.0 ** min(failures, 10), LONGEST_RETRY_S))

    def succeeded(self, item: Due) -> None:
        self._failures.pop(item, None)

    def take(self, most: int) -> list[Due]:
        """What to look at now, the oldest first."""
        while self._later and self._later[0][0] <= self._clock():
            self.ask(heapq.heappop(self._later)[1])
        some = [self._queue.popleft() for _ in range(min(most, len(self._queue)))]
        self._queued.difference_update(some)
        return some

    def idle_s(self) -> float | None:
        """How long until there is something to look at, as far as is known; None if never."""
        if self._queue:
            return 0.0
        return max(self._later[0][0] - self._clock(), 0.0) if self._later else None
