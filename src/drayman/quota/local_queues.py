"""Local queues: where each leads, whether it is stopped, which workloads are in it, and what it used in the past."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from drayman.api.custom_groups import spec_of
from drayman.api.kueue import LocalQueue, LocalQueueSpec, LocalQueueStatus, status_of
from drayman.api.times import seconds_of
from drayman.quota.amounts import amount_of
from drayman.quota.books import STOPPING
from drayman.quota.past_use import PastUse
from drayman.quota.reading import key_of
from drayman.quota.tree.building import weight_of


class LocalQueueState(Struct, frozen=True):
    """What the object of a local queue says."""

    cluster_queue: str
    stop_policy: str

    @property
    def is_stopped(self) -> bool:
        return self.stop_policy in STOPPING


class LocalQueues:
    """All local queues, by key. Workloads are in one whether it exists or not."""

    def __init__(self, past_use: PastUse | None) -> None:
        self._past_use = past_use
        self._queues: dict[str, LocalQueueState] = {}
        self._members: dict[str, set[str]] = {}

    def set(self, value: LocalQueue) -> str | None:
        """Follow a local queue: its key if anything is otherwise now. Raises DecodeError."""
        spec = spec_of(LocalQueueSpec, value)
        key = key_of(value.metadata.namespace, value.metadata.name)
        local = LocalQueueState(spec.cluster_queue, spec.stop_policy or "")
        if self._past_use is not None:
            self._remember(self._past_use, key, spec, value)
        if self._queues.get(key) == local:
            return None
        self._queues[key] = local
        return key

    def remove(self, namespace: str, name: str) -> str | None:
        """Its key, if there was one."""
        key = key_of(namespace, name)
        if self._past_use is not None:
            self._past_use.remove_queue(key)
        return None if self._queues.pop(key, None) is None else key

    def find(self, key: str) -> LocalQueueState | None:
        return self._queues.get(key)

    def leads_to(self, key: str) -> str | None:
        """The cluster queue of a local queue; None if there is no such local queue."""
        local = self._queues.get(key)
        return None if local is None else local.cluster_queue

    def all(self) -> Mapping[str, LocalQueueState]:
        """What each says, by key."""
        return self._queues

    def members_in(self, namespace: str) -> Iterator[str]:
        """The workloads of a namespace, whichever queue they name."""
        for key, members in self._members.items():
            if key.partition("/")[0] == namespace:
                yield from tuple(members)

    def members(self, key: str) -> Iterator[str]:
        """The workloads in a local queue, in no particular order."""
        return iter(tuple(self._members.get(key, ())))

    def join(self, key: str, workload: str) -> None:
        self._members.setdefault(key, set()).add(workload)

    def leave(self, key: str, workload: str) -> None:
        members = self._members.get(key)
        if members is not None:
            members.discard(workload)
            if not members:
                del self._members[key]

    @staticmethod
    def _remember(past_use: PastUse, key: str, spec: LocalQueueSpec, value: LocalQueue) -> None:
        """What the status says about the past, for a queue that was not known before."""
        sharing = status_of(LocalQueueStatus, value).fair_sharing
        known = None if sharing is None else sharing.admission_fair_sharing_status
        consumed: dict[str, float] = {}
        sampled_at = None
        if known is not None:
            sampled_at = seconds_of(known.last_update)
            consumed = {
                name: float(amount_of(name, quantity))
                for name, quantity in known.consumed_resources.items()
            }
        past_use.set_queue(key, weight_of(spec.fair_sharing), consumed, sampled_at)
