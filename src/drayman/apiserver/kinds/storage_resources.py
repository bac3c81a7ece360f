"""The group storage.k8s.io, which storage drivers read and write."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from drayman.api.struct import Json
from drayman.api.volume_binding import DEFAULT_CLASS
from drayman.apiserver.kinds import storage
from drayman.apiserver.kinds.reading import at, items_at, map_at, text_at
from drayman.apiserver.kinds.tables import AGE, NAME, NONE, UNSET, column, flag, text
from drayman.apiserver.served.acting import Part, by, nothing_acts
from drayman.apiserver.served.resources import ApiResource, Subresource
from drayman.apiserver.served.strategy import Object

STORAGE: Final = "storage.k8s.io"


def _audiences(obj: Object, _now: datetime) -> str:
    requests: Json = at(obj, "spec", "tokenRequests")
    if requests is None:
        return UNSET
    return ",".join(text_at(request, "audience") for request in requests)


def _class_name(obj: Object, _now: datetime) -> str:
    name, annotations = text_at(obj, "metadata", "name"), map_at(obj, "metadata", "annotations")
    return f"{name} (default)" if annotations.get(DEFAULT_CLASS) == "true" else name


_STORAGE: Final = nothing_acts("no storage driver runs here, and nothing reads it")

RESOURCES: Final = (
    ApiResource(
        group=STORAGE,
        kind="CSIDriver",
        acting=by(
            Part.SCHEDULER,
            effect="says whether the storage that is left counts when a node is chosen",
        ),
        namespaced=False,
        strategy=storage.CSI_DRIVER,
        answers_with_deleted_object=True,
        requires_version_on_update=True,
        columns=(
            NAME,
            column("AttachRequired", flag("spec", "attachRequired"), "boolean"),
            column("PodInfoOnMount", flag("spec", "podInfoOnMount"), "boolean"),
            column("StorageCapacity", flag("spec", "storageCapacity"), "boolean"),
            column("TokenRequests", _audiences),
            column("RequiresRepublish", flag("spec", "requiresRepublish"), "boolean"),
            column(
                "Modes",
                lambda obj, _now: ",".join(items_at(obj, "spec", "volumeLifecycleModes")) or NONE,
            ),
            AGE,
        ),
    ),
    ApiResource(
        group=STORAGE,
        kind="CSINode",
        acting=_STORAGE,
        namespaced=False,
        strategy=storage.CSI_NODE,
        answers_with_deleted_object=True,
        requires_version_on_update=True,
        columns=(
            NAME,
            column("Drivers", lambda obj, _now: len(items_at(obj, "spec", "drivers")), "integer"),
            AGE,
        ),
    ),
    ApiResource(
        group=STORAGE,
        kind="CSIStorageCapacity",
        acting=by(Part.SCHEDULER, effect="nodes are chosen by the storage that is left"),
        strategy=storage.CSI_STORAGE_CAPACITY,
        answers_with_deleted_object=True,
        requires_version_on_update=True,
        columns=(
            NAME,
            column("StorageClassName", text("storageClassName")),
            column("Capacity", text("capacity", missing=UNSET)),
        ),
    ),
    ApiResource(
        group=STORAGE,
        kind="StorageClass",
        acting=by(
            Part.SERVER,
            Part.SCHEDULER,
            Part.CONTROLLERS,
            effect="claims get it by default, nodes are chosen by its topologies, and volumes are simulated by it",
        ),
        namespaced=False,
        short_names=("sc",),
        strategy=storage.STORAGE_CLASS,
        answers_with_deleted_object=True,
        columns=(
            replace(NAME, cell=_class_name),
            column("Provisioner", text("provisioner")),
            column("ReclaimPolicy", text("reclaimPolicy")),
            column("VolumeBindingMode", text("volumeBindingMode")),
            column("AllowVolumeExpansion", flag("allowVolumeExpansion")),
            AGE,
        ),
    ),
    ApiResource(
        group=STORAGE,
        kind="VolumeAttachment",
        acting=_STORAGE,
        namespaced=False,
        strategy=storage.VOLUME_ATTACHMENT,
        answers_with_deleted_object=True,
        requires_version_on_update=True,
        columns=(
            NAME,
            column("Attacher", text("spec", "attacher")),
            column("PV", text("spec", "source", "persistentVolumeName")),
            column("Node", text("spec", "nodeName")),
            column("Attached", flag("status", "attached"), "boolean"),
            AGE,
        ),
        subresources=(Subresource(name="status", strategy=storage.VOLUME_ATTACHMENT_STATUS),),
    ),
    ApiResource(
        group=STORAGE,
        kind="VolumeAttributesClass",
        acting=_STORAGE,
        namespaced=False,
        short_names=("vac",),
        strategy=storage.VOLUME_ATTRIBUTES_CLASS,
        answers_with_deleted_object=True,
        columns=(NAME, column("DriverName", text("driverName")), AGE),
    ),
)
