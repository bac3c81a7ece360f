"""Samples of what nodes have used, read from their agents when somebody asks.

Nobody is asked without need: a cluster in which nobody looks at its use has no samples. The last two of a node are kept; where they are too
old, two are taken one after the other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from drayman.apiserver.reaching.rates import NodeRates, rates
from drayman.node.streams.model import NodeApiError
from drayman.node.streams.use import NodeUse

FRESH_S: Final = 5.0
"""For this long an answer is given again."""
LONGEST_S: Final = 60.0
"""An average over more than this says nothing about now."""
BETWEEN_S: Final = 1.0
"""Between two samples where there is none to compare with."""
MOST_NODES: Final = 10_000
"""Whose samples are kept."""
Read = Callable[[], Awaitable[NodeUse]]
"""Asks a node. Raises NodeApiError."""
_log: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class _Known:
    """What is known of one node."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    sample: NodeUse | None = None
    taken: float = 0.0
    answer: NodeRates | None = None


class NodeSamples:
    """By the name of the node."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._known: dict[str, _Known] = {}

    async def rates(self, node: str, read: Read) -> NodeRates | None:
        """What a node uses; None if it does not say."""
        known = self._known.setdefault(node, _Known())
        if len(self._known) > MOST_NODES:
            del self._known[next(iter(self._known))]
        async with known.lock:
            age = self._clock() - known.taken
            if known.answer is not None and age < FRESH_S:
                return known.answer
            try:
                known.answer = await self._fresh(known, read, age)
            except NodeApiError as error:
                _log.info("node %s does not say what it uses: %s", node, error)
                known.sample = known.answer = None
            return known.answer

    async def _fresh(self, known: _Known, read: Read, age: float) -> NodeRates:
        before = known.sample
        if before is None or not BETWEEN_S <= age <= LONGEST_S:
            before = await read()
            await asyncio.sleep(BETWEEN_S)
        after = await read()
        known.sample, known.taken = after, self._clock()
        return rates(before, after)
