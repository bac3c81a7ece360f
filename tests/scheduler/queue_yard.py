"""A cluster state with queues of KAI, and the units that wait in them: without a scheduler, or anything else that runs."""

from __future__ import annotations

from msgspec.structs import replace

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.custom_groups import KaiPodGroup, KaiQueue
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

    def set_group(self, name: str, least: int, created: str = TIME) -> None:
        """A pod group that needs so many pods."""
        metadata = {"name": name, "namespace": "default", "uid": name, "creationTimestamp": created}
        self.state.set_group(
            convert(KaiPodGroup, {"metadata": metadata, "spec": {"minMember": least}})
        )

    def add(
        self, name: str, leaf: str, size: int = 1, priority: int = 0, *, group: str = ""
    ) -> None:
        """A pod that waits, or another version of it."""
        made = _pod(name, leaf, size, priority, group)
        self.state.set_pod(made)
        gangs = self.state.gangs
        unit = gangs.unit_of(made)
        self.queue.add(made, unit, gangs.stated_priority(unit), self.state.queues.leaf_of(name))

    def run(self, name: str, leaf: str, *, group: str = "") -> None:
        """A pod that has a node."""
        made = _pod(name, leaf, 1, 0, group)
        self.state.set_pod(replace(made, spec=replace(made.spec, node_name="n")))

    def take(self, most: int = 100) -> list[str]:
        """Who comes next; they get their room."""
        taken = self.queue.take(most, 0.0)
        for entry in taken:
            self.state.queues.place(entry.key)
            self.queue.placed(entry)
        return [entry.key for entry in taken]


def _pod(name: str, leaf: str, size: int, priority: int, group: str) -> Pod:
    amounts = {"requests": {GPU: str(size)}, "limits": {GPU: str(size)}}
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": name,
        "labels": {"kai.scheduler/queue": leaf},
        "annotations": {"pod-group-name": group} if group else {},
        "creationTimestamp": TIME,
    }
    container = {"name": "c", "image": "i", "resources": amounts}
    spec = {"containers": [container], "priority": priority}
    return convert(Pod, {"metadata": metadata, "spec": spec})


def _queue(name: str, quota: int = 0) -> KaiQueue:
    gpu = {"quota": quota, "limit": -1, "overQuotaWeight": 1}
    metadata = {"name": name, "creationTimestamp": TIME}
    return convert(KaiQueue, {"metadata": metadata, "spec": {"resources": {"gpu": gpu}}})
