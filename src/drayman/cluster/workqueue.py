"""What a control loop has to look at, each thing once.

A loop is notified of changes by name and works from the caches, so only the name waits here: however often it is added while it waits, it
is given out once. While a worker has it no other worker gets it; if it is added meanwhile, it comes again after `done`. These are the rules
of client-go's work queue, with two differences: several keys can be taken at once, so that their writes can share a transaction, and delays
before a retry have a random part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from drayman.cluster.backoff import Backoff

K = TypeVar("K", bound=Hashable)

RETRIES: Final = Backoff(initial=0.005, cap=1000.0)
"""client-go's delays: from 5 ms, doubled at each failure, to 1000 s."""


class WorkQueue(Generic[K]):
    """Keys to work on. To be used on one event loop."""

    def __init__(self, *, backoff: Backoff = RETRIES) -> None:
        self._backoff = backoff
        self._ready: dict[K, None] = {}
        """In the order of arrival; a dict because a key is looked up as often as it is added."""
        self._taken: set[K] = set()
        self._again: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._arrival = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        """How many keys could be taken now."""
        return len(self._ready)

    def add(self, key: K) -> None:
        if self._closed:
            return
        if key in self._taken:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = None
            self._arrival.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Adds a key later. The shortest of several delays for one key counts."""
        if seconds <= 0:
            self.add(key)
        elif not self._closed:
            loop = asyncio.get_running_loop()
            due = loop.time() + seconds
            timer = self._timers.get(key)
            if timer is None or due < timer.when():
                if timer is not None:
                    timer.cancel()
                self._timers[key] = loop.call_at(due, self._is_due, key)

    def cancel(self, key: K) -> None:
        """Takes back a delayed `add_after`, if it has not come due."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    async def take(self, most: int = 1) -> list[K]:
        """Waits for keys and returns up to so many. No other worker gets them before `done`. Empty once closed."""
        while not self._ready:
            if self._closed:
                return []
            self._arrival.clear()
            await self._arrival.wait()
        keys: list[K] = []
        while self._ready and len(keys) < most:
            key = next(iter(self._ready))
            del self._ready[key]
            keys.append(key)
        self._taken.update(keys)
        return keys

    def done(self, key: K) -> None:
        """Ends the work on a key. One that was added meanwhile is ready again."""
        self._taken.discard(key)
        if key in self._again:
            self._again.remove(key)
            self.add(key)

    def retry(self, key: K) -> None:
        """Adds a key whose work failed, later with each failure in a row."""
        failures = self._failures.get(key, 0) + 1
        self._failures[key] = failures
        self.add_after(key, self._backoff.delay(failures))

    def forget(self, key: K) -> None:
        """Resets the count of failures of a key."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        """How often in a row a key has been retried."""
        return self._failures.get(key, 0)

    def close(self) -> None:
        """Accepts no more keys and releases waiting workers."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._ready.clear()
        self._arrival.set()

    def _is_due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)
