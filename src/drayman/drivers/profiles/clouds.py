"""Google's, Azure's and Oracle's machines with NVIDIA GPUs.

The PCI topology of the first two is virtual. Google's roots are not documented; one GPU and one network card per root is what its
documentation implies. Azure gives every device a PCI domain of its own, so that nothing shares a root and only the NUMA node aligns.
Oracle's is bare metal: the buses of the network cards are as seen, those of the GPUs and the roots are inferred from them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drayman.drivers.describing import Slot
from drayman.drivers.nvidia.devices import GpuModel
from drayman.drivers.profiles import dranet
from drayman.drivers.profiles.machines import Machine
from drayman.drivers.profiles.nvidia_boards import Board, profile
from drayman.drivers.profiles.nvidia_products import A100_80GB, H100_SXM, H200_SXM

_GPUS: Final = 8
_NUMA: Final = (0, 0, 0, 0, 1, 1, 1, 1)
_GOOGLE_BUSES: Final = ("04", "05", "0a", "0b", "84", "85", "8a", "8b")
_GOOGLE_NIC_BUSES: Final = ("06", "07", "0c", "0d", "86", "87", "8c", "8d")
_AZURE_H100: Final = ("0001", "0002", "0003", "0008", "0009", "000a", "000b", "000c")
_AZURE_A100: Final = ("0001", "0002", "0003", "0004", "000b", "000c", "000d", "000e")
_AZURE_A100_NUMA: Final = (1, 1, 0, 0, 3, 3, 2, 2)
"""Of GPUs and cards alike. Their order is that of the PCI domains, not that of the NUMA nodes."""
_ORACLE_NIC_BUSES: Final = ("0c", "2a", "41", "58", "86", "a5", "bd", "d5")
_ORACLE_PORTS: Final = 2
"""Of the network card beside each GPU."""


def _google(machine: Machine, model: GpuModel, nic: Callable[[int, Slot], dranet.Nic]) -> Board:
    roots = [f"pci0000:{bus}" for bus in ("01", "02", "08", "09", "81", "82", "88", "89")]
    gpus = tuple(
        Slot(f"0000:{bus}:00.0", root, numa)
        for bus, root, numa in zip(_GOOGLE_BUSES, roots, _NUMA, strict=True)
    )
    nics = tuple(
        nic(index, Slot(f"0000:{bus}:00.0", root, numa))
        for index, (bus, root, numa) in enumerate(zip(_GOOGLE_NIC_BUSES, roots, _NUMA, strict=True))
    )
    return Board(machine, model, gpus, nics, "Google-Compute-Engine")


def _gvnic(index: int, slot: Slot) -> dranet.Nic:
    return dranet.Nic(slot, f"eth{index + 1}", None, dranet.GVNIC)


def _google_rdma(index: int, slot: Slot) -> dranet.Nic:
    return dranet.Nic(slot, f"gpu{index}rdma0", f"mlx5_{index}", dranet.CONNECTX7_GOOGLE)


def _azure(
    machine: Machine,
    model: GpuModel,
    domains: tuple[str, ...],
    numa_nodes: tuple[int, ...],
    card: dranet.Card = dranet.CONNECTX7_IB,
) -> Board:
    gpus = tuple(
        Slot(f"{domain}:00:00.0", None, numa)
        for domain, numa in zip(domains, numa_nodes, strict=True)
    )
    nics = tuple(
        dranet.Nic(
            Slot(f"{0x101 + index:04x}:00:00.0", None, numa_nodes[index]),
            f"ib{index}",
            f"mlx5_{index}",
            card,
        )
        for index in range(_GPUS)
    )
    return Board(machine, model, gpus, nics, "Virtual-Machine")


def _oracle() -> Board:
    places = [
        (int(bus, 16), f"pci0000:{int(bus, 16) - 5:02x}", numa)
        for bus, numa in zip(_ORACLE_NIC_BUSES, _NUMA, strict=True)
    ]
    gpus = tuple(Slot(f"0000:{bus + 3:02x}:00.0", root, numa) for bus, root, numa in places)
    ports = [(place, port) for place in places for port in range(_ORACLE_PORTS)]
    nics = tuple(
        dranet.Nic(
            Slot(f"0000:{bus:02x}:00.{port}", root, numa),
            f"rdma{index}",
            f"mlx5_{index}",
            dranet.CONNECTX7,
        )
        for index, ((bus, root, numa), port) in enumerate(ports)
    )
    return Board(Machine("BM.GPU.H100.8", 224, "2Ti"), H100_SXM, gpus, nics, "ORACLE-SERVER")


_A3_MEGA: Final = _google(
    Machine(
        "a3-megagpu-8g",
        208,
        "1743Gi",
        labels={"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"},
    ),
    H100_SXM,
    _gvnic,
)
_A3_ULTRA: Final = _google(
    Machine(
        "a3-ultragpu-8g",
        224,
        "2749Gi",
        labels={"cloud.google.com/gke-accelerator": "nvidia-h200-141gb"},
    ),
    H200_SXM,
    _google_rdma,
)
_ND_H100: Final = _azure(
    Machine("Standard_ND96isr_H100_v5", 96, "1900Gi", threads_per_core=1),
    H100_SXM,
    _AZURE_H100,
    _NUMA,
)
_ND_A100: Final = _azure(
    Machine("Standard_ND96amsr_A100_v4", 96, "1900Gi", numa_nodes=4, threads_per_core=1),
    A100_80GB,
    _AZURE_A100,
    _AZURE_A100_NUMA,
    dranet.CONNECTX6_IB,
)

PROFILES: Final = (
    profile("a3-mega", "Google a3-megagpu-8g: 8 x H100 80 GB, 8 x 200G gVNIC", _A3_MEGA),
    profile("a3-ultra", "Google a3-ultragpu-8g: 8 x H200, 8 x 400G RDMA", _A3_ULTRA),
    profile("nd-h100-v5", "Azure ND96isr H100 v5: 8 x H100, 8 x 400G InfiniBand, NUMA alignment only", _ND_H100),
    profile("nd-a100-v4", "Azure ND96amsr A100 v4: 8 x A100 80 GB, 8 x 200G InfiniBand, two of each per NUMA node", _ND_A100),
    profile("oci-h100", "Oracle BM.GPU.H100.8: 8 x H100 80 GB, 16 x 200G RoCE, two ports per GPU", _oracle()),
)  # fmt: skip
