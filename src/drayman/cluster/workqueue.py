"""What a control loop has to look at, each thing once.

A loop is notified of changes by name and works from the caches, so only the name waits here: however often it is added while it waits, it
is given out once. While a worker has it no other worker gets it; if it is added meanwhile, it comes again after `done`. These are the rules
of client-go's work queue, with two differences: several keys can be taken at once, so that their writes can share a transaction, and delays
before a retry have a random part.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable
from typing import Final, Generic, TypeVar

from drayman.cluster.backoff import Backoff
from drayman.cluster.breaks import Breaks

K = TypeVar("K", bound=Hashable)

RETRIES: Final = Backoff(initial=0.005, cap=1000.0)
"""client-go's delays: from 5 ms, doubled at each failure, to 1000 s."""
RARELY_S: Final = 900.0
"""How long a key rests whose work was refused for good: until then only a change can help, afterwards perhaps another policy."""


class WorkQueue(Generic[K]):
    """Keys to work on. To be used on one event loop."""

    def __init__(self, *, backoff: Backoff = RETRIES) -> None:
        self._backoff = backoff
        self._ready: OrderedDict[K, None] = OrderedDict()
        """In the order of arrival. A dict would look for its first key past all those that were taken out before."""
        self._taken: set[K] = set()
        self._again: set[K] = set()
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._arrival = asyncio.Event()
        self._breaks = Breaks()

    def __len__(self) -> int:
        """How many keys could be taken now."""
        return len(self._ready)

    def add(self, key: K) -> None:
        if key in self._taken:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = None
            self._arrival.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Adds a key later. The shortest of several delays for one key counts."""
        if seconds <= 0:
            self.add(key)
        else:
            loop = asyncio.get_running_loop()
            due = loop.time() + seconds
            timer = self._timers.get(key)
            if timer is None or due < timer.when():
                if timer is not None:
                    timer.cancel()
                self._timers[key] = loop.call_at(due, self._is_due, key)

    async def take(self, most: int = 1) -> list[K]:
        """Waits for keys and returns up to so many. No other worker gets them before `done`.

        Other tasks get to run in between, even if the work on none of a thousand keys has to wait for anything.
        """
        await self._breaks.between()
        while not self._ready:
            self._arrival.clear()
            await self._arrival.wait()
        keys: list[K] = []
        while self._ready and len(keys) < most:
            key, _ = self._ready.popitem(last=False)
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

    def rest(self, key: K) -> None:
        """Adds a key whose work would be refused again in the same way, after a long time. A change to it adds it at once."""
        self._failures.pop(key, None)
        self.add_after(key, RARELY_S)

    def forget(self, key: K) -> None:
        """Resets the count of failures of a key."""
        self._failures.pop(key, None)

    def _is_due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)
