"""Removes pods that nothing else removes: those of nodes that are gone, and those that end without ever having had a node.

A pod only goes away when its kubelet says that it has ended. Where there is no kubelet, or will never be one again, this controller says
so. A node may be away for a moment only, as while it is registered again, so its pods have some time; and before they are removed the
server itself is asked whether the node is gone, not the cache.
"""

from __future__ import annotations

import time

from drayman.api.core import Node, Pod
from drayman.api.node_taints import OUT_OF_SERVICE
from drayman.api.pods import is_finished, is_leaving
from drayman.api.times import timestamp_at
from drayman.cluster.client import Client
from drayman.cluster.errors import NotFoundError
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.patches import disruption_target
from drayman.cluster.resources import NODES
from drayman.controllers.nodes.lifecycle import NodeOptions
from drayman.controllers.nodes.pods_on_nodes import PodsOnNodes, delete, set_condition
from drayman.controllers.workloads.reconciling import Clock, Key, Reconciler
from drayman.placement.fit.readiness import is_ready


class PodCollector(Reconciler[Node]):
    """Removes pods that have lost their node. Keys without a namespace are nodes, the others pods."""

    resource = NODES
    component = "pod-garbage-collector"
    workers = 1

    def __init__(
        self,
        client: Client,
        informers: Informers,
        *,
        clock: Clock = time.time,
        steady: Clock = time.monotonic,
        options: NodeOptions | None = None,
    ) -> None:
        """`steady` measures how long a node is gone; `clock` is for times in objects."""
        self._options = options or NodeOptions()
        self._steady = steady
        self._gone_since: dict[str, float] = {}
        super().__init__(client, informers, clock=clock)
        self._pods = PodsOnNodes(informers)
        self._pods.informer.add_handler(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        namespace, name = key
        if namespace:
            pod = self._pods.informer.cache.get(name, namespace)
            if pod is not None and _ends_without_node(pod):
                await delete(self.client, pod, at_once=True)
            return
        node = self.find(key)
        if node is None:
            await self._collect_orphans(key)
            return
        self._gone_since.pop(name, None)
        if _is_given_up(node):
            for pod in self._pods.of(name):
                if is_leaving(pod):
                    await self._remove(pod)

    async def _collect_orphans(self, key: Key) -> None:
        pods = self._pods.of(key[1])
        if not pods:
            self._gone_since.pop(key[1], None)
            return
        since = self._gone_since.setdefault(key[1], self._steady())
        left = since + self._options.quarantine - self._steady()
        if left > 0:
            self.queue.add_after(key, left)
            return
        try:
            await self.client.get(NODES, key[1])
        except NotFoundError:
            for pod in pods:
                await self._remove(pod)
            self._gone_since.pop(key[1], None)

    async def _remove(self, pod: Pod) -> None:
        """A pod that had not ended has failed, through no fault of its own."""
        if not is_finished(pod):
            when = timestamp_at(self.clock())
            condition = disruption_target("DeletionByPodGC", "PodGC: node no longer exists", when)
            if not await set_condition(self.client, pod, condition, phase="Failed"):
                return
        await delete(self.client, pod, at_once=True)

    def _pod_changed(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        if notice.type == "DELETED":
            return
        node = pod.spec.node_name
        if _ends_without_node(pod):
            self.queue.add((pod.metadata.namespace, pod.metadata.name))
        elif node and (is_leaving(pod) or self.informer.cache.get(node) is None):
            self.queue.add(("", node))


def _ends_without_node(pod: Pod) -> bool:
    # Deleting again does not remove what finalizers hold back.
    return is_leaving(pod) and not pod.spec.node_name and not pod.metadata.finalizers


def _is_given_up(node: Node) -> bool:
    """Whether a node is not ready and marked as out of service: it will not come back with its pods."""
    out = any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
    return out and not is_ready(node.status.conditions)
