"""A model of kube-scheduler's bookkeeping of devices, as a second scheduler beside ours.

It follows `pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go` of Kubernetes 1.36: a set of devices, to which the
allocation of a claim adds the claim's devices and from which a deallocation or deletion removes them, regardless of which other claims
hold them. A change from one allocation to another is not looked at, since the API does not permit it. An allocation of its own is
added when the write is answered; one that is being written is kept aside. Devices with a taint of a rule are passed over.

Everything else that kube-scheduler does is left out: the model gives a pod with one claim any device of any node that it takes for free.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from controllers.world import CLAIM_VALUES, FINALIZER
from drayman.api.core import Pod
from drayman.api.resource import DeviceTaintRule, ResourceClaim, ResourceSlice
from drayman.cluster import HttpClient, Informers
from drayman.cluster.errors import ClusterError
from drayman.cluster.informer import Notice
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import DEVICE_TAINT_RULES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from drayman.cluster.writes import BindWrite
from drayman.inventory.identity import DeviceId
from drayman.inventory.ledger import whole_devices

NAME = "kube-scheduler"


class KubeScheduler:
    """Serves the pods that name it."""

    def __init__(self, client: HttpClient, rng: random.Random) -> None:
        self._client = client
        self._rng = rng
        self._informers = Informers(client)
        self._cache: set[DeviceId] = set()
        self._claims: dict[str, ResourceClaim] = {}  # by uid, as the cache has seen them
        self._in_flight: dict[str, DeviceId] = {}  # by uid of the claim
        self._tainted: dict[str, DeviceId] = {}  # by name of the rule
        self._pods: dict[str, Pod] = {}
        self._devices: set[DeviceId] = set()
        self._work = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.forgotten: list[str] = []
        """Devices that it took for free although it had seen that a claim holds them."""

    async def run(self) -> None:
        for resource, handler in (
            (RESOURCE_SLICES, self._slice),
            (DEVICE_TAINT_RULES, self._rule),
            (RESOURCE_CLAIMS, self._claim),
            (PODS, self._pod),
        ):
            informer: Any = self._informers.informer(resource)
            informer.add_handler(handler)
        try:
            await self._informers.start()
            await self._informers.wait_synced()
            while True:
                await self._work.wait()
                self._work.clear()
                for pod in list(self._pods.values()):
                    self._cycle(pod)
        finally:
            await self._informers.stop()

    def _slice(self, notice: Notice[ResourceSlice]) -> None:
        spec = notice.object.spec
        for device in spec.devices:
            self._devices.add(DeviceId(spec.driver, spec.pool.name, device.name))
        self._work.set()

    def _rule(self, notice: Notice[DeviceTaintRule]) -> None:
        rule = notice.object
        selector = rule.spec.device_selector
        if notice.type == "DELETED":
            self._tainted.pop(rule.metadata.name, None)
        elif selector is not None:
            found = DeviceId(selector.driver or "", selector.pool or "", selector.device or "")
            self._tainted[rule.metadata.name] = found
        self._work.set()

    def _claim(self, notice: Notice[ResourceClaim]) -> None:
        claim = notice.object
        if notice.type == "DELETED":
            self._see(claim.metadata.uid, None)
        else:
            known = self._claims.get(claim.metadata.uid)
            if known is None or _version(known) < _version(claim):
                self._see(claim.metadata.uid, claim)
        self._work.set()

    def _see(self, uid: str, claim: ResourceClaim | None) -> None:
        """The handlers of the cache: only a claim that gets its allocation, or loses it, changes the set."""
        known = self._claims.pop(uid, None)
        before = whole_devices(known) if known is not None else frozenset()
        after = whole_devices(claim) if claim is not None else frozenset()
        if claim is not None:
            self._claims[uid] = claim
        if not before:
            self._cache |= after
        elif not after:
            self._cache -= before

    def _pod(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        waits = notice.type != "DELETED" and not pod.spec.node_name
        if waits and pod.spec.scheduler_name == NAME and not pod.metadata.deletion_timestamp:
            self._pods[pod.metadata.uid] = pod
            self._work.set()
        else:
            self._pods.pop(pod.metadata.uid, None)

    def _cycle(self, pod: Pod) -> None:
        statuses = pod.status.resource_claim_statuses
        name = statuses[0].resource_claim_name if statuses else None
        claim = next((c for c in self._claims.values() if c.metadata.name == name), None)
        if claim is None or claim.metadata.uid in self._in_flight:
            return
        taken = self._cache | set(self._in_flight.values()) | set(self._tainted.values())
        free = sorted(self._devices - taken)
        if claim.status.allocation is None and free:
            device = self._rng.choice(free)
            if any(device in whole_devices(other) for other in self._claims.values()):
                self.forgotten.append(str(device))
            self._in_flight[claim.metadata.uid] = device
            task = asyncio.create_task(self._bind(pod, claim, device))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _bind(self, pod: Pod, claim: ResourceClaim, device: DeviceId) -> None:
        """PreBind and Bind: the finalizer, the allocation with the reservation, then the node."""
        metadata, client = claim.metadata, self._client
        node = device.pool
        match = {"key": "metadata.name", "operator": "In", "values": [node]}
        status = {
            "allocation": {
                "devices": {"results": [{"request": "r", **device._asdict()}]},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [match]}]},
            },
            "reservedFor": [
                {"resource": "pods", "name": pod.metadata.name, "uid": pod.metadata.uid}
            ],
        }
        finalizer = {"metadata": {"finalizers": [FINALIZER]}}
        where = (CLAIM_VALUES, metadata.name)
        try:
            await client.patch(*where, merge_patch(finalizer), metadata.namespace)
            await client.patch(
                *where, merge_patch({"status": status}), metadata.namespace, subresource="status"
            )
            written = await client.get(RESOURCE_CLAIMS, metadata.name, metadata.namespace)
            self._claim(Notice("MODIFIED", written, None))
            bind = BindWrite(pod.metadata.name, pod.metadata.namespace, node, pod.metadata.uid)
            await client.write_many([bind])
        except ClusterError:
            self._work.set()
        finally:
            self._in_flight.pop(metadata.uid, None)


def _version(claim: ResourceClaim) -> int:
    return int(claim.metadata.resource_version)


@asynccontextmanager
async def kube_scheduler(client: HttpClient, rng: random.Random) -> AsyncIterator[KubeScheduler]:
    """The model at work."""
    async with client:
        made = KubeScheduler(client, rng)
        running = asyncio.create_task(made.run())
        try:
            yield made
        finally:
            running.cancel()
            await asyncio.wait((running,))
