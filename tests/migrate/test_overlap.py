"""Devices that a node offers twice are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from drayman.api.core import Node, NodeStatus
from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.resource import Device, ResourcePool, ResourceSlice, ResourceSliceSpec
from drayman.migrate.overlap import overlaps


def node(name: str, **resources: str) -> Node:
    """A node with resources of device plugins, named as nvidia_gpu for nvidia.com/gpu."""
    allocatable = {
        key.replace("_", ".com/"): Quantity.parse(amount) for key, amount in resources.items()
    }
    return Node(metadata=ObjectMeta(name=name), status=NodeStatus(allocatable=allocatable))


def slice_of(driver: str, node_name: str | None, *devices: Device) -> ResourceSlice:
    """A slice of two devices, or of some."""
    return ResourceSlice(
        metadata=ObjectMeta(name=f"{driver}-{node_name}"),
        spec=ResourceSliceSpec(
            driver=driver,
            pool=ResourcePool(name="p", generation=1, resource_slice_count=1),
            node_name=node_name,
            devices=devices or (Device(name="d0"), Device(name="d1")),
        ),
    )


@dataclass(frozen=True, slots=True)
class Found:
    """Nodes and slices, and what is offered twice: node, resource, count, driver, devices."""

    name: str
    nodes: Sequence[Node]
    slices: Sequence[ResourceSlice]
    wants: Sequence[tuple[str, str, int, str, int]] = ()


NVIDIA = "gpu.nvidia.com"
CASES = [
    Found(
        "plugin and driver on one of two nodes",
        [node("b", nvidia_gpu="8"), node("a", nvidia_gpu="8")],
        [slice_of(NVIDIA, "b")],
        [("b", "nvidia.com/gpu", 8, NVIDIA, 2)],
    ),
    Found("the plugin offers nothing", [node("a", nvidia_gpu="0")], [slice_of(NVIDIA, "a")]),
    Found("different vendors", [node("a", amd_gpu="8")], [slice_of(NVIDIA, "a")]),
    Found("no plugin's resources", [node("a", other="8")], [slice_of(NVIDIA, "a")]),
    Found("devices of no node", [node("a", nvidia_gpu="8")], [slice_of(NVIDIA, None)]),
    Found(
        "devices with nodes of their own",
        [node("a", amd_gpu="1")],
        [slice_of("gpu.amd.com", None, Device(name="d", node_name="a"), Device(name="e"))],
        [("a", "amd.com/gpu", 1, "gpu.amd.com", 1)],
    ),
    Found("nothing at all", [], []),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_overlaps(case: Found) -> None:
    """A node is named with what its plugin offers and its driver publishes."""
    found = list(overlaps(case.nodes, case.slices))
    assert [
        (each.node, each.resource, each.count, each.driver, each.devices) for each in found
    ] == list(case.wants)
    assert all(each.advice for each in found)
