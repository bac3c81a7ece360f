"""Breaks in long work, so that other tasks of the event loop get to run.

A loop over very many things that never has to wait for anything would otherwise be one long step, and every request would wait for its end.
A break costs next to nothing where there is little to do, since none is due then. Likewise, steps of many tasks that are due together
would delay requests by the sum of them; a `Turnstile` spreads them over as many iterations of the event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

STRETCH_S: Final = 0.01
"""How long work goes on without a break."""


class Breaks:
    """The breaks of one task. Call `between` after each piece of its work."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, turnstile: Turnstile | None = None
    ) -> None:
        """With a turnstile, tasks that share it go on one at a time after their breaks."""
        self._clock = clock
        self._turnstile = turnstile
        self._last = clock()

    def begin(self) -> None:
        """A stretch of work begins: the task has just had to wait."""
        self._last = self._clock()

    @property
    def is_due(self) -> bool:
        return self._clock() - self._last >= STRETCH_S

    async def between(self) -> None:
        """Take a break if one is due."""
        if self.is_due:
            await asyncio.sleep(0)
            if self._turnstile is not None:
                await self._turnstile.enter()
            self._last = self._clock()


class Turnstile:
    """Lets one task pass in each iteration of the event loop, in the order in which they come."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_open = True

    async def enter(self) -> None:
        """Returns at once unless another has passed in this iteration."""
        loop = asyncio.get_running_loop()
        if self._is_open:
            self._is_open = False
            loop.call_soon(self._admit_next)
            return
        place = loop.create_future()
        self._waiting.append(place)
        await place

    def _admit_next(self) -> None:
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():  # else its task was cancelled
                place.set_result(None)
                place.get_loop().call_soon(self._admit_next)
                return
        self._is_open = True
