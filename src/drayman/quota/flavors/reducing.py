"""Partial admission: the largest number of pods that a workload can have now, down to the least that it can do with.

Pod sets shrink together: each by its part of the difference between what it wants and what it needs. The smallest reduction that gets quota
is found by bisection, as if a smaller workload always fitted where a larger one does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from drayman.quota.demands import PodSetDemand

T = TypeVar("T")


def can_shrink(demands: Sequence[PodSetDemand]) -> bool:
    return any(each.min_count is not None and each.count > each.min_count for each in demands)


def largest(demands: Sequence[PodSetDemand], attempt: Callable[[list[int]], T | None]) -> T | None:
    """What an attempt comes to with the most pods with which it comes to anything."""
    spare = [
        0 if each.min_count is None else max(0, each.count - each.min_count) for each in demands
    ]
    total = sum(spare)
    low, high = 0, total + 1
    found: T | None = None
    while low < high:
        middle = (low + high) // 2
        counts = [
            each.count - free * middle // total for each, free in zip(demands, spare, strict=True)
        ]
        result = attempt(counts)
        if result is None:
            low = middle + 1
        else:
            found, high = result, middle
    return found
