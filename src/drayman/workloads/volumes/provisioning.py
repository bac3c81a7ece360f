"""Volumes that are simulated: what a provisioner would have made for a claim.

Nothing is mounted in an embedded cluster, so any provisioner's volume is as good as another's. What counts is where it can be reached from.
One that was made for a pod's node is where that node is: in the same place by the keys that the class allows places by; else in the same
zone; else on that very node. One that was made without regard to pods is in one of the places that the class allows, or everywhere.
"""

from __future__ import annotations

from typing import Final

from drayman.api import codec
from drayman.api.core import Node
from drayman.api.storage import PersistentVolumeClaim, StorageClass
from drayman.api.struct import Json
from drayman.api.volume_binding import (
    FILESYSTEM,
    PROVISIONED_BY,
    STORAGE,
    reference_to,
    requested,
)
from drayman.placement.fit.node_choice import HOSTNAME

_ZONE: Final = "topology.kubernetes.io/zone"
_PATH: Final = "/var/lib/drayman/volumes"


def volume_name(claim: PersistentVolumeClaim) -> str:
    return f"pvc-{claim.metadata.uid}"


def simulated_volume(
    claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node | None
) -> dict[str, Json]:
    """The volume for a claim; with a node, for pods that run there."""
    name = volume_name(claim)
    spec: dict[str, Json] = {
        "capacity": {STORAGE: str(requested(claim))},
        "accessModes": list(claim.spec.access_modes),
        "claimRef": codec.to_dict(reference_to(claim)),
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy or "Delete",
        "storageClassName": storage_class.metadata.name,
        "volumeMode": claim.spec.volume_mode or FILESYSTEM,
        "hostPath": {"path": f"{_PATH}/{name}"},
    }
    if storage_class.mount_options:
        spec["mountOptions"] = list(storage_class.mount_options)
    terms = _terms(storage_class) if node is None else [_where(storage_class, node)]
    if terms:
        spec["nodeAffinity"] = {
            "required": {"nodeSelectorTerms": [{"matchExpressions": t} for t in terms]}
        }
    annotations = {PROVISIONED_BY: storage_class.provisioner}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec}


def _terms(storage_class: StorageClass) -> list[list[Json]]:
    return [
        [_is_in(each.key, each.values) for each in term.match_label_expressions]
        for term in storage_class.allowed_topologies
    ]


def _where(storage_class: StorageClass, node: Node) -> list[Json]:
    labels = node.metadata.labels
    keys = {e.key for t in storage_class.allowed_topologies for e in t.match_label_expressions}
    known = sorted(key for key in keys if key in labels)
    if not known:
        known = [_ZONE if _ZONE in labels else HOSTNAME]
    return [_is_in(key, (labels.get(key, node.metadata.name),)) for key in known]


def _is_in(key: str, values: tuple[str, ...]) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}
