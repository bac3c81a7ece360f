"""What is counted about queues, by the names that Kueue's metrics have.

Everything is counted when the status of a Workload is written: what has become true, and how long that took since it was queued, by the
times that its conditions have. Counts are kept for queues that exist (`keep`), so that they do not grow with names that come and go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from drayman.api.kueue_workload import (
    ADMITTED,
    EVICTED,
    FINISHED,
    PODS_READY,
    QUOTA_RESERVED,
    REQUEUED,
    SchedulingStats,
    Workload,
    WorkloadSpec,
    WorkloadStatus,
)
from drayman.api.times import seconds_of
from drayman.controllers.quota.histograms import ATTEMPTS, Histogram
from drayman.quota.state import QuotaState
from drayman.workloads.queued.conditions import WAIT_FOR_RECOVERY, reason_of, since

Labels = tuple[str, ...]
RESERVED_WAIT = "quota_reserved_wait_time_seconds"
ADMISSION_WAIT = "admission_wait_time_seconds"
CHECKS_WAIT = "admission_checks_wait_time_seconds"
READY_WAIT = "ready_wait_time_seconds"
ADMITTED_UNTIL_READY = "admitted_until_ready_wait_time_seconds"
EXECUTION = "execution_time_seconds"
OF_CLASSES = (
    RESERVED_WAIT,
    ADMISSION_WAIT,
    CHECKS_WAIT,
    READY_WAIT,
    ADMITTED_UNTIL_READY,
    EXECUTION,
)
"""Histograms by queue and priority class."""
READY_TO_EVICTED = "pods_ready_to_evicted_time_seconds"
"""By queue, reason and what is behind it."""
EVICTION_LATENCY = "workload_eviction_latency_seconds"
"""By queue and reason."""


@dataclass(slots=True)
class QueueCounts:
    """Counts since the start, of cluster queues or of local queues. Labels begin with those of the queue."""

    reserved: Counter[Labels] = field(default_factory=Counter)
    """By queue and priority class, as the next two."""
    admitted: Counter[Labels] = field(default_factory=Counter)
    finished: Counter[Labels] = field(default_factory=Counter)
    evicted: Counter[Labels] = field(default_factory=Counter)
    """By queue, reason, what is behind it, and priority class."""
    evicted_once: Counter[Labels] = field(default_factory=Counter)
    """The same, of workloads that were not evicted for that reason before."""
    times: dict[str, dict[Labels, Histogram]] = field(default_factory=dict)
    """By name and labels."""

    def took(self, name: str, labels: Labels, seconds: float | None) -> None:
        if seconds is not None:
            known = self.times.setdefault(name, {})
            known.setdefault(labels, Histogram()).add(max(0.0, seconds))

    def keep(self, queues: Collection[Labels], width: int) -> None:
        """Forget all other queues, whose labels are so many."""
        counters = (self.reserved, self.admitted, self.finished, self.evicted, self.evicted_once)
        by_labels: list[dict[Labels, Any]] = [*counters, *self.times.values()]
        for counts in by_labels:
            for labels in [each for each in counts if each[:width] not in queues]:
                del counts[labels]


@dataclass(slots=True)
class QueueTally:
    """Counts since the start, and where the present numbers are."""

    attempts: Counter[Labels] = field(default_factory=Counter)
    """By result: success or inadmissible."""
    attempt_times: dict[Labels, Histogram] = field(default_factory=dict)
    """How long cycles took, by result."""
    cluster: QueueCounts = field(default_factory=QueueCounts)
    local: QueueCounts = field(default_factory=QueueCounts)
    """Their labels are name and namespace."""
    preempted: Counter[Labels] = field(default_factory=Counter)
    """By the cluster queue that it was for, and reason."""
    dispatched: Counter[Labels] = field(default_factory=Counter)
    """Workloads that were offered to a worker: by cluster queue and worker, as the next."""
    taken: Counter[Labels] = field(default_factory=Counter)
    """Workloads that a worker has admitted and got."""
    state: Callable[[], QuotaState | None] = lambda: None
    """The engine that decides now."""

    def state_now(self) -> QuotaState | None:
        return self.state()

    def cycle_took(self, seconds: float, *, success: bool) -> None:
        labels = ("success" if success else "inadmissible",)
        self.attempt_times.setdefault(labels, Histogram(ATTEMPTS)).add(seconds)

    def keep(self, state: QuotaState) -> None:
        """Forget queues that are gone."""
        names = {(name,) for name in state.books.queues}
        self.cluster.keep(names, 1)
        for counts in (self.preempted, self.dispatched, self.taken):
            for labels in [each for each in counts if each[:1] not in names]:
                del counts[labels]
        keys = (key.partition("/") for key in state.local_queues.all())
        self.local.keep({(name, namespace) for namespace, _, name in keys}, 2)

    def note(
        self, workload: Workload, spec: WorkloadSpec, before: WorkloadStatus, after: WorkloadStatus
    ) -> None:
        """The status of a Workload was written."""
        admission = after.admission or before.admission
        queue = ("" if admission is None else admission.cluster_queue,)
        local = (spec.queue_name, workload.metadata.namespace)
        created = seconds_of(workload.metadata.creation_timestamp)
        class_ = "" if spec.priority_class_ref is None else spec.priority_class_ref.name
        for counts, labels in ((self.cluster, queue), (self.local, local)):
            _Step(counts, labels, class_, created, before, after).count()


class _Step:
    """What a write has changed, counted for one queue."""

    def __init__(
        self,
        counts: QueueCounts,
        queue: Labels,
        class_: str,
        created: float | None,
        before: WorkloadStatus,
        after: WorkloadStatus,
    ) -> None:
        self._counts = counts
        self._queue = queue
        self._labels = (*queue, class_)
        self._class = class_
        self._created = created
        self._before = before
        self._after = after

    def count(self) -> None:
        counts, labels = self._counts, self._labels
        if self._became(QUOTA_RESERVED):
            counts.reserved[labels] += 1
            counts.took(RESERVED_WAIT, labels, self._since_queued(QUOTA_RESERVED))
        if self._became(ADMITTED):
            counts.admitted[labels] += 1
            counts.took(ADMISSION_WAIT, labels, self._since_queued(ADMITTED))
            counts.took(CHECKS_WAIT, labels, self._between(QUOTA_RESERVED, ADMITTED))
        if self._became(PODS_READY) and reason_of(self._before, PODS_READY) != WAIT_FOR_RECOVERY:
            counts.took(READY_WAIT, labels, self._since_queued(PODS_READY))
            counts.took(ADMITTED_UNTIL_READY, labels, self._between(ADMITTED, PODS_READY))
        if self._became(FINISHED):
            counts.finished[labels] += 1
            if self._before.is_true(ADMITTED):
                past = self._after.accumulated_past_execution_time_seconds or 0
                last = self._between(ADMITTED, FINISHED)
                counts.took(EXECUTION, labels, None if last is None else past + last)
        if self._became(EVICTED):
            self._count_eviction()
        if self._before.is_true(QUOTA_RESERVED) and not self._after.is_true(QUOTA_RESERVED):
            reason = reason_of(self._before, EVICTED)
            if self._before.is_true(EVICTED):
                took = self._between(EVICTED, QUOTA_RESERVED)
                counts.took(EVICTION_LATENCY, (*self._queue, reason), took)

    def _count_eviction(self) -> None:
        counts = self._counts
        reason, cause, is_first = _new_eviction(self._before, self._after)
        labels = (*self._queue, reason, cause, self._class)
        counts.evicted[labels] += 1
        if is_first:
            counts.evicted_once[labels] += 1
        if self._before.is_true(PODS_READY):
            ready = since(self._before, PODS_READY)
            evicted = since(self._after, EVICTED)
            took = None if ready is None or evicted is None else evicted - ready
            counts.took(READY_TO_EVICTED, (*self._queue, reason, cause), took)

    def _became(self, type_: str) -> bool:
        return self._after.is_true(type_) and not self._before.is_true(type_)

    def _between(self, first: str, then: str) -> float | None:
        began, ended = since(self._after, first), since(self._after, then)
        return None if began is None or ended is None else ended - began

    def _since_queued(self, type_: str) -> float | None:
        """Since it was created, or queued again after an eviction."""
        again = since(self._after, REQUEUED) if self._after.is_true(REQUEUED) else None
        queued = self._created if again is None else again
        now = since(self._after, type_)
        return None if queued is None or now is None else now - queued


def _new_eviction(before: WorkloadStatus, after: WorkloadStatus) -> tuple[str, str, bool]:
    """The reason of the latest eviction, what is behind it, and whether it is the first for that."""
    known = {
        (each.reason, each.underlying_cause): each.count
        for each in (before.scheduling_stats or SchedulingStats()).evictions
    }
    for each in (after.scheduling_stats or SchedulingStats()).evictions:
        key = (each.reason, each.underlying_cause)
        if each.count > known.get(key, 0):
            return *key, key not in known
    return reason_of(after, EVICTED), "", False
