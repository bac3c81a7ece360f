"""What `/metrics` says about queues, by the names and labels that Kueue gives its metrics.

A scrape looks at each workload once. No label names a workload.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from drayman.apiserver.instance.queue_gauges import present
from drayman.controllers.quota.histograms import Histogram
from drayman.controllers.quota.tally import (
    EVICTION_LATENCY,
    OF_CLASSES,
    READY_TO_EVICTED,
    Labels,
    QueueCounts,
    QueueTally,
)

ROLE: Final = "replica_role"
STANDALONE: Final = "standalone"
"""There is no other replica that could lead."""
_QUEUE: Final = ("cluster_queue",)
_LOCAL: Final = ("name", "namespace")
_TEXTS: Final = {
    "quota_reserved_wait_time_seconds": "Time from being queued to getting quota.",
    "admission_wait_time_seconds": "Time from being queued to being admitted.",
    "admission_checks_wait_time_seconds": "Time from getting quota to being admitted.",
    "ready_wait_time_seconds": "Time from being queued until all pods are ready.",
    "admitted_until_ready_wait_time_seconds": "Time from being admitted until all pods are ready.",
    "execution_time_seconds": "Time that workloads which ended were admitted, over all starts.",
}


class QueueMetrics(Collector):
    """Reads the figures when they are asked for."""

    def __init__(self, tally: QueueTally) -> None:
        self._tally = tally

    def collect(self) -> Iterator[Metric]:
        tally, state = self._tally, self._tally.state()
        if state is not None:
            tally.keep(state)
        text = "Attempts to give quota."
        yield _counted("kueue_admission_attempts", text, ("result",), tally.attempts)
        name, text = "kueue_admission_attempt_duration_seconds", "Time that an attempt takes."
        yield _timed(name, text, ("result",), tally.attempt_times)
        yield from _of_queues("kueue_", _QUEUE, tally.cluster)
        yield from _of_queues("kueue_local_queue_", _LOCAL, tally.local)
        counts = tally.cluster
        labels: Labels = (*_QUEUE, "reason", "underlying_cause", "priority_class")
        text = "Workloads that were evicted, each counted once for a reason."
        yield _counted("kueue_evicted_workloads_once", text, labels, counts.evicted_once)
        labels, text = (*_QUEUE, "reason"), "Time from an eviction until the quota is free."
        yield _timed(
            f"kueue_{EVICTION_LATENCY}", text, labels, counts.times.get(EVICTION_LATENCY, {})
        )
        labels = (*_QUEUE, "reason", "underlying_cause")
        text = "Time from when pods were ready to the eviction."
        yield _timed(
            f"kueue_{READY_TO_EVICTED}", text, labels, counts.times.get(READY_TO_EVICTED, {})
        )
        labels = ("preempting_cluster_queue", "reason")
        text = "Workloads that gave up their quota to others."
        yield _counted("kueue_preempted_workloads", text, labels, tally.preempted)
        labels = ("cluster_queue", "cluster")
        text = "Workloads that were offered to a worker cluster."
        yield _counted("kueue_multikueue_workloads_dispatched", text, labels, tally.dispatched)
        text = "Workloads that a worker cluster has admitted and got."
        yield _counted("kueue_multikueue_workloads_admitted", text, labels, tally.taken)
        if state is not None:
            yield from _gauges(present(state))


def _of_queues(prefix: str, queue: Labels, counts: QueueCounts) -> Iterator[Metric]:
    """What is counted alike for cluster queues and for local queues."""
    labels = (*queue, "priority_class")
    for name, text, counter in (
        ("quota_reserved_workloads", "Workloads that got quota.", counts.reserved),
        ("admitted_workloads", "Workloads that were admitted.", counts.admitted),
        ("finished_workloads", "Workloads that have ended.", counts.finished),
    ):
        yield _counted(f"{prefix}{name}", text, labels, counter)
    evicted = (*queue, "reason", "underlying_cause", "priority_class")
    text = "Evictions of workloads."
    yield _counted(f"{prefix}evicted_workloads", text, evicted, counts.evicted)
    for name in OF_CLASSES:
        yield _timed(f"{prefix}{name}", _TEXTS[name], labels, counts.times.get(name, {}))


def _counted(name: str, text: str, labels: Labels, counts: Counter[Labels]) -> Metric:
    family = CounterMetricFamily(name, text, labels=(*labels, ROLE))
    for values, number in sorted(counts.items()):
        family.add_metric((*values, STANDALONE), float(number))
    return family


def _timed(name: str, text: str, labels: Labels, times: Mapping[Labels, Histogram]) -> Metric:
    family = HistogramMetricFamily(name, text, labels=(*labels, ROLE))
    for values, found in sorted(times.items()):
        family.add_metric((*values, STANDALONE), list(found.buckets()), found.total)
    return family


def _gauges(
    values: Iterator[tuple[str, str, Mapping[str, str], float]],
) -> Iterator[Metric]:
    """Gauges from their values, one family for each name."""
    families: dict[str, GaugeMetricFamily] = {}
    for name, text, labels, value in values:
        family = families.get(name)
        if family is None:
            family = families[name] = GaugeMetricFamily(name, text, labels=(*labels, ROLE))
        family.add_metric((*labels.values(), STANDALONE), value)
    yield from families.values()
