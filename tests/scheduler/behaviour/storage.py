"""Volumes on a stage, and hands that do what kube-controller-manager and a provisioner do on a real cluster."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from controllers.world import NAMESPACE, eventually
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim
from drayman.apiserver.instance import Folder, Options, start
from drayman.cluster import Client, HttpClient, Informers
from drayman.cluster.resources import (
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    JsonObject,
)
from drayman.scheduler.options import SchedulerOptions
from drayman.scheduler.running import Scheduler
from scheduler.behaviour.stage import Stage

CLASS_VALUES = STORAGE_CLASSES.as_values()
VOLUME_VALUES = PERSISTENT_VOLUMES.as_values()
VOLUME_CLAIM_VALUES = VOLUME_CLAIMS.as_values()
SELECTED = "volume.kubernetes.io/selected-node"
PROVISIONER = "ebs.csi.aws.com"
HOST = "kubernetes.io/hostname"


class Storage(Stage):
    """A cluster with volumes. `data` is the claim if no other is named."""

    __slots__ = ()

    async def lazy_class(self, name: str, provisioner: str = PROVISIONER, **fields: Any) -> None:
        """A class whose claims wait for a pod."""
        mode = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        await self.create(CLASS_VALUES, {"metadata": {"name": name}, **mode, **fields})

    async def disks(self, *nodes: str, size: str = "100Gi") -> None:
        """The class `local`, and a disk on each node, which is named after it and made known as available."""
        await self.lazy_class("local", "kubernetes.io/no-provisioner")
        for node in nodes:
            await self.disk(f"disk-{node}", node, size)

    async def disk(self, name: str, node: str, size: str = "100Gi") -> None:
        spec = {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "local": {"path": "/mnt"},
            "nodeAffinity": at(node),
        }
        await self.create(VOLUME_VALUES, {"metadata": {"name": name}, "spec": spec})
        await self.patch(VOLUME_VALUES, name, {"status": {"phase": "Available"}}, "status")

    async def wants(self, storage_class: str, name: str = "data", **fields: Any) -> None:
        """A claim without a volume."""
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "10Gi"}},
            **fields,
        }
        await self.create(VOLUME_CLAIM_VALUES, {"metadata": {"name": name}, "spec": spec})

    async def start_user(self, name: str, *claims: str, **spec: Any) -> None:
        """A pod that uses volume claims."""
        volumes = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
        await self.start_pod(name, *spec.pop("entries", ()), volumes=volumes, **spec)

    async def until_volume_claim(
        self, wanted: Callable[[PersistentVolumeClaim], bool], name: str = "data"
    ) -> PersistentVolumeClaim:
        return await eventually(lambda: self.client.get(VOLUME_CLAIMS, name, NAMESPACE), wanted)

    async def until_volume(
        self, name: str, wanted: Callable[[PersistentVolume], bool]
    ) -> PersistentVolume:
        return await eventually(lambda: self.client.get(PERSISTENT_VOLUMES, name), wanted)

    async def selected(self, name: str = "data") -> str:
        """Waits until a node was chosen for a claim; returns it."""
        claim = await self.until_volume_claim(lambda c: SELECTED in c.metadata.annotations, name)
        return claim.metadata.annotations[SELECTED]

    async def reserved(self, name: str) -> PersistentVolume:
        """Waits until a claim was entered in a volume."""
        return await self.until_volume(name, lambda volume: volume.spec.claim_ref is not None)

    # What others do on a real cluster.

    async def provision(self, claim: str = "data", node: str = "") -> str:
        """A provisioner makes a volume, on one node if that is said, and the claim gets it; returns its name."""
        found = await self.client.get(VOLUME_CLAIMS, claim, NAMESPACE)
        name = f"pvc-{found.metadata.uid}"
        ref = {"name": claim, "namespace": NAMESPACE, "uid": found.metadata.uid}
        spec: JsonObject = {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": found.spec.storage_class_name,
            "claimRef": ref,
            "csi": {"driver": PROVISIONER, "volumeHandle": name},
        }
        if node:
            spec["nodeAffinity"] = at(node)
        await self.create(VOLUME_VALUES, {"metadata": {"name": name}, "spec": spec})
        await self.complete(name, claim)
        return name

    async def complete(self, volume: str, claim: str = "data") -> None:
        """The volume controller completes a binding that somebody has begun."""
        done = {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
        }
        change = {"metadata": {"annotations": done}, "spec": {"volumeName": volume}}
        await self.patch(VOLUME_VALUES, volume, {"status": {"phase": "Bound"}}, "status")
        await self.patch(VOLUME_CLAIM_VALUES, claim, change)
        await self.patch(VOLUME_CLAIM_VALUES, claim, {"status": {"phase": "Bound"}}, "status")

    async def turn_down(self, claim: str = "data") -> None:
        """A provisioner cannot make a volume for the node that was chosen."""
        await self.patch(
            VOLUME_CLAIM_VALUES, claim, {"metadata": {"annotations": {SELECTED: None}}}
        )


def at(node: str) -> JsonObject:
    expression = {"key": HOST, "operator": "In", "values": [node]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


class Process:
    """A scheduler as it runs on a cluster of others: over HTTP, one request after the other."""

    def __init__(self, client: Client, **options: Any) -> None:
        self._client = client
        self._options = SchedulerOptions(
            **{"first_backoff_s": 0.3, "longest_backoff_s": 0.5, **options}
        )
        self._informers = Informers(client)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._informers = Informers(self._client)
        self._task = asyncio.create_task(
            Scheduler(self._client, self._informers, self._options).run()
        )

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
            self._task = None
        await self._informers.stop()


@asynccontextmanager
async def elsewhere(
    folder: Path, wire: type[HttpClient] = HttpClient, **options: Any
) -> AsyncIterator[tuple[Storage, Process]]:
    """An API server on which nobody works but a scheduler; the test plays the others. `wire` is the scheduler's client."""
    instance = await start(
        Options(folder=Folder(folder / "drayman"), durable=False, control_plane=None)
    )
    try:
        async with (
            HttpClient.from_environment(instance.kubeconfig) as client,
            wire.from_environment(instance.kubeconfig) as scheduling,
        ):
            process = Process(scheduling, **options)
            await process.start()
            try:
                yield Storage(client, ()), process
            finally:
                await process.stop()
    finally:
        await instance.stop()
