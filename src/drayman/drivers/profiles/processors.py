"""What `dra.cpu` publishes: by default one device per NUMA node, shared by capacity, or else one per CPU.

Machines without accelerators have nothing else, and most others have it besides their devices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drayman.api.resource import DeviceClass, ResourceSlice
from drayman.drivers.classes import classes_of
from drayman.drivers.cpu.devices import DRIVER, NUMA, Cpu, group, in_order, single
from drayman.drivers.profiles import machines
from drayman.drivers.profiles.hardware import HardwareNode, pool_slices
from drayman.drivers.profiles.machines import Machine, Spot
from drayman.drivers.profiles.profile import Profile

_CORES_PER_CACHE: Final = 8
_MACHINE: Final = Machine("cpu-128", 128, "512Gi")


def profile(
    name: str,
    summary: str,
    machine: Machine,
    devices: Callable[[str], tuple[ResourceSlice, ...]],
    classes: tuple[DeviceClass, ...],
) -> Profile:
    """A profile of machines with these devices, by the name of the node, besides their CPUs."""

    def build(spot: Spot) -> HardwareNode:
        return HardwareNode(
            machines.node(spot, machine),
            (*devices(spot.name), *numa_groups(spot.name, machine)),
            (*classes, *classes_of(DRIVER)),
        )

    return Profile(name, summary, build)


def numa_groups(node_name: str, machine: Machine) -> tuple[ResourceSlice, ...]:
    """The CPUs of a machine, a device for those of each NUMA node."""
    cpus, smt = machine.cpus // machine.numa_nodes, machine.threads_per_core > 1
    firsts = (
        Cpu(number=0, core=0, cache=0, numa=numa, socket=_socket(machine, numa), smt=smt)
        for numa in range(machine.numa_nodes)
    )
    found = tuple(group(NUMA, first, cpus) for first in firsts)
    return pool_slices(node_name, DRIVER, [found])


def single_cpus(node_name: str, machine: Machine) -> tuple[ResourceSlice, ...]:
    """The CPUs of a machine, a device each."""
    found = tuple(single(place, cpu) for place, cpu in enumerate(in_order(cpus_of(machine))))
    return pool_slices(node_name, DRIVER, [found])


def cpus_of(machine: Machine) -> list[Cpu]:
    """The second threads of all cores come after the first ones."""
    cores = machine.cpus // machine.threads_per_core
    return [
        Cpu(
            number=core + cores * thread,
            core=core,
            cache=core // _CORES_PER_CACHE,
            numa=(numa := core * machine.numa_nodes // cores),
            socket=_socket(machine, numa),
            smt=machine.threads_per_core > 1,
        )
        for core in range(cores)
        for thread in range(machine.threads_per_core)
    ]


def _socket(machine: Machine, numa: int) -> int:
    return numa * machine.sockets // machine.numa_nodes


def _individual(spot: Spot) -> HardwareNode:
    slices = single_cpus(spot.name, _MACHINE)
    return HardwareNode(machines.node(spot, _MACHINE), slices, classes_of(DRIVER))


PROFILES: Final = (
    profile("cpu", "128 CPUs and 512 GiB, a dra.cpu device per socket", _MACHINE, lambda _: (), ()),
    Profile("cpu-individual", "cpu with a dra.cpu device per CPU", _individual),
)  # fmt: skip
