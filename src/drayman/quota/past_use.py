"""Admission fair sharing: between the local queues of one cluster queue, who used less in the past comes first.

What a local queue has used is remembered and fades: at each sample it is moved towards what is used now, the further the more time has
passed in terms of the half-life. So that not all workloads of one local queue are admitted between two samples, each counts from the
moment it gets quota with what the next sample will make of it (its penalty).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from heapq import heapify, heappop, heappush

from drayman.api.times import parse_duration
from drayman.quota.amounts import Amounts
from drayman.quota.settings import AdmissionFairSharingSettings

Remembered = Mapping[str, tuple[Mapping[str, float], Mapping[str, Amounts], float | None]]
"""By local queue: what it has used, what the next sample will find, and when the last one was."""


class _Record:
    """What is remembered of one local queue."""

    __slots__ = ("consumed", "penalties", "sampled_at", "weight")

    def __init__(self) -> None:
        self.consumed: dict[str, float] = {}
        self.penalties: dict[str, Amounts] = {}
        self.sampled_at: float | None = None
        self.weight = 1.0


class PastUse:
    """The past use of all local queues. Queues and workloads are named by key."""

    def __init__(self, settings: AdmissionFairSharingSettings) -> None:
        """Raises ValueError for durations that make no sense."""
        self._half_life = parse_duration(settings.usage_half_life_time)
        self._interval = parse_duration(settings.usage_sampling_interval)
        self._weights = settings.resource_weights
        self._records: dict[str, _Record] = {}
        self._due: list[tuple[float, str]] = []
        """When local queues are to be sampled: a heap, in which those of queues that are gone are outdated."""
        self.falls = 0
        """Grows when the share of a queue may have become smaller. As long as it stays the same, shares only grow."""

    def set_queue(
        self, queue: str, weight: float, consumed: Mapping[str, float], sampled_at: float | None
    ) -> None:
        """A local queue, and what its status remembers if nothing is known here."""
        record = self._records.get(queue)
        if record is None:
            record = self._records[queue] = _Record()
            record.consumed, record.sampled_at = dict(consumed), sampled_at
            heappush(self._due, (self._due_at(record), queue))
        if record.weight != weight:
            self.falls += 1
        record.weight = weight

    def remove_queue(self, queue: str) -> None:
        if self._records.pop(queue, None) is not None:
            self.falls += 1

    def share(self, queue: str) -> float:
        """How much a local queue has used, over its weight. Infinite without weight."""
        record = self._records.get(queue)
        if record is None:
            return 0.0
        if record.weight <= 0:
            return math.inf
        total = sum(self._weighed(name, amount) for name, amount in record.consumed.items())
        share = self._part(self._interval)
        for amounts in record.penalties.values():
            total += share * sum(self._weighed(name, amount) for name, amount in amounts.items())
        return total / record.weight

    def consumed(self, queue: str) -> Mapping[str, float]:
        """What the status of a local queue remembers."""
        record = self._records.get(queue)
        return {} if record is None else record.consumed

    def is_sampled(self, queue: str, since: float) -> bool:
        """Whether quota that was reserved at some time is in what is remembered."""
        record = self._records.get(queue)
        return record is None or record.sampled_at is None or since <= record.sampled_at

    def remembered(self) -> Remembered:
        """All that is known now, to be restored later."""
        return {
            queue: (dict(each.consumed), dict(each.penalties), each.sampled_at)
            for queue, each in self._records.items()
        }

    def restore(self, remembered: Remembered) -> None:
        """Forget what happened since then."""
        for queue, (consumed, penalties, sampled_at) in remembered.items():
            record = self._records.get(queue)
            if record is not None:
                record.consumed, record.penalties = dict(consumed), dict(penalties)
                record.sampled_at = sampled_at
        self._due = [(self._due_at(record), queue) for queue, record in self._records.items()]
        heapify(self._due)
        self.falls += 1

    def admitted(self, queue: str, workload: str, amounts: Amounts) -> None:
        """A workload got quota between two samples."""
        record = self._records.get(queue)
        if record is not None:
            record.penalties[workload] = amounts

    def not_admitted(self, queue: str, workload: str) -> None:
        """It could not be admitted after all."""
        record = self._records.get(queue)
        if record is not None:
            record.penalties.pop(workload, None)
            self.falls += 1

    def sample(self, now: float, current: Callable[[str], Amounts]) -> bool:
        """Move what is remembered towards what is used now, for all queues whose time has come. Whether there were any."""
        due = []
        while self._due and self._due[0][0] <= now:
            due.append(heappop(self._due))
        for at, queue in due:
            record = self._records.get(queue)
            if record is None or self._due_at(record) != at:
                continue
            since = record.sampled_at
            part = 1.0 if since is None else self._part(now - since)
            used = current(queue)
            if since is not None or used:
                record.consumed = {
                    name: (1 - part) * record.consumed.get(name, 0.0) + part * used.get(name, 0)
                    for name in {**record.consumed, **used}
                }
            record.penalties.clear()
            record.sampled_at = now
            heappush(self._due, (self._due_at(record), queue))
        if due:
            self.falls += 1
        return bool(due)

    def _due_at(self, record: _Record) -> float:
        return -math.inf if record.sampled_at is None else record.sampled_at + self._interval

    def _part(self, elapsed: float) -> float:
        """How much of what was remembered gives way to what is used now after so much time."""
        return 1.0 if self._half_life <= 0 else 1.0 - 0.5 ** (elapsed / self._half_life)

    def _weighed(self, resource: str, amount: float) -> float:
        return self._weights.get(resource, 1.0) * amount
