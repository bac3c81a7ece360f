"""A cluster state with queues of KAI, and the units that wait in them: without a scheduler, or anything else that runs."""

from __future__ import annotations

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.custom_groups import KaiQueue
from drayman.inventory.features import Features
from drayman.placement.state import ClusterState
from drayman.quota.shares.live import LiveShares
from drayman.scheduler.queue import Queue
from drayman.scheduler.queue_turns import QueueTurns

GPU = "example.com/gpu"
TIME = "2026-01-01T00:00:00Z"


class Yard:
    """A state and the units that wait, with one node of so many GPUs."""

    def __init__(self, gpus: int = 8, queues: dict[str, int] | None = None) -> None:
        self.state = ClusterState(Features(), lambda _: None)
        allocatable = {GPU: str(gpus), "cpu": "64", "memory": "1Ti", "pods": "1000"}
        node = {"metadata": {"name": "n"}, "status": {"allocatable": allocatable}}
        self.state.set_node(convert(Node, node))
        self.shares = LiveShares(self.state)
        self.queue = Queue()
        self.queue.arbiter = QueueTurns(self.state, self.shares)
        for name, quota in (queues or {}).items():
            self.set_queue(name, quota)

    def set_queue(self, name: str, quota: int) -> None:
        self.state.set_queue(_queue(name, quota))

    def remove_queue(self, name: str) -> None:
        self.state.remove_queue(_queue(name))

    def add(self, name: str, leaf: str, size: int = 1, priority: int = 0) -> None:
        """A pod that waits, or another version of it."""
        amounts = {"requests": {GPU: str(size)}, "limits": {GPU: str(size)}}
        labels = {"kai.scheduler/queue": leaf}
        metadata = {"name": name, "namespace": "default", "uid": name, "labels": labels}
        container = {"name": "c", "image": "i", "resources": amounts}
        pod = {
            "metadata": {**metadata, "creationTimestamp": TIME},
            "spec": {"containers": [container], "priority": priority},
        }
        made = convert(Pod, pod)
        self.state.set_pod(made)
        self.queue.add(made, None, None, self.state.queues.leaf_of(name))

    def take(self, most: int = 100) -> list[str]:
        """Who comes next; they get their room."""
        taken = self.queue.take(most, 0.0)
        for entry in taken:
            self.state.queues.place(entry.key)
            self.queue.placed(entry)
        return [entry.key for entry in taken]


def _queue(name: str, quota: int = 0) -> KaiQueue:
    gpu = {"quota": quota, "limit": -1, "overQuotaWeight": 1}
    metadata = {"name": name, "creationTimestamp": TIME}
    return convert(KaiQueue, {"metadata": metadata, "spec": {"resources": {"gpu": gpu}}})
