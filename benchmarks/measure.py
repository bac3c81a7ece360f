"""CPU time of one call on a shared machine, and lines of figures.

Wall time on a machine that others use can be thirty times too long. The time of this thread alone, the best of several runs,
with the garbage collector out of the way, is within a few percent of what the code costs.
"""

from __future__ import annotations

import gc
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

RUNS = 3


def cpu_ms(work: Callable[[], T], runs: int = RUNS) -> tuple[float, T]:
    """The least CPU milliseconds of some runs, and what the last of them returned."""
    best = float("inf")
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for _ in range(runs):
            begun = time.thread_time_ns()
            result = work()
            best = min(best, (time.thread_time_ns() - begun) / 1e6)
    finally:
        if was_enabled:
            gc.enable()
    return best, result


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of all do not exceed."""
    rank = math.ceil(len(values) * share)
    return sorted(values)[max(rank, 1) - 1]


def report(**figures: object) -> None:
    """One JSON line on standard output."""
    rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in figures.items()}
    sys.stdout.write(json.dumps(rounded) + "\n")
    sys.stdout.flush()
