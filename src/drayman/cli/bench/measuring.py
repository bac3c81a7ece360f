"""Throughput and latency, taken as scheduler_perf takes them.

Bound pods are counted once a second. The first second is left out; seconds in which nothing was bound are added to the next one and
their value is repeated, so that a scheduler that works in bursts is not measured by its bursts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil


@dataclass(slots=True)
class Measured:
    """When pods were created and bound, in seconds of one clock."""

    started: float
    created: dict[str, float] = field(default_factory=dict)
    bound: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)

    def bind(self, name: str, now: float) -> None:
        self.bound.append(now)
        created = self.created.pop(name, None)
        if created is not None:
            self.latencies.append(now - created)

    def summary(self) -> dict[str, float]:
        """Pods per second, and the time from creation to binding in seconds."""
        ended = max(self.bound, default=self.started)
        elapsed = max(ended - self.started, 1e-9)
        average = len(self.bound) / elapsed
        samples = throughput(self.bound, self.started)
        return {
            "pods": len(self.bound),
            "seconds": round(elapsed, 3),
            "average": round(average, 1),
            "samples": len(samples),
            **{
                f"p{share}": round(percentile(samples or [average], share), 1)
                for share in (50, 90, 95, 99)
            },
            "latency_p50": round(percentile(self.latencies, 50), 4),
            "latency_p99": round(percentile(self.latencies, 99), 4),
        }


def throughput(bound: Sequence[float], started: float) -> list[float]:
    """One value a second. A run that ends before a whole second can be counted has none: how soon one pod is bound is not throughput."""
    seconds = ceil(max(bound, default=started) - started)
    counts = [0] * max(seconds, 1)
    for moment in bound:
        counts[min(int(moment - started), len(counts) - 1)] += 1
    samples: list[float] = []
    empty = 0
    # The last second is incomplete.
    for count in counts[1:-1]:
        if not count:
            empty += 1
            continue
        samples += [count / (empty + 1)] * (empty + 1)
        empty = 0
    return samples


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that this percentage of all values does not exceed; 0 where there are none."""
    if not values:
        return 0.0
    ordered = sorted(values)
    return ordered[max(ceil(len(ordered) * share / 100) - 1, 0)]
