"""What `dra.cpu` publishes in its default mode: one device per NUMA node, shared by capacity."""

from __future__ import annotations

from typing import Final

from drayman.api.quantity import Quantity
from drayman.api.resource import Device, DeviceCapacity, ResourceSlice
from drayman.drivers.profiles.hardware import FALSE, TRUE, device_class, integer, pool_slices
from drayman.drivers.profiles.machines import Machine

DRIVER: Final = "dra.cpu"
CLASSES: Final = (device_class("dra.cpu", "device.driver == 'dra.cpu'"),)


def numa_groups(node_name: str, machine: Machine) -> tuple[ResourceSlice, ...]:
    """The CPUs of a machine, a device for those of each NUMA node."""
    cpus = machine.cpus // machine.numa_nodes
    devices = tuple(
        Device(
            name=f"cpudevnuma{numa:03}",
            allow_multiple_allocations=True,
            attributes={
                "socketID": integer(numa * machine.sockets // machine.numa_nodes),
                "numCPUs": integer(cpus),
                "smtEnabled": TRUE if machine.threads_per_core > 1 else FALSE,
                "numaNodeID": integer(numa),
                "dra.net/numaNode": integer(numa),
                "resource.kubernetes.io/numaNode": integer(numa),
            },
            capacity={"dra.cpu/cpu": DeviceCapacity(value=Quantity.parse(str(cpus)))},
        )
        for numa in range(machine.numa_nodes)
    )
    return pool_slices(node_name, DRIVER, [devices])
