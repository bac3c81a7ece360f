"""How much one look at a workload may change, and when the next one is due."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MOST_PER_ROUND: Final = 500
"""Pods made or deleted for one object before others have their turn."""


def soonest(delays: Iterable[float | None]) -> float | None:
    """The shortest of the delays that are any."""
    return min((delay for delay in delays if delay is not None), default=None)
