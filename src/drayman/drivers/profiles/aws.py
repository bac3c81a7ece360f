"""Amazon's machines with NVIDIA GPUs and Elastic Fabric Adapters."""

from __future__ import annotations

from typing import Final

from drayman.drivers.classes import EFA
from drayman.drivers.describing import Slot
from drayman.drivers.profiles import dranet
from drayman.drivers.profiles.machines import Machine
from drayman.drivers.profiles.nvidia_boards import Board, profile
from drayman.drivers.profiles.nvidia_products import A100_40GB, H100_SXM

_P4D_BUSES: Final = (("10", 0), ("20", 0), ("90", 1), ("a0", 1))
"""Each is a PCIe root with two GPUs and one adapter."""

_P5_BUSES: Final = ("53", "64", "75", "86", "97", "a8", "b9", "ca")
"""Of the GPUs; four adapters are on the buses before each."""
_P5_ADAPTERS: Final = 4
_P5_ROOT: Final = 15
"""How far below its GPU's bus a root is numbered."""


def _p4d() -> Board:
    gpus = tuple(
        Slot(f"0000:{bus}:{slot}.0", f"pci0000:{bus}", numa)
        for bus, numa in _P4D_BUSES
        for slot in ("1c", "1d")
    )
    nics = tuple(
        _adapter(Slot(f"0000:{bus}:1b.0", f"pci0000:{bus}", numa), f"p{int(bus, 16)}s27")
        for bus, numa in _P4D_BUSES
    )
    return Board(
        Machine("p4d.24xlarge", 96, "1152Gi"),
        A100_40GB,
        gpus,
        nics,
        "p4d.24xlarge",
        (EFA,),
    )


def _p5() -> Board:
    gpus: list[Slot] = []
    nics: list[dranet.Nic] = []
    for index, text in enumerate(_P5_BUSES):
        bus, numa = int(text, 16), index * 2 // len(_P5_BUSES)
        root = f"pci0000:{bus - _P5_ROOT:02x}"
        gpus.append(Slot(f"0000:{text}:00.0", root, numa))
        nics.extend(
            _adapter(Slot(f"0000:{nic:02x}:00.0", root, numa), f"p{nic}s0")
            for nic in range(bus - _P5_ADAPTERS, bus)
        )
    return Board(
        Machine("p5.48xlarge", 192, "2Ti"),
        H100_SXM,
        tuple(gpus),
        tuple(nics),
        "p5.48xlarge",
        (EFA,),
    )


def _adapter(slot: Slot, place: str) -> dranet.Nic:
    return dranet.Nic(slot, f"en{place}", f"rdma{place}", dranet.EFA)


PROFILES: Final = (
    profile("p4d", "AWS p4d.24xlarge: 8 x A100 40 GB, 4 x EFA, two GPUs and one EFA per root", _p4d()),
    profile("p5", "AWS p5.48xlarge: 8 x H100 80 GB, 32 x EFA, four per GPU", _p5()),
)  # fmt: skip
