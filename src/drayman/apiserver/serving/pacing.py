"""The time of the event loop, given to users in turn.

One iteration of the event loop runs everything that is ready. If that is a thousand requests of one user, a small request of another
user waits for all of them, and again for each of its own steps. So work begins for some milliseconds at a time. What comes later waits
for the next iteration, and there users take turns.
"""

from __future__ import annotations

import asyncio
import time
from typing import Final

from drayman.apiserver.protocol.round_robin import RoundRobin

BUDGET_S: Final = 0.02
"""How long work begins in one iteration, in time of the processor. Only the last piece takes longer."""
MOST_WOKEN: Final = 64
"""How many of those that wait are woken in one iteration; more would not get to work within the budget."""


class Pace:
    """How fast work begins in one event loop."""

    def __init__(self, budget_s: float = BUDGET_S) -> None:
        self._budget_s = budget_s
        self._spent_at: float | None = None
        """The time of the processor at which the budget is spent; None if no work has begun since it was renewed."""
        self._not_before = 0.0
        """The budget is not spent before this time: the processor does not run faster than the clock, which is cheaper to read."""
        self._waiting: RoundRobin[asyncio.Future[None]] = RoundRobin()
        self._is_next_scheduled = False

    def may_begin(self) -> bool:
        """Whether work may begin at once: nothing else waits, and there is time."""
        return not self._waiting and self._has_time()

    async def wait(self, user: str) -> None:
        """Wait until work for a user may begin."""
        waiter = self._new_waiter()
        self._waiting.put(user, waiter)
        while True:
            await waiter
            if self._has_time():
                return
            waiter = self._new_waiter()
            self._waiting.put_first(user, waiter)

    def _has_time(self) -> bool:
        now = time.perf_counter()
        if now < self._not_before:
            return True
        worked = time.thread_time()
        if self._spent_at is None:
            self._spent_at = worked + self._budget_s
        elif worked >= self._spent_at:
            return False
        self._not_before = now + self._spent_at - worked
        return True

    def _new_waiter(self) -> asyncio.Future[None]:
        self._schedule_next()
        return asyncio.get_running_loop().create_future()

    def _schedule_next(self) -> None:
        if not self._is_next_scheduled:
            self._is_next_scheduled = True
            asyncio.get_running_loop().call_soon(self._next_iteration)

    def _next_iteration(self) -> None:
        self._is_next_scheduled = False
        self._spent_at = None
        woken = 0
        while self._waiting and woken < MOST_WOKEN:
            waiter = self._waiting.pop()
            if not waiter.done():  # Its request may have been cancelled.
                waiter.set_result(None)
                woken += 1
        if self._waiting:
            self._schedule_next()  # Also if everything that was woken is cancelled.
