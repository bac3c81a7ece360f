"""The objects of a trace: nodes with slices of shareable GPUs, and a pod with a claim for each task.

Parts of a GPU are consumable capacity of a device that allows several allocations; the models that a task accepts are a selector.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from drayman.api.codec import convert, encode_json
from drayman.api.core import Node, Pod
from drayman.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from drayman.inventory.features import Features
from drayman.placement.hints import Change
from drayman.placement.prices import PRICE, PriceTable
from drayman.placement.state import ClusterState
from drayman.simulate.trace.tables import WHOLE, TaskKind, TraceNode

DRIVER: Final = "gpu.trace.drayman.dev"
SHARE: Final = "share"
"""The capacity of which tasks get parts."""
INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
NUMA: Final = "resource.kubernetes.io/numaNode"
_CLASS: Final = "gpu"
_NAMESPACE: Final = "default"
_MOST_PODS: Final = 100_000
_MOST_KINDS: Final = 4_096


def cluster_of(nodes: tuple[TraceNode, ...], prices: PriceTable) -> ClusterState:
    """The nodes of a trace, with nothing on them."""
    state = ClusterState(Features(), _wake_nothing, prices)
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    state.set_class(
        convert(DeviceClass, {"metadata": {"name": _CLASS}, "spec": {"selectors": [selector]}})
    )
    for node in nodes:
        state.set_node(_node(node))
        if node.gpus:
            state.set_slice(_slice(node))
    return state


def _wake_nothing(_: Change) -> None:
    """Nothing is queued by the state of a replay."""


def _node(node: TraceNode) -> Node:
    labels = {"kubernetes.io/hostname": node.name, INSTANCE_TYPE: node.model}
    if node.price:
        labels[PRICE] = node.price
    allocatable = {
        "cpu": f"{node.cpu_milli}m",
        "memory": f"{node.memory_mib}Mi",
        "pods": str(_MOST_PODS),
    }
    metadata = {"name": node.name, "labels": labels}
    return convert(Node, {"metadata": metadata, "status": {"allocatable": allocatable}})


def _slice(node: TraceNode) -> ResourceSlice:
    devices: list[dict[str, Any]] = []
    for number in range(node.gpus):
        attributes: dict[str, Any] = {"model": {"string": node.model}, "type": {"string": "gpu"}}
        if node.numa:
            attributes[NUMA] = {"int": number * node.numa // node.gpus}
        devices.append(
            {
                "name": f"gpu-{number}",
                "attributes": attributes,
                "capacity": {SHARE: {"value": str(WHOLE)}},
                "allowMultipleAllocations": True,
            }
        )
    spec = {
        "driver": DRIVER,
        "nodeName": node.name,
        "pool": {"name": node.name, "generation": 1, "resourceSliceCount": 1},
        "devices": devices,
    }
    return convert(ResourceSlice, {"metadata": {"name": node.name}, "spec": spec})


def pod_of(name: str, kind: TaskKind) -> Pod:
    """The pod of a task. Its claim, if it has one, has the same name."""
    shared = _pod_spec(kind)
    entry = [{"name": _CLASS, "resourceClaimName": name}] if kind.gpus else []
    metadata = {"name": name, "namespace": _NAMESPACE, "uid": name}
    return convert(Pod, {"metadata": metadata, "spec": {**shared, "resourceClaims": entry}})


def claim_of(name: str, kind: TaskKind) -> ResourceClaim:
    """The claim of a task with GPUs."""
    metadata = {
        "name": name,
        "namespace": _NAMESPACE,
        "uid": f"claim-{name}",
        "resourceVersion": "1",
    }
    return convert(ResourceClaim, {"metadata": metadata, "spec": _claim_spec(kind)})


@lru_cache(_MOST_KINDS)
def _pod_spec(kind: TaskKind) -> Mapping[str, Any]:
    requests = {"cpu": f"{kind.cpu_milli}m", "memory": f"{kind.memory_mib}Mi"}
    return {"containers": [{"name": "task", "resources": {"requests": requests}}]}


@lru_cache(_MOST_KINDS)
def _claim_spec(kind: TaskKind) -> Mapping[str, Any]:
    exactly: dict[str, Any] = {
        "deviceClassName": _CLASS,
        "allocationMode": "ExactCount",
        "count": kind.gpus,
        "capacity": {"requests": {SHARE: str(kind.gpu_milli)}},
    }
    if kind.models:
        accepted = encode_json(list(kind.models)).decode()
        expression = f'device.attributes["{DRIVER}"].model in {accepted}'
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    return {"devices": {"requests": [{"name": _CLASS, "exactly": exactly}]}}
