"""GB200 NVL72: a rack of eighteen trays with four GPUs each, all 72 in one NVLink clique.

A tray's GPUs are attached to their CPUs by NVLink-C2C and never share a PCIe root with a network card: only the NUMA node aligns them.
"""

from __future__ import annotations

from typing import Final

from drayman.drivers.describing import Slot, uuid
from drayman.drivers.profiles import dranet
from drayman.drivers.profiles.hardware import HardwareNode
from drayman.drivers.profiles.machines import RACKS_PER_BLOCK, Machine, Spot
from drayman.drivers.profiles.nvidia_boards import Board, build
from drayman.drivers.profiles.nvidia_products import GB200
from drayman.drivers.profiles.profile import Profile

TRAYS: Final = 18
_MACHINE: Final = Machine("gb200-nvl72", 144, "960Gi", architecture="arm64", threads_per_core=1)
_GPUS: Final = (("0008", 0), ("0009", 0), ("0018", 1), ("0019", 1))
_CARDS: Final = (("0000", 0), ("0002", 0), ("0010", 1), ("0012", 1))
_PORTS: Final = 2


def _nics() -> tuple[dranet.Nic, ...]:
    ports = [(domain, numa, port) for domain, numa in _CARDS for port in range(_PORTS)]
    return tuple(
        dranet.Nic(
            slot=Slot(f"{domain}:03:00.{port}", f"pci{domain}:00", numa),
            interface=f"rdma{number}",
            rdma_device=f"mlx5_{number}",
            card=dranet.CONNECTX7,
        )
        for number, (domain, numa, port) in enumerate(ports)
    )


_BOARD: Final = Board(
    machine=_MACHINE,
    model=GB200,
    gpus=tuple(Slot(f"{domain}:06:00.0", f"pci{domain}:00", numa) for domain, numa in _GPUS),
    nics=_nics(),
    name="GB200-NVL72",
)


def _tray(spot: Spot) -> HardwareNode:
    # The id of the rack's NVLink fabric and of the clique in it: `<uuid>.<number>`.
    return build(spot, _BOARD, clique=f"{uuid('clique', spot.rack)}.32766")


def _rack(profile: str, unit: int) -> tuple[Spot, ...]:
    block = f"{profile}-block-{unit // RACKS_PER_BLOCK}"
    return tuple(
        Spot(f"{profile}-{unit}-{tray:02}", f"{profile}-rack-{unit}", block, tray)
        for tray in range(TRAYS)
    )


PROFILES: Final = (
    Profile(
        "gb200-nvl72",
        "a rack: 18 trays of 4 x GB200 and 8 x 400G ports, one NVLink clique",
        _tray,
        _rack,
    ),
)
