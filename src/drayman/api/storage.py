"""The parts of storage that scheduling and the binding of volumes read: what a claim asks for, what a volume is and which claim has it."""

from __future__ import annotations

from msgspec import field

from drayman.api.core import NodeSelector
from drayman.api.meta import LabelSelector, ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.struct import ApiStruct, always


class VolumeResources(ApiStruct):
    requests: dict[str, Quantity] = field(default_factory=dict)


class PersistentVolumeClaimSpec(ApiStruct):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: VolumeResources = VolumeResources()
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str = ""


class PersistentVolumeClaimStatus(ApiStruct):
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: dict[str, Quantity] = field(default_factory=dict)


class PersistentVolumeClaim(ApiStruct):
    api_version: str = always("v1")
    kind: str = always("PersistentVolumeClaim")
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class VolumeNodeAffinity(ApiStruct):
    required: NodeSelector | None = None


class VolumeClaimReference(ApiStruct):
    """The claim that has a volume. Without a uid, a person has set the volume aside for a claim of that name."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class PersistentVolumeSpec(ApiStruct):
    access_modes: tuple[str, ...] = ()
    capacity: dict[str, Quantity] = field(default_factory=dict)
    claim_ref: VolumeClaimReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    persistent_volume_reclaim_policy: str = ""
    storage_class_name: str = ""
    volume_mode: str | None = None


class PersistentVolumeStatus(ApiStruct):
    phase: str = ""
    message: str = ""
    reason: str = ""


class PersistentVolume(ApiStruct):
    api_version: str = always("v1")
    kind: str = always("PersistentVolume")
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologySelectorRequirement(ApiStruct):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(ApiStruct):
    match_label_expressions: tuple[TopologySelectorRequirement, ...] = ()


class StorageClass(ApiStruct):
    api_version: str = always("storage.k8s.io/v1")
    kind: str = always("StorageClass")
    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None
    mount_options: tuple[str, ...] = ()
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()


class CSIDriverSpec(ApiStruct):
    storage_capacity: bool | None = None


class CSIDriver(ApiStruct):
    api_version: str = always("storage.k8s.io/v1")
    kind: str = always("CSIDriver")
    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(ApiStruct):
    """How much a driver can still provision where some nodes are."""

    api_version: str = always("storage.k8s.io/v1")
    kind: str = always("CSIStorageCapacity")
    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
