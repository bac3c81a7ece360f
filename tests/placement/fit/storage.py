"""Volumes, claims and classes from the few words that a case is about."""

from __future__ import annotations

from typing import Any

from drayman.api.codec import convert
from drayman.api.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def at(*hosts: str, key: str = HOST) -> dict[str, Any]:
    """The node affinity of a volume that only some nodes reach."""
    expression = {"key": key, "operator": "In", "values": list(hosts)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def volume(name: str = "v", size: str = "10Gi", **fields: Any) -> PersistentVolume:
    """A volume that nobody has; `host` is the only node that reaches it, `phase` and `labels` are its own, others those of its spec."""
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
    }
    phase, labels = fields.pop("phase", "Available"), fields.pop("labels", {})
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if fields.pop("deleted", False) else {}
    version = fields.pop("version", "1")
    if host := fields.pop("host", ""):
        spec["nodeAffinity"] = at(host)
    metadata = {"name": name, "uid": f"uid-{name}", "labels": labels, "resourceVersion": version}
    return convert(
        PersistentVolume,
        {"metadata": metadata | deleted, "spec": spec | fields, "status": {"phase": phase}},
    )


def claim(name: str = "data", size: str = "10Gi", **fields: Any) -> PersistentVolumeClaim:
    """A claim without a volume; `annotations` and `namespace` are its own, other fields those of its spec."""
    spec = {
        "resources": {"requests": {"storage": size}},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
    }
    namespace = fields.pop("namespace", "default")
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{namespace}-{name}",
        "annotations": fields.pop("annotations", {}),
        "resourceVersion": fields.pop("version", "1"),
    }
    return convert(PersistentVolumeClaim, {"metadata": metadata, "spec": spec | fields})


def meant_for(name: str, uid: str = "", namespace: str = "default") -> dict[str, Any]:
    """A reference to a claim."""
    return {"namespace": namespace, "name": name, "uid": uid}


def storage_class(
    name: str = "local",
    provisioner: str = "kubernetes.io/no-provisioner",
    mode: str = "WaitForFirstConsumer",
    **fields: Any,
) -> StorageClass:
    return convert(
        StorageClass,
        {
            "metadata": {"name": name, **fields.pop("metadata", {})},
            "provisioner": provisioner,
            "volumeBindingMode": mode,
            **fields,
        },
    )


def driver(name: str, *, tells_capacity: bool = True) -> CSIDriver:
    return convert(
        CSIDriver, {"metadata": {"name": name}, "spec": {"storageCapacity": tells_capacity}}
    )


def capacity(name: str, zone: str, **amounts: str) -> CSIStorageCapacity:
    """What class `fast` has left in a zone."""
    topology = {"matchLabels": {ZONE: zone}}
    metadata = {"name": name, "namespace": "kube-system"}
    body = {"metadata": metadata, "storageClassName": "fast", "nodeTopology": topology, **amounts}
    return convert(CSIStorageCapacity, body)
