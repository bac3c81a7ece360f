"""What `dra.cpu` publishes: by default one device per NUMA node, shared by capacity, or else one per CPU.

Machines without accelerators have nothing else, and most others have it besides their devices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drayman.api.resource import Device, DeviceAttribute, DeviceClass, ResourceSlice
from drayman.drivers.describing import FALSE, TRUE, capacity, device_class, integer, string
from drayman.drivers.profiles import machines
from drayman.drivers.profiles.hardware import HardwareNode, pool_slices
from drayman.drivers.profiles.machines import Machine, Spot
from drayman.drivers.profiles.profile import Profile

DRIVER: Final = "dra.cpu"
CLASSES: Final = (device_class(DRIVER),)
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
            (*classes, *CLASSES),
        )

    return Profile(name, summary, build)


def numa_groups(node_name: str, machine: Machine) -> tuple[ResourceSlice, ...]:
    """The CPUs of a machine, a device for those of each NUMA node."""
    cpus = machine.cpus // machine.numa_nodes
    devices = tuple(
        Device(
            name=f"cpudevnuma{numa:03}",
            allow_multiple_allocations=True,
            attributes={"numCPUs": integer(cpus), **_where(machine, numa)},
            capacity={"dra.cpu/cpu": capacity(str(cpus))},
        )
        for numa in range(machine.numa_nodes)
    )
    return pool_slices(node_name, DRIVER, [devices])


def single_cpus(node_name: str, machine: Machine) -> tuple[ResourceSlice, ...]:
    """The CPUs of a machine, a device each. The threads of a core are neighbours, though their numbers are far apart."""
    cores = machine.cpus // machine.threads_per_core
    cpus = [
        (core, core + cores * n) for core in range(cores) for n in range(machine.threads_per_core)
    ]
    devices = tuple(
        Device(
            name=f"cpudev{position:03}",
            attributes={
                "cpuID": integer(cpu),
                "coreID": integer(core),
                "coreType": string("standard"),
                "cacheL3ID": integer(core // _CORES_PER_CACHE),
                **_where(machine, core * machine.numa_nodes // cores),
            },
        )
        for position, (core, cpu) in enumerate(cpus)
    )
    return pool_slices(node_name, DRIVER, [devices])


def _where(machine: Machine, numa: int) -> dict[str, DeviceAttribute]:
    """What CPUs of one NUMA node have in common."""
    return {
        "socketID": integer(numa * machine.sockets // machine.numa_nodes),
        "smtEnabled": TRUE if machine.threads_per_core > 1 else FALSE,
        "numaNodeID": integer(numa),
        "dra.net/numaNode": integer(numa),
        "resource.kubernetes.io/numaNode": integer(numa),
    }


def _individual(spot: Spot) -> HardwareNode:
    slices = single_cpus(spot.name, _MACHINE)
    return HardwareNode(machines.node(spot, _MACHINE), slices, CLASSES)


PROFILES: Final = (
    profile("cpu", "128 CPUs and 512 GiB, a dra.cpu device per socket", _MACHINE, lambda _: (), ()),
    Profile("cpu-individual", "cpu with a dra.cpu device per CPU", _individual),
)  # fmt: skip
