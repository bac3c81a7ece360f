"""Detects nodes that have gone silent, and records it in their conditions and taints.

A node is heard from when it renews its lease or writes its status. What counts is when that was noticed here, by a clock that
cannot be set; the times that nodes write are never compared with it. So after a restart every node has its full time again. A node that
never had a lease has not promised heartbeats, and is left alone.

When all nodes fall silent together the fault is more likely here than there: pods are then not asked to leave.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

from drayman.api import codec
from drayman.api.core import Node
from drayman.api.node_taints import NOT_READY
from drayman.api.times import timestamp_at
from drayman.api.workloads import Lease
from drayman.cluster.client import Client
from drayman.cluster.errors import NotFoundError
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.patches import json_patch, merge_patch
from drayman.cluster.resources import NODE_LEASES, NODES
from drayman.controllers.nodes.health import conditions_of, taints_of
from drayman.controllers.nodes.pods_on_nodes import PodsOnNodes, set_condition
from drayman.controllers.workloads.reconciling import Clock, Key, Reconciler
from drayman.placement.fit.readiness import is_ready
from drayman.workloads.pod_state import is_ready as is_pod_ready

LEASE_NAMESPACE: Final = "kube-node-lease"


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """Times, in seconds."""

    grace: float = 40.0
    """How long a node may be silent."""
    quarantine: float = 40.0
    """How long a node has to be gone before its pods are removed."""


@dataclass(frozen=True, slots=True)
class _Heard:
    signs: tuple[str, ...]
    """What the node had written when it was last heard from."""
    at: float


class NodeLifecycleController(Reconciler[Node]):
    """Keeps the conditions and taints of nodes in line with whether they are heard from."""

    resource = NODES
    component = "node-controller"
    workers = 2

    def __init__(
        self,
        client: Client,
        informers: Informers,
        *,
        clock: Clock = time.time,
        steady: Clock = time.monotonic,
        options: NodeOptions | None = None,
    ) -> None:
        """`steady` measures silence; `clock`, which may be set to another time at any moment, is for times in objects."""
        self._options = options or NodeOptions()
        self._steady = steady
        self._heard: dict[str, _Heard] = {}
        super().__init__(client, informers, clock=clock)
        self._pods = PodsOnNodes(informers)
        self._leases = informers.informer(NODE_LEASES)
        self._leases.add_handler(self._lease_changed)

    async def reconcile(self, key: Key) -> None:
        node = self.find(key)
        if node is None or node.metadata.deletion_timestamp is not None:
            self._heard.pop(key[1], None)
            return
        heard = self._listen(node, self._leases.cache.get(key[1], LEASE_NAMESPACE))
        if heard is None:
            await self._welcome(node)
            return
        moment, now = self._steady(), self.clock()
        left = heard.at + self._options.grace - moment
        if left <= 0 and is_ready(node.status.conditions):
            # Before a node is given up the server itself is asked: the cache may be late.
            heard = self._listen(node, await self._latest_lease(key[1])) or heard
            left = heard.at + self._options.grace - moment
        conditions = conditions_of(node, silent=left <= 0, now=now)
        if conditions != node.status.conditions:
            self.record(
                node, "Normal", "NodeNotReady", f"Node {key[1]} status is now: NodeNotReady"
            )
            node = await self._write_conditions(node, [codec.to_dict(c) for c in conditions])
        taints = taints_of(node, conditions, evicting=not self._is_all_silent(moment), now=now)
        if taints != node.spec.taints:
            node = await self._write_taints(node, [codec.to_dict(taint) for taint in taints])
        if not is_ready(conditions):
            await self._mark_pods(node, now)
        if left > 0:
            self.queue.add_after(key, left)

    async def _welcome(self, node: Node) -> None:
        """Every node is tainted when it is made. One without a lease is trusted when it says that it is ready."""
        kept = [t for t in node.spec.taints if (t.key, t.effect) != (NOT_READY, "NoSchedule")]
        if is_ready(node.status.conditions) and len(kept) < len(node.spec.taints):
            await self._write_taints(node, [codec.to_dict(taint) for taint in kept])

    async def _latest_lease(self, name: str) -> Lease | None:
        try:
            return await self.client.get(NODE_LEASES, name, LEASE_NAMESPACE)
        except NotFoundError:
            return None

    def _listen(self, node: Node, lease: Lease | None) -> _Heard | None:
        """When a node was last heard from; None for one that never had a lease."""
        name = node.metadata.name
        heard = self._heard.get(name)
        if lease is None:
            return heard
        beats = (c.last_heartbeat_time or "" for c in node.status.conditions if c.type_ == "Ready")
        signs = (lease.spec.renew_time or "", *beats)
        if heard is None or heard.signs != signs:
            heard = self._heard[name] = _Heard(signs, self._steady())
        return heard

    def _is_all_silent(self, moment: float) -> bool:
        """Whether none of several nodes is heard from any more."""
        limit = moment - self._options.grace
        return len(self._heard) > 1 and all(heard.at <= limit for heard in self._heard.values())

    def _lease_changed(self, notice: Notice[Lease]) -> None:
        metadata = notice.object.metadata
        if metadata.namespace != LEASE_NAMESPACE or notice.type == "DELETED":
            return
        node = self.informer.cache.get(metadata.name)
        if node is None:
            return
        is_new = metadata.name not in self._heard
        self._listen(node, notice.object)
        if is_new or not is_ready(node.status.conditions):
            self.queue.add(("", metadata.name))

    async def _write_conditions(self, node: Node, conditions: list[object]) -> Node:
        version = node.metadata.resource_version
        change = json_patch(
            [
                {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
                {"op": "add", "path": "/status/conditions", "value": conditions},
            ]
        )
        written = await self.client.patch(NODES, node.metadata.name, change, subresource="status")
        self.wrote(written)
        return written

    async def _write_taints(self, node: Node, taints: list[object]) -> Node:
        metadata = {"resourceVersion": node.metadata.resource_version}
        change = merge_patch({"metadata": metadata, "spec": {"taints": taints}})
        written = await self.client.patch(NODES, node.metadata.name, change)
        self.wrote(written)
        return written

    async def _mark_pods(self, node: Node, now: float) -> None:
        """What runs on a node that is not ready cannot be relied on."""
        condition = {"type": "Ready", "status": "False", "lastTransitionTime": timestamp_at(now)}
        for pod in self._pods.of(node.metadata.name):
            if is_pod_ready(pod):
                await set_condition(self.client, pod, condition)
