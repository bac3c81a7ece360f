"""The machine around the devices: its Node object, and where it stands.

Labels are those that people and schedulers select by: the standard ones, rack and block, and what a vendor's feature discovery adds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from drayman.api.core import Node, NodeCondition, NodeStatus
from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity

REGION: Final = "sim"
ZONE: Final = "sim-a"
NODES_PER_RACK: Final = 4
"""Machines with eight GPUs draw about 10 kW; four fill a rack."""
RACKS_PER_BLOCK: Final = 8
PODS: Final = "110"
EPHEMERAL_STORAGE: Final = "1Ti"


@dataclass(frozen=True, slots=True)
class Machine:
    """What is the same for every node of one kind of hardware, except the devices."""

    instance_type: str
    cpus: int
    memory: str
    numa_nodes: int = 2
    sockets: int = 2
    architecture: str = "amd64"
    threads_per_core: int = 2
    labels: Mapping[str, str] = field(default_factory=dict)
    huge_pages: str = "0"
    """Memory set aside in pages of 2 MiB, as needed by programs that drive devices without the kernel."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One node of a simulated cluster: its name, and its rack and block."""

    name: str
    rack: str
    block: str
    index: int = 0
    """Of the node within what a profile makes at once: its tray in a rack."""

    @classmethod
    def numbered(cls, profile: str, number: int) -> Spot:
        """The place of a machine that stands by itself, four to a rack."""
        rack = number // NODES_PER_RACK
        return cls(
            f"{profile}-{number}",
            f"{profile}-rack-{rack}",
            f"{profile}-block-{rack // RACKS_PER_BLOCK}",
        )

    def labels(self) -> dict[str, str]:
        return {
            "topology.kubernetes.io/region": REGION,
            "topology.kubernetes.io/zone": ZONE,
            "topology.kubernetes.io/rack": self.rack,
            "network.topology.nvidia.com/block": self.block,
        }


def node(spot: Spot, machine: Machine, labels: Mapping[str, str] = MappingProxyType({})) -> Node:
    """The Node object, ready for work. `labels` are in addition to those of the machine."""
    capacity = {
        "cpu": Quantity.parse(str(machine.cpus)),
        "memory": Quantity.parse(machine.memory),
        "ephemeral-storage": Quantity.parse(EPHEMERAL_STORAGE),
        "pods": Quantity.parse(PODS),
        "hugepages-2Mi": Quantity.parse(machine.huge_pages),
    }
    return Node(
        metadata=ObjectMeta(
            name=spot.name,
            labels={
                "kubernetes.io/hostname": spot.name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": machine.architecture,
                "node.kubernetes.io/instance-type": machine.instance_type,
                **spot.labels(),
                **machine.labels,
                **labels,
            },
        ),
        status=NodeStatus(
            capacity=capacity,
            allocatable=capacity,
            conditions=(NodeCondition(type_="Ready", status="True"),),
        ),
    )
