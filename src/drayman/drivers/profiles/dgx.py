"""DGX machines: eight GPUs joined by NVLink, with a network card beside each.

Interface names of the DGX H100 are the vendor's; GPU bus numbers and roots are inferred from the NICs' and may differ on a given machine.
The H200 has the same board; the B200's is assumed to be like it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drayman.drivers.classes import classes_of
from drayman.drivers.describing import Slot
from drayman.drivers.dranet.devices import DRIVER as DRANET
from drayman.drivers.nvidia.devices import GpuModel
from drayman.drivers.profiles import dranet, machines, nvidia
from drayman.drivers.profiles.hardware import HardwareNode
from drayman.drivers.profiles.machines import Machine, Spot
from drayman.drivers.profiles.nvidia_boards import Board, profile
from drayman.drivers.profiles.nvidia_products import (
    A100_40GB,
    B200_SXM,
    H100_SXM,
    H200_SXM,
)


@dataclass(frozen=True, slots=True)
class _Pair:
    """A GPU and the network card beside it, below one PCIe root."""

    root: str
    numa: int
    gpu_bus: str
    nic_bus: str
    rdma_device: int

    def gpu_slot(self) -> Slot:
        return Slot(f"0000:{self.gpu_bus}:00.0", self.root, self.numa)

    def ports(self, count: int, card: dranet.Card = dranet.CONNECTX7_IB) -> list[dranet.Nic]:
        # The kernel names interfaces by the decimal of the bus number.
        interface = f"ibp{int(self.nic_bus, 16)}s0"
        return [
            dranet.Nic(
                slot=Slot(f"0000:{self.nic_bus}:00.{port}", self.root, self.numa),
                interface=interface if port == 0 else f"{interface}f{port}",
                rdma_device=f"mlx5_{self.rdma_device + port * _RDMA_NUMBERS}",
                card=card,
            )
            for port in range(count)
        ]


_HOPPER: Final = (
    _Pair("pci0000:15", 0, "1b", "18", 0),
    _Pair("pci0000:37", 0, "43", "40", 3),
    _Pair("pci0000:48", 0, "52", "4f", 4),
    _Pair("pci0000:59", 0, "61", "5e", 5),
    _Pair("pci0000:97", 1, "9d", "9a", 6),
    _Pair("pci0000:b7", 1, "c3", "c0", 9),
    _Pair("pci0000:c7", 1, "d1", "ce", 10),
    _Pair("pci0000:d7", 1, "df", "dc", 11),
)
# Two GPUs and two cards share a root, and every second NUMA node has none.
_AMPERE: Final = (
    _Pair("pci0000:00", 3, "07", "0c", 0),
    _Pair("pci0000:00", 3, "0f", "12", 1),
    _Pair("pci0000:40", 1, "47", "4b", 2),
    _Pair("pci0000:40", 1, "4e", "54", 3),
    _Pair("pci0000:80", 7, "87", "8d", 6),
    _Pair("pci0000:80", 7, "90", "94", 7),
    _Pair("pci0000:b0", 5, "b7", "ba", 8),
    _Pair("pci0000:b0", 5, "bd", "cc", 9),
)
_RDMA_NUMBERS: Final = 12


def _board(
    name: str,
    machine: Machine,
    model: GpuModel,
    pairs: tuple[_Pair, ...] = _HOPPER,
    card: dranet.Card = dranet.CONNECTX7_IB,
) -> Board:
    slots = tuple(pair.gpu_slot() for pair in pairs)
    nics = tuple(nic for pair in pairs for nic in pair.ports(1, card))
    return Board(machine, model, slots, nics, name)


_MACHINE_A100: Final = Machine("dgx-a100", 256, "1Ti", numa_nodes=8)
_MACHINE_H100: Final = Machine("dgx-h100", 224, "2Ti")
_A100: Final = _board("DGXA100", _MACHINE_A100, A100_40GB, _AMPERE, dranet.CONNECTX6_IB)
_H100: Final = _board("DGXH100", _MACHINE_H100, H100_SXM)
_H200: Final = _board("DGXH200", Machine("dgx-h200", 224, "2Ti"), H200_SXM)
_B200: Final = _board("DGXB200", Machine("dgx-b200", 224, "4Ti"), B200_SXM)

PROFILES: Final = (
    profile("dgx-h100", "8 x H100 80 GB, 8 x 400G InfiniBand, one of each per PCIe root", _H100),
    profile("dgx-h100-mig", "dgx-h100 with dynamic MIG: every partition of every GPU", _H100, nvidia.dividable_gpus),
    profile("dgx-h100-vfio", "dgx-h100 with the GPUs passed through to virtual machines", _H100, nvidia.passed_through_gpus),
    profile("dgx-h200", "8 x H200 141 GB, 8 x 400G InfiniBand", _H200),
    profile("dgx-h200-mig", "dgx-h200 with dynamic MIG", _H200, nvidia.dividable_gpus),
    profile("dgx-a100", "8 x A100 40 GB, 8 x 200G InfiniBand, two of each per PCIe root", _A100),
    profile("dgx-a100-mig", "dgx-a100 in MIG mode: partitions only", _A100, nvidia.dividable_gpus),
    profile("dgx-b200", "8 x B200 180 GB, 8 x 400G InfiniBand", _B200),
    profile("dgx-b200-mig", "dgx-b200 with dynamic MIG", _B200, nvidia.dividable_gpus),
)  # fmt: skip


def dgx_h100(
    node_name: str, *, mig: bool = False, ports_per_nic: int = 1, compute_domain: bool = False
) -> HardwareNode:
    """A DGX H100 as its drivers describe it.

    With `mig` every GPU is offered whole and in all its partitions (dynamic MIG). With two ports per card and the compute
    domain as well, a node has 11 slices and 226 devices.
    """
    gpus = nvidia.dividable_gpus if mig else nvidia.whole_gpus
    nics = [nic for pair in _HOPPER for nic in pair.ports(ports_per_nic)]
    slices = (
        *gpus(node_name, H100_SXM, _H100.gpus),
        *dranet.interfaces(node_name, nics),
        *(nvidia.compute_domain(node_name) if compute_domain else ()),
    )
    spot = Spot(node_name, "rack-0", "block-0")
    node = machines.node(spot, _MACHINE_H100, nvidia.labels(H100_SXM, len(_H100.gpus), "DGXH100"))
    return HardwareNode(node, slices, classes_of(*nvidia.DRIVERS, DRANET))
