"""Clusters of nodes in racks, and pods that ask for devices there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from drayman.inventory.features import Features
from drayman.placement.demand import Demand, Demands
from drayman.placement.state import ClusterState
from oracle.build import device, device_class, exactly, piece

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
RACK = "topology.kubernetes.io/rack"


def make_state() -> ClusterState:
    state = ClusterState(Features(), lambda _: None)
    state.set_class(convert(DeviceClass, device_class("gpu")))
    return state


def add_node(
    state: ClusterState,
    name: str,
    labels: Mapping[str, str],
    devices: int = 8,
    *,
    cpu: int = 64,
    attrs: Mapping[str, Any] | None = None,
    **spec: Any,
) -> None:
    """A node with devices of its own."""
    allocatable = {"cpu": str(cpu), "memory": "512Gi", "pods": "110"}
    value = {
        "metadata": {"name": name, "labels": {HOST: name, **labels}},
        "spec": spec,
        "status": {"allocatable": allocatable},
    }
    state.set_node(convert(Node, value))
    if devices:
        made = [device(f"d{number}", attrs=dict(attrs or {})) for number in range(devices)]
        slice_ = piece(made, pool=name, name=name, nodeName=name)
        state.set_slice(convert(ResourceSlice, slice_))


def racked(nodes: int, racks: int, zones: int = 1, **fields: Any) -> ClusterState:
    """So many nodes in so many racks and zones."""
    state = make_state()
    for number in range(nodes):
        rack = number % racks
        labels = {ZONE: f"z{rack % zones}", RACK: f"r{rack:02}"}
        add_node(state, f"node-{number:03}", labels, **fields)
    return state


def make_pod(name: str, cpu: str = "1", **spec: Any) -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {"app": "x"}}
    return convert(Pod, {"metadata": metadata, "spec": {"containers": [container], **spec}})


def make_claim(name: str, *requests: dict[str, Any]) -> ResourceClaim:
    metadata = {"name": name, "namespace": "default", "uid": name}
    spec = {"devices": {"requests": list(requests)}}
    return convert(ResourceClaim, {"metadata": metadata, "spec": spec})


def demand_for(
    state: ClusterState, devices: int = 1, *, name: str = "p", cpu: str = "1", **spec: Any
) -> Demand:
    """What a pod asks for that wants so many devices."""
    claims = (make_claim(f"{name}-claim", exactly(count=devices)),) if devices else ()
    return Demands(state, 600.0).of(make_pod(name, cpu, **spec), claims, 0.0)
