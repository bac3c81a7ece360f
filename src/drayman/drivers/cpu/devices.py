"""CPUs as `dra.cpu` publishes them. The driver and simulated hardware both describe them with these functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drayman.api.resource import Device, DeviceAttribute
from drayman.drivers.describing import FALSE, TRUE, capacity, integer, string

DRIVER: Final = "dra.cpu"
CAPACITY: Final = "dra.cpu/cpu"


@dataclass(frozen=True, slots=True)
class Cpu:
    """A CPU in the sense of the kernel: a thread of a core."""

    number: int
    core: int
    cache: int
    """Of the third level, which several cores share."""
    numa: int
    socket: int
    smt: bool
    """Whether cores have several threads."""
    type: str = "standard"


def group(numa: int, socket: int, cpus: int, *, smt: bool) -> Device:
    """The CPUs of a NUMA node together."""
    return Device(
        name=f"cpudevnuma{numa:03}",
        allow_multiple_allocations=True,
        attributes={"numCPUs": integer(cpus), **_where(numa, socket, smt=smt)},
        capacity={CAPACITY: capacity(str(cpus))},
    )


def single(position: int, cpu: Cpu) -> Device:
    """A CPU of its own, by its place among those of the machine."""
    return Device(
        name=f"cpudev{position:03}",
        attributes={
            "cpuID": integer(cpu.number),
            "coreID": integer(cpu.core),
            "coreType": string(cpu.type),
            "cacheL3ID": integer(cpu.cache),
            **_where(cpu.numa, cpu.socket, smt=cpu.smt),
        },
    )


def in_order(cpus: list[Cpu]) -> list[Cpu]:
    """As devices are numbered: the threads of a core are neighbours, though their own numbers are far apart."""
    return sorted(cpus, key=lambda cpu: (cpu.socket, cpu.numa, cpu.core, cpu.number))


def _where(numa: int, socket: int, *, smt: bool) -> dict[str, DeviceAttribute]:
    """What CPUs of one NUMA node have in common."""
    return {
        "socketID": integer(socket),
        "smtEnabled": TRUE if smt else FALSE,
        "numaNodeID": integer(numa),
        "dra.net/numaNode": integer(numa),
        "resource.kubernetes.io/numaNode": integer(numa),
    }
