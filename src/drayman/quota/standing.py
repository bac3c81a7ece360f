"""What the state of its queues means for a workload, apart from any cycle."""

from __future__ import annotations

from collections.abc import Mapping

from drayman.quota.cluster_queues import DRAIN, ClusterQueueState
from drayman.quota.decisions import Evicted, Refused
from drayman.quota.demands import Unpriced
from drayman.quota.entries import Entry, Holding
from drayman.quota.local_queues import LocalQueueState
from drayman.quota.reasons import (
    CLUSTER_QUEUE_STOPPED,
    DEACTIVATED,
    LOCAL_QUEUE_STOPPED,
    MISCONFIGURED,
    SUSPENDED,
)


def standing_of(
    entry: Entry, local: LocalQueueState | None, queues: Mapping[str, ClusterQueueState]
) -> Evicted | Refused | None:
    """That it has to give up its quota, or why it cannot get any. None: it may keep what it has, or waits for its turn."""
    key = entry.key
    if not entry.facts.active:
        return Evicted(key, DEACTIVATED, "The workload is deactivated")
    if entry.holding is not None:
        return _eviction(key, entry.holding, local, queues)
    name = entry.facts.queue.partition("/")[2]
    if local is None:
        return Refused(key, MISCONFIGURED, f"LocalQueue {name} doesn't exist")
    if local.is_stopped:
        return Refused(key, SUSPENDED, f"LocalQueue {name} is inactive")
    queue = queues.get(local.cluster_queue)
    if queue is None:
        return Refused(key, MISCONFIGURED, f"ClusterQueue {local.cluster_queue} doesn't exist")
    if queue.inactive:
        text = f"ClusterQueue {queue.name} is inactive: {queue.inactive}"
        return Refused(key, SUSPENDED, text)
    demands = entry.facts.demands
    if isinstance(demands, Unpriced):
        return Refused(key, demands.reason, demands.message)
    return None


def _eviction(
    key: str,
    holding: Holding,
    local: LocalQueueState | None,
    queues: Mapping[str, ClusterQueueState],
) -> Evicted | None:
    queue = queues.get(holding.cluster_queue)
    if queue is not None and queue.spec.stop_policy == DRAIN:
        return Evicted(key, CLUSTER_QUEUE_STOPPED, f"The ClusterQueue {queue.name} is stopped")
    if local is not None and local.stop_policy == DRAIN:
        return Evicted(key, LOCAL_QUEUE_STOPPED, "The LocalQueue is stopped")
    return None
