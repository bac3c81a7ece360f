"""What is counted about queues, by the names that Kueue's metrics have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from drayman.api.kueue_workload import (
    ADMITTED,
    EVICTED,
    FINISHED,
    QUOTA_RESERVED,
    SchedulingStats,
    WorkloadStatus,
)
from drayman.quota.state import QuotaState

Labels = tuple[str, ...]


@dataclass(slots=True)
class QueueTally:
    """Counts since the start, and where the present numbers are."""

    attempts: Counter[Labels] = field(default_factory=Counter)
    """By result: success or inadmissible."""
    reserved: Counter[Labels] = field(default_factory=Counter)
    """By cluster queue, as the next two."""
    admitted: Counter[Labels] = field(default_factory=Counter)
    finished: Counter[Labels] = field(default_factory=Counter)
    evicted: Counter[Labels] = field(default_factory=Counter)
    """By cluster queue, reason and what is behind it."""
    preempted: Counter[Labels] = field(default_factory=Counter)
    """By the cluster queue that it was for, and reason."""
    dispatched: Counter[Labels] = field(default_factory=Counter)
    """Workloads that were offered to a worker: by cluster queue and worker, as the next."""
    taken: Counter[Labels] = field(default_factory=Counter)
    """Workloads that a worker has admitted and got."""
    state: Callable[[], QuotaState | None] = lambda: None
    """The engine that decides now."""

    def note(self, before: WorkloadStatus, after: WorkloadStatus) -> None:
        """The status of a Workload was written."""
        admission = after.admission or before.admission
        queue = "" if admission is None else admission.cluster_queue
        for type_, counter in (
            (QUOTA_RESERVED, self.reserved),
            (ADMITTED, self.admitted),
            (FINISHED, self.finished),
        ):
            if after.is_true(type_) and not before.is_true(type_):
                counter[queue,] += 1
        if after.is_true(EVICTED) and not before.is_true(EVICTED):
            reason, cause = _new_eviction(before, after)
            self.evicted[queue, reason, cause] += 1


def _new_eviction(before: WorkloadStatus, after: WorkloadStatus) -> tuple[str, str]:
    """The reason of the latest eviction, and what is behind it."""
    known = {
        (each.reason, each.underlying_cause): each.count
        for each in (before.scheduling_stats or SchedulingStats()).evictions
    }
    for each in (after.scheduling_stats or SchedulingStats()).evictions:
        key = (each.reason, each.underlying_cause)
        if each.count > known.get(key, 0):
            return key
    found = after.condition(EVICTED)
    return ("" if found is None else found.reason), ""
