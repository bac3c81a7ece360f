"""Removes pods that nothing else removes: those of nodes that are gone, those that end without ever having had a node, and old ones.

A pod only goes away when its kubelet says that it has ended. Where there is no kubelet, or will never be one again, this controller says
so. A node may be away for a moment only, as while it is registered again, so its pods have some time; and before they are removed the
server itself is asked whether the node is gone, not the cache.

Pods that have ended are kept for people to read, but no more than `MOST_ENDED` of them, as in Kubernetes: a Job can end pods without end.
"""

from __future__ import annotations

import time
from heapq import nsmallest
from typing import Final

from drayman.api.core import Node, Pod
from drayman.api.node_taints import OUT_OF_SERVICE
from drayman.api.pods import is_finished, is_leaving
from drayman.api.times import timestamp_at
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.options import DeleteOptions
from drayman.cluster.patches import disruption_target
from drayman.cluster.resources import NODES, PODS
from drayman.cluster.together import Bundle, write_together
from drayman.cluster.writes import DeleteWrite
from drayman.controllers.nodes.lifecycle import NodeOptions
from drayman.controllers.nodes.pods_on_nodes import PodsOnNodes, delete, set_condition
from drayman.controllers.workloads.reconciling import Clock, Key, Reconciler
from drayman.placement.fit.readiness import is_ready

MOST_ENDED: Final = 12_500
"""Pods that have ended, of all namespaces together. Kubernetes' own number."""
_AT_ONCE: Final = 200
_ENDED: Final = ("", "")
"""The key, which no node has, under which pods that have ended are looked at."""


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
        most_ended: int = MOST_ENDED,
    ) -> None:
        """`steady` measures how long a node is gone; `clock` is for times in objects."""
        self._options = options or NodeOptions()
        self._steady = steady
        self._most_ended = most_ended
        self._gone_since: dict[str, float] = {}
        self._ended: dict[str, Pod] = {}
        """Pods that have ended and are not being deleted, by uid."""
        super().__init__(client, informers, clock=clock)
        self._pods = PodsOnNodes(informers)
        self._pods.informer.add_handler(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        namespace, name = key
        if key == _ENDED:
            await self._remove_oldest()
            return
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

    async def _remove_oldest(self) -> None:
        """Removes the oldest of too many pods that have ended."""
        surplus = len(self._ended) - self._most_ended
        if surplus <= 0:
            return
        oldest = nsmallest(min(surplus, _AT_ONCE), self._ended.values(), key=_age_rank)
        await write_together(self.client, [_removal(pod) for pod in oldest])
        for pod in oldest:
            self._ended.pop(pod.metadata.uid, None)
        self.queue.add(_ENDED)

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
        self._note_ended(pod, is_gone=notice.type == "DELETED")
        if notice.type == "DELETED":
            return
        node = pod.spec.node_name
        if _ends_without_node(pod):
            self.queue.add((pod.metadata.namespace, pod.metadata.name))
        elif node and (is_leaving(pod) or self.informer.cache.get(node) is None):
            self.queue.add(("", node))

    def _note_ended(self, pod: Pod, *, is_gone: bool) -> None:
        if is_gone or not is_finished(pod) or is_leaving(pod):
            self._ended.pop(pod.metadata.uid, None)
            return
        self._ended[pod.metadata.uid] = pod
        if len(self._ended) > self._most_ended:
            self.queue.add(_ENDED)


def _age_rank(pod: Pod) -> tuple[str, str]:
    return pod.metadata.creation_timestamp or "", pod.metadata.uid


def _removal(pod: Pod) -> Bundle:
    options = DeleteOptions(uid=pod.metadata.uid, grace_period_seconds=0)
    write = DeleteWrite(PODS, pod.metadata.name, pod.metadata.namespace, options)
    return Bundle([write], _unless_gone)


def _unless_gone(error: ClusterError) -> None:
    if not isinstance(error, NotFoundError | ConflictError):
        raise error


def _ends_without_node(pod: Pod) -> bool:
    # Deleting again does not remove what finalizers hold back.
    return is_leaving(pod) and not pod.spec.node_name and not pod.metadata.finalizers


def _is_given_up(node: Node) -> bool:
    """Whether a node is not ready and marked as out of service: it will not come back with its pods."""
    out = any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)
    return out and not is_ready(node.status.conditions)
