"""The DGX H100: eight GPUs joined by NVLink, each with a network card on its own PCIe root, four of each per NUMA node.

Interface names are the vendor's; GPU bus numbers and roots are inferred from the NICs' and may differ on a given machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from drayman.api.core import Node, NodeCondition, NodeStatus
from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.drivers.profiles import dranet, nvidia
from drayman.drivers.profiles.hardware import HardwareNode, Slot

GPUS = 8


@dataclass(frozen=True, slots=True)
class _Pair:
    """A GPU and the network card beside it, below one PCIe root."""

    root: str
    numa: int
    gpu_bus: str
    nic_bus: str
    interface: str
    rdma_device: int

    def gpu_slot(self) -> Slot:
        return Slot(f"0000:{self.gpu_bus}:00.0", self.root, self.numa)

    def ports(self, count: int) -> list[dranet.Nic]:
        return [
            dranet.Nic(
                slot=Slot(f"0000:{self.nic_bus}:00.{port}", self.root, self.numa),
                interface=self.interface if port == 0 else f"{self.interface}f{port}",
                rdma_device=f"mlx5_{self.rdma_device + port * _RDMA_NUMBERS}",
            )
            for port in range(count)
        ]


_PAIRS = (
    _Pair("pci0000:15", 0, "1b", "18", "ibp24s0", 0),
    _Pair("pci0000:37", 0, "43", "40", "ibp64s0", 3),
    _Pair("pci0000:48", 0, "52", "4f", "ibp79s0", 4),
    _Pair("pci0000:59", 0, "61", "5e", "ibp94s0", 5),
    _Pair("pci0000:97", 1, "9d", "9a", "ibp154s0", 6),
    _Pair("pci0000:b7", 1, "c3", "c0", "ibp192s0", 9),
    _Pair("pci0000:c7", 1, "d1", "ce", "ibp206s0", 10),
    _Pair("pci0000:d7", 1, "df", "dc", "ibp220s0", 11),
)
_RDMA_NUMBERS = 12
_SLOTS = tuple(pair.gpu_slot() for pair in _PAIRS)
_NODE_CAPACITY = {
    "cpu": Quantity.parse("224"),
    "memory": Quantity.parse("2Ti"),
    "pods": Quantity.parse("110"),
}


def dgx_h100(
    node_name: str, *, mig: bool = False, ports_per_nic: int = 1, compute_domain: bool = False
) -> HardwareNode:
    """A DGX H100 as its drivers describe it.

    With `mig` every GPU is offered whole and in all its partitions (dynamic MIG). With two ports per card and the compute
    domain as well, a node has 11 slices and 226 devices.
    """
    gpus = nvidia.dividable_gpus if mig else nvidia.whole_gpus
    nics = [nic for pair in _PAIRS for nic in pair.ports(ports_per_nic)]
    slices = (
        *gpus(node_name, nvidia.H100_SXM, _SLOTS),
        *dranet.interfaces(node_name, nics),
        *(nvidia.compute_domain(node_name) if compute_domain else ()),
    )
    return HardwareNode(_node(node_name), slices, (*nvidia.CLASSES, *dranet.CLASSES))


def _node(name: str) -> Node:
    return Node(
        metadata=ObjectMeta(
            name=name,
            labels={
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "nvidia.com/gpu.count": str(GPUS),
                "nvidia.com/gpu.machine": "DGXH100",
            },
        ),
        status=NodeStatus(
            capacity=_NODE_CAPACITY,
            allocatable=_NODE_CAPACITY,
            conditions=(NodeCondition(type_="Ready", status="True"),),
        ),
    )
