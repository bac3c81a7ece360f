"""The parts of storage that scheduling reads: which volume a claim has, and which nodes can reach that volume."""

from __future__ import annotations

from drayman.api.core import NodeSelector
from drayman.api.meta import ObjectMeta
from drayman.api.struct import ApiStruct, always


class PersistentVolumeClaimSpec(ApiStruct):
    access_modes: tuple[str, ...] = ()
    storage_class_name: str | None = None
    volume_name: str = ""


class PersistentVolumeClaimStatus(ApiStruct):
    phase: str = ""


class PersistentVolumeClaim(ApiStruct):
    api_version: str = always("v1")
    kind: str = always("PersistentVolumeClaim")
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class VolumeNodeAffinity(ApiStruct):
    required: NodeSelector | None = None


class PersistentVolumeSpec(ApiStruct):
    node_affinity: VolumeNodeAffinity | None = None
    storage_class_name: str = ""


class PersistentVolume(ApiStruct):
    api_version: str = always("v1")
    kind: str = always("PersistentVolume")
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()


class StorageClass(ApiStruct):
    api_version: str = always("storage.k8s.io/v1")
    kind: str = always("StorageClass")
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
