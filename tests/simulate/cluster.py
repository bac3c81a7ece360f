"""Small clusters to plan on, and workloads for them."""

from __future__ import annotations

from typing import Any

from drayman.api.codec import convert, to_dict
from drayman.api.core import Namespace, Node, Pod
from drayman.api.jobs import Job
from drayman.api.resource import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from drayman.api.workloads import (
    DaemonSet,
    Deployment,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from drayman.placement.world import Objects, World
from drayman.simulate.copying import Wanted
from drayman.simulate.expanding import Owner, Workload
from drayman.simulate.plan_report import PlannedPod

DRIVER = "gpu.example.com"
NOW = 1_900_000_000.0
TYPES: dict[str, type[Owner]] = {
    "Job": Job,
    "Deployment": Deployment,
    "ReplicaSet": ReplicaSet,
    "ReplicationController": ReplicationController,
    "StatefulSet": StatefulSet,
    "DaemonSet": DaemonSet,
}


def node(name: str, **fields: Any) -> Node:
    """A node with room for many pods; `spec`, `labels` and `cpu` are its fields."""
    labels = {"kubernetes.io/hostname": name, **fields.get("labels", {})}
    allocatable = {"cpu": fields.get("cpu", "32"), "memory": "64Gi", "pods": "110"}
    return convert(
        Node,
        {
            "metadata": {"name": name, "labels": labels},
            "spec": fields.get("spec", {}),
            "status": {"allocatable": allocatable},
        },
    )


def piece(pool: str, devices: int, **scope: Any) -> ResourceSlice:
    """A pool of devices, of the node of the same name unless the scope says otherwise."""
    made = [{"name": f"gpu-{number}"} for number in range(devices)]
    declared = {"name": pool, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": declared, "devices": made, **(scope or {"nodeName": pool})}
    return convert(ResourceSlice, {"metadata": {"name": f"slice-{pool}"}, "spec": spec})


def cluster(devices: dict[str, int], **objects: Any) -> World:
    """Nodes by name with so many devices each, a class `gpu`, and templates `one`, `two`, ... that ask for that number of them."""
    names = ("one", "two", "three", "four")
    templates = tuple(template(name, count) for count, name in enumerate(names, 1))
    given = Objects(
        nodes=tuple(node(name) for name in devices),
        slices=tuple(piece(name, count) for name, count in devices.items() if count),
        classes=(convert(DeviceClass, {"metadata": {"name": "gpu"}, "spec": {}}),),
        templates=templates,
        namespaces=(convert(Namespace, {"metadata": {"name": "default", "uid": "default"}}),),
    )
    return World(given.joined(Objects(**objects)), NOW)


def asks(count: int) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def template(name: str, count: int) -> ResourceClaimTemplate:
    metadata = {"name": name, "namespace": "default", "uid": name}
    return convert(ResourceClaimTemplate, {"metadata": metadata, "spec": {"spec": asks(count)}})


def claim(name: str, count: int = 1, **fields: Any) -> ResourceClaim:
    metadata = {"name": name, "namespace": "default", "uid": name}
    return convert(ResourceClaim, {"metadata": metadata, "spec": asks(count), **fields})


def held(name: str, pool: str, *devices: str) -> ResourceClaim:
    """A claim that has devices of a node."""
    results = [
        {"request": "gpu", "driver": DRIVER, "pool": pool, "device": device} for device in devices
    ]
    return claim(name, len(devices), status={"allocation": {"devices": {"results": results}}})


def pod(name: str, template: str = "", **fields: Any) -> Pod:
    """A pod with a claim from a template. `claim` is one by name, `metadata` and `status` are added, the rest is its spec."""
    metadata = {"name": name, "namespace": "default", "uid": name, **fields.pop("metadata", {})}
    status, named = fields.pop("status", {}), fields.pop("claim", "")
    entries = [{"name": "gpu", "resourceClaimTemplateName": template}] if template else []
    entries += [{"name": named, "resourceClaimName": named}] if named else []
    requests = {"cpu": fields.pop("cpu", "1")}
    container = {"name": "main", "resources": {"requests": requests}}
    spec = {"containers": [container], "resourceClaims": entries, **fields}
    return convert(Pod, {"metadata": metadata, "spec": spec, "status": status})


def alone(name: str, template: str = "", **fields: Any) -> Workload:
    return Workload(pod(name, template, **fields))


def workload(
    kind: str, name: str, template: str = "", pods: dict[str, Any] | None = None, **spec: Any
) -> Workload:
    """A workload with pods from a template, whose fields are those of `pod`."""
    metadata = {"name": name, "namespace": "default", "uid": name}
    made = pod(f"{name}-x", template, **(pods or {}))
    given = {"metadata": {"labels": made.metadata.labels}, "spec": to_dict(made.spec)}
    owner = convert(TYPES[kind], {"metadata": metadata, "spec": {"template": given, **spec}})
    return Workload(made, owner)


def wanted(*workloads: Workload, **objects: Any) -> Wanted:
    return Wanted(workloads, Objects(**objects))


def place(planned: PlannedPod) -> str:
    """`node: devices`, or the reason why not."""
    if planned.waits is not None:
        return planned.waits.reason.value
    devices = ",".join(device.device for device in planned.devices)
    return f"{planned.node}: {devices}" if devices else planned.node
