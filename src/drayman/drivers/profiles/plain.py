"""A machine without accelerators, whose CPUs `dra.cpu` publishes."""

from __future__ import annotations

from typing import Final

from drayman.drivers.profiles import machines, processors
from drayman.drivers.profiles.hardware import HardwareNode
from drayman.drivers.profiles.machines import Machine, Spot
from drayman.drivers.profiles.profile import Profile

_MACHINE: Final = Machine("cpu-128", 128, "512Gi")


def _grouped(spot: Spot) -> HardwareNode:
    return HardwareNode(
        machines.node(spot, _MACHINE, {}),
        processors.numa_groups(spot.name, _MACHINE),
        processors.CLASSES,
    )


def _individual(spot: Spot) -> HardwareNode:
    return HardwareNode(
        machines.node(spot, _MACHINE, {}),
        processors.single_cpus(spot.name, _MACHINE),
        processors.CLASSES,
    )


PROFILES: Final = (
    Profile("cpu", "128 CPUs and 512 GiB, a dra.cpu device per socket", _grouped),
    Profile("cpu-individual", "cpu with a dra.cpu device per CPU", _individual),
)
