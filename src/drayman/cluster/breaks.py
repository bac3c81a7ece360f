"""Breaks in long work, so that other tasks of the event loop get to run.

A loop over very many things that never has to wait for anything would otherwise be one long step, and every request would wait for its end.
A break costs next to nothing where there is little to do, since none is due then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

STRETCH_S: Final = 0.01
"""How long work goes on without a break."""


class Breaks:
    """The breaks of one task. Call `between` after each piece of its work."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()

    async def between(self) -> None:
        """Take a break if one is due."""
        if self._clock() - self._last >= STRETCH_S:
            await asyncio.sleep(0)
            self._last = self._clock()
