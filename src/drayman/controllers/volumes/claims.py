"""Brings volume claims and volumes together.

A claim and its volume name each other, and both say so in their status. That is written in one transaction, with the volume itself where it
is made for the claim, so that there is never half a binding to clean up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from drayman.api import codec
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from drayman.api.struct import Json
from drayman.api.volume_binding import (
    BETA_STORAGE_PROVISIONER,
    BOUND,
    LOST,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    bound_to,
    class_name_of,
    default_class,
    is_bound,
    names_no_class,
    reserved_for,
)
from drayman.cluster.errors import NotFoundError
from drayman.cluster.informer import Notice
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import NODES, PERSISTENT_VOLUMES, STORAGE_CLASSES, VOLUME_CLAIMS
from drayman.cluster.writes import CreateWrite, PartsWrite, Path, Write
from drayman.controllers.workloads.reconciling import Key, Reconciler
from drayman.placement.volumes import Volumes
from drayman.workloads.volumes.deciding import Bind, Lose, Provision, Wait, next_step
from drayman.workloads.volumes.provisioning import simulated_volume, volume_name

_ANNOTATIONS: Final = ("metadata", "annotations")
_VOLUME_VALUES: Final = PERSISTENT_VOLUMES.as_values()


class VolumeClaimController(Reconciler[PersistentVolumeClaim]):
    """Gives claims their volumes."""

    resource = VOLUME_CLAIMS
    component = "persistentvolume-controller"
    workers = 1  # one claim after the other, so that none is promised what another has just got

    def follow_others(self) -> None:
        self._volumes = Volumes()
        self._open: dict[Key, None] = {}  # claims without a volume
        self._nodes = self.informers.informer(NODES).cache
        self._classes = self.follow(STORAGE_CLASSES, self._class_changed)
        self.follow(PERSISTENT_VOLUMES, self._volume_changed)

    async def reconcile(self, key: Key) -> None:
        claim = self.find(key)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return
        if not claim.spec.volume_name and await self._take_default_class(claim):
            return
        match next_step(claim, self._volumes):
            case Bind(volume=volume):
                await self._bind(claim, volume)
            case Provision(storage_class=storage_class):
                await self._provision(claim, storage_class)
            case Wait(reason=reason, note=note, type=type_):
                self.record(claim, type_, reason, note)
            case Lose(reason=reason, note=note):
                await self._lose(claim, reason, note)

    def object_changed(self, notice: Notice[PersistentVolumeClaim]) -> None:
        claim = notice.object
        key = (claim.metadata.namespace, claim.metadata.name)
        if notice.type == "DELETED" or is_bound(claim):
            self._open.pop(key, None)
        else:
            self._open[key] = None

    def _class_changed(self, notice: Notice[StorageClass]) -> None:
        if notice.type == "DELETED":
            self._volumes.remove_class(notice.object)
            return
        self._volumes.set_class(notice.object)
        for key in self._open:
            self.queue.add(key)

    def _volume_changed(self, notice: Notice[PersistentVolume]) -> None:
        volume = notice.object
        if notice.type == "DELETED":
            self._volumes.remove_volume(volume)
        else:
            self._volumes.set_volume(volume)
        ref = volume.spec.claim_ref
        if ref is not None:
            self.queue.add((ref.namespace, ref.name))
            return
        for key in self._open:
            claim = self.find(key)
            if claim is not None and class_name_of(claim) == class_name_of(volume):
                self.queue.add(key)

    async def _take_default_class(self, claim: PersistentVolumeClaim) -> bool:
        """A claim that was made before there was a default class gets it when there is one."""
        if not names_no_class(claim):
            return False
        chosen = default_class(self._classes)
        if chosen is None:
            return False
        metadata = claim.metadata
        change = {
            "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
            "spec": {"storageClassName": chosen.metadata.name},
        }
        self.wrote(
            await self.client.patch(
                VOLUME_CLAIMS, metadata.name, merge_patch(change), metadata.namespace
            )
        )
        return True

    async def _bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        wanted = reserved_for(volume, claim)
        parts: dict[Path, Json] = {}
        if wanted is not volume and wanted.spec.claim_ref is not None:
            parts["spec", "claimRef"] = codec.to_dict(wanted.spec.claim_ref)
            parts[_ANNOTATIONS] = dict(wanted.metadata.annotations)
        if volume.status.phase != BOUND:
            parts["status", "phase"] = BOUND
        writes: list[Write] = []
        if parts:
            writes.append(PartsWrite.of(PERSISTENT_VOLUMES, volume, parts))
        writes += _claim_writes(claim, volume, {})
        await self._write(writes)

    async def _provision(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> None:
        selected = claim.metadata.annotations.get(SELECTED_NODE)
        node = None if selected is None else self._nodes.get(selected)
        if selected is not None and node is None:
            await self._turn_down(claim, selected)
            return
        body = simulated_volume(claim, storage_class, node)
        provisioner = storage_class.provisioner
        notes = {STORAGE_PROVISIONER: provisioner, BETA_STORAGE_PROVISIONER: provisioner}
        volume = codec.convert(PersistentVolume, body)
        writes: list[Write] = [
            CreateWrite(_VOLUME_VALUES, body),
            PartsWrite(PERSISTENT_VOLUMES, volume_name(claim), None, {("status", "phase"): BOUND}),
            *_claim_writes(claim, volume, notes),
        ]
        await self._write(writes)
        note = f"Successfully provisioned volume {volume_name(claim)}"
        self.record(claim, "Normal", "ProvisioningSucceeded", note)

    async def _turn_down(self, claim: PersistentVolumeClaim, node: str) -> None:
        """The node is gone. Without its name on the claim the scheduler chooses another."""
        left = {k: v for k, v in claim.metadata.annotations.items() if k != SELECTED_NODE}
        await self._write([PartsWrite.of(VOLUME_CLAIMS, claim, {_ANNOTATIONS: left or None})])
        note = f"failed to get target node: node {node} not found"
        self.record(claim, "Warning", "ProvisioningFailed", note)

    async def _lose(self, claim: PersistentVolumeClaim, reason: str, note: str) -> None:
        if claim.status.phase == LOST:
            return
        if reason == "ClaimLost":
            # What the cache does not have may have been made a moment ago.
            try:
                found = await self.client.get(PERSISTENT_VOLUMES, claim.spec.volume_name)
            except NotFoundError:
                pass
            else:
                self._volumes.set_volume(found)
                self.queue.retry((claim.metadata.namespace, claim.metadata.name))
                return
        await self._write([PartsWrite.of(VOLUME_CLAIMS, claim, {("status", "phase"): LOST})])
        self.record(claim, "Warning", reason, note)

    async def _write(self, writes: Sequence[Write]) -> None:
        if not writes:
            return
        for written in await self.client.write_many(writes):
            if isinstance(written, PersistentVolumeClaim):
                self.wrote(written)
            elif isinstance(written, PersistentVolume):
                self._volumes.set_volume(written)


def _claim_writes(
    claim: PersistentVolumeClaim, volume: PersistentVolume, notes: dict[str, str]
) -> list[Write]:
    """Makes a claim say that it has the volume; nothing if it already does."""
    wanted = bound_to(claim, volume)
    annotations = {**wanted.metadata.annotations, **notes}
    parts: dict[Path, Json] = {}
    if wanted.spec.volume_name != claim.spec.volume_name:
        parts["spec", "volumeName"] = wanted.spec.volume_name
    if annotations != claim.metadata.annotations:
        parts[_ANNOTATIONS] = annotations
    status = replace(
        claim.status,
        phase=BOUND,
        access_modes=volume.spec.access_modes,
        capacity=volume.spec.capacity,
    )
    if status != claim.status:
        for name, value in codec.to_dict(status).items():
            parts["status", name] = value
    return [PartsWrite.of(VOLUME_CLAIMS, claim, parts)] if parts else []
