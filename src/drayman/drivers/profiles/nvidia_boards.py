"""Machines with NVIDIA GPUs: the board, the network cards on it, and the node that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final

from drayman.api.resource import DeviceClass, ResourceSlice
from drayman.drivers.profiles import dranet, machines, nvidia, processors
from drayman.drivers.profiles.hardware import HardwareNode, Slot
from drayman.drivers.profiles.machines import Machine, Spot
from drayman.drivers.profiles.nvidia_products import CLASSES, DEFINITIONS
from drayman.drivers.profiles.profile import Profile

_Gpus = Callable[[str, nvidia.GpuModel, Sequence[Slot]], tuple[ResourceSlice, ...]]


class Mode(Enum):
    """How the driver offers the GPUs. What the administrator decides."""

    WHOLE = "whole"
    MIG = "mig"
    VFIO = "vfio"

    @property
    def gpus(self) -> _Gpus:
        match self:
            case Mode.WHOLE:
                return nvidia.whole_gpus
            case Mode.MIG:
                return nvidia.dividable_gpus
            case Mode.VFIO:
                return nvidia.passed_through_gpus


@dataclass(frozen=True, slots=True)
class Board:
    """A machine and what sits in its slots."""

    machine: Machine
    model: nvidia.GpuModel
    gpus: tuple[Slot, ...]
    nics: tuple[dranet.Nic, ...]
    name: str
    """What the machine calls itself, as `nvidia.com/gpu.machine` has it."""
    classes: tuple[DeviceClass, ...] = ()
    """Besides those of the drivers."""


def build(spot: Spot, board: Board, *, mode: Mode = Mode.WHOLE, clique: str = "") -> HardwareNode:
    """A node with its GPUs, network interfaces, compute domain and CPUs."""
    labels = nvidia.labels(board.model, len(board.gpus), board.name)
    if clique:
        labels["nvidia.com/gpu.clique"] = clique
    if mode is Mode.MIG:
        labels["nvidia.com/mig.capable"] = "true"
    return HardwareNode(
        machines.node(spot, board.machine, labels),
        (
            *mode.gpus(spot.name, board.model, board.gpus),
            *dranet.interfaces(spot.name, board.nics),
            *nvidia.compute_domain(spot.name),
            *processors.numa_groups(spot.name, board.machine),
        ),
        (*CLASSES, *dranet.CLASSES, *processors.CLASSES, *board.classes),
        DEFINITIONS,
    )


def profile(name: str, summary: str, board: Board, mode: Mode = Mode.WHOLE) -> Profile:
    """A profile of machines that stand by themselves."""
    return Profile(name, summary, partial(build, board=board, mode=mode))


INTERFACE_NUMBER: Final = 16
"""The kernel names interfaces by the decimal of a bus number that PCI addresses have in hexadecimal."""


def bus_interface(prefix: str, bus: str) -> str:
    """`ibp24s0` for the InfiniBand card on bus 18."""
    return f"{prefix}{int(bus, INTERFACE_NUMBER)}s0"
