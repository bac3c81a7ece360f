"""How long things take, counted in buckets: cheap to add to, and read as a whole when metrics are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

WAITS: Final = (1.0, *(2.5 * 2**power for power in range(13)))
"""Seconds, up to nearly three hours: Kueue's buckets of everything that waits."""
ATTEMPTS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds: what Prometheus takes by default."""


class Histogram:
    """The values of one set of labels."""

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: tuple[float, ...] = WAITS) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self._counts)

    def buckets(self) -> Iterator[tuple[str, float]]:
        """Bounds as text, each with how many values are not above it."""
        reached = 0
        for bound, number in zip((*self._bounds, float("inf")), self._counts, strict=True):
            reached += number
            yield "+Inf" if bound == float("inf") else str(bound), float(reached)
