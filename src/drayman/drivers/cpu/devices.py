"""CPUs as `dra.cpu` publishes them. The driver and simulated hardware both describe them with these functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drayman.api.resource import Device, DeviceAttribute
from drayman.drivers.describing import FALSE, TRUE, capacity, integer, string

DRIVER: Final = "dra.cpu"
CAPACITY: Final = "dra.cpu/cpu"
NUMA: Final = "numanode"
SOCKET: Final = "socket"
MACHINE: Final = "machine"
GROUPS: Final = (NUMA, SOCKET, MACHINE)


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


def group_name(by: str, cpu: Cpu) -> str:
    """The device of the group that a CPU is in."""
    if by == MACHINE:
        return "cpudevmachine"
    return f"cpudevsocket{cpu.socket:03}" if by == SOCKET else f"cpudevnuma{cpu.numa:03}"


def group(by: str, one: Cpu, count: int) -> Device:
    """CPUs together: what they have in common with one of them, and how many they are."""
    if by == NUMA:
        where = _where(one.numa, one.socket, smt=one.smt)
    else:
        where = {"smtEnabled": TRUE if one.smt else FALSE}
        where |= {"socketID": integer(one.socket)} if by == SOCKET else {}
    return Device(
        name=group_name(by, one),
        allow_multiple_allocations=True,
        attributes={"numCPUs": integer(count), **where},
        capacity={CAPACITY: capacity(str(count))},
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
    """As devices are numbered: by the first thread of each core, and the threads of a core are neighbours."""
    firsts: dict[tuple[int, int, int], int] = {}
    for cpu in sorted(cpus, key=lambda cpu: cpu.number):
        firsts.setdefault(_core(cpu), cpu.number)
    return sorted(cpus, key=lambda cpu: (firsts[_core(cpu)], cpu.number))


def _core(cpu: Cpu) -> tuple[int, int, int]:
    return cpu.socket, cpu.numa, cpu.core


def _where(numa: int, socket: int, *, smt: bool) -> dict[str, DeviceAttribute]:
    """What CPUs of one NUMA node have in common."""
    return {
        "socketID": integer(socket),
        "smtEnabled": TRUE if smt else FALSE,
        "numaNodeID": integer(numa),
        "dra.net/numaNode": integer(numa),
        "resource.kubernetes.io/numaNode": integer(numa),
    }
