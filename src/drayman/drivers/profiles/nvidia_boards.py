"""Machines with NVIDIA GPUs: the board, the network cards on it, and the node that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from drayman.api.resource import DeviceClass, ResourceSlice
from drayman.drivers.classes import classes_of
from drayman.drivers.cpu.devices import DRIVER as CPU
from drayman.drivers.describing import Slot
from drayman.drivers.dranet.devices import DRIVER as DRANET
from drayman.drivers.nvidia.devices import GpuModel
from drayman.drivers.profiles import dranet, machines, nvidia, processors
from drayman.drivers.profiles.hardware import HardwareNode
from drayman.drivers.profiles.machines import Machine, Spot
from drayman.drivers.profiles.nvidia_products import DEFINITIONS
from drayman.drivers.profiles.profile import Profile

Gpus = Callable[[str, GpuModel, Sequence[Slot]], tuple[ResourceSlice, ...]]
"""How the driver offers the GPUs of a node, which the administrator decides: a function of `nvidia`."""


@dataclass(frozen=True, slots=True)
class Board:
    """A machine and what sits in its slots."""

    machine: Machine
    model: GpuModel
    gpus: tuple[Slot, ...]
    nics: tuple[dranet.Nic, ...]
    name: str
    """What the machine calls itself, as `nvidia.com/gpu.machine` has it."""
    classes: tuple[DeviceClass, ...] = ()
    """Besides those of the drivers."""


def build(
    spot: Spot, board: Board, *, gpus: Gpus = nvidia.whole_gpus, clique: str = ""
) -> HardwareNode:
    """A node with its GPUs, network interfaces, compute domain and CPUs."""
    labels = nvidia.labels(board.model, len(board.gpus), board.name)
    if clique:
        labels["nvidia.com/gpu.clique"] = clique
    if gpus is nvidia.dividable_gpus:
        labels["nvidia.com/mig.capable"] = "true"
    return HardwareNode(
        machines.node(spot, board.machine, labels),
        (
            *gpus(spot.name, board.model, board.gpus),
            *dranet.interfaces(spot.name, board.nics),
            *nvidia.compute_domain(spot.name),
            *processors.numa_groups(spot.name, board.machine),
        ),
        (*classes_of(*nvidia.DRIVERS, DRANET, CPU), *board.classes),
        DEFINITIONS,
    )


def profile(name: str, summary: str, board: Board, gpus: Gpus = nvidia.whole_gpus) -> Profile:
    """A profile of machines that stand by themselves."""
    return Profile(name, summary, partial(build, board=board, gpus=gpus))
