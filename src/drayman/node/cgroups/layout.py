"""Which groups a container has, and what is written into them: `BASE/drayman/POD/CONTAINER/ATTEMPT`.

Version 1 has such a path in the hierarchy of each controller, version 2 has one. Processes are in the last group only, as version 2
demands; what the containers of a pod have in common is said in the group of the pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from drayman.node.cgroups.limits import PERIOD_US, Limits, weight_of

NAME: Final = "drayman"
CONTROLLERS: Final = ("cpu", "cpuacct", "cpuset", "memory", "pids")
"""Those that a node has use for. Version 2 counts CPU time with `cpu`."""
_NONE: Final = "-1"


class Write(Struct, frozen=True):
    """A value that is written into a file of a group."""

    file: str
    value: str
    is_optional: bool = False
    """Whether kernels without such a file do as well."""


class Group(Struct, frozen=True):
    """A group to make, after those before it."""

    path: str
    writes: tuple[Write, ...] = ()
    holds: bool = False
    """Whether the container's processes are in it."""


class Hierarchies(Struct, frozen=True):
    """Where a node may make groups."""

    version: int
    bases: Mapping[str, str]
    """The folder below which groups are made, of each controller that can be used."""
    all_cpus: str = ""
    """What `cpuset.cpus` and `cpuset.mems` of the base say: version 1 makes groups that have neither."""
    all_nodes: str = ""


class Place(Struct, frozen=True):
    """Of one attempt."""

    pod: str
    container: str
    attempt: int


def groups_of(
    where: Hierarchies, place: Place, pod: Limits, container: Limits
) -> tuple[Group, ...]:
    """Everything that an attempt needs, in the order in which it is made."""
    if where.version == 2:
        return _one_tree(where, place, pod, container)
    return tuple(
        group
        for controller in CONTROLLERS
        if controller in where.bases and (controller != "cpuset" or container.cpus)
        for group in _one_controller(where, controller, place, pod, container)
    )


def out_of_memory_file(where: Hierarchies, groups: Iterable[Group]) -> str:
    """The file that counts how often the kernel killed for memory; empty where nobody counts."""
    base = where.bases.get("memory")
    name = "memory.events" if where.version == 2 else "memory.oom_control"
    for group in groups:
        if group.holds and base is not None and group.path.startswith(f"{base}/"):
            return f"{group.path}/{name}"
    return ""


def _paths(base: str, place: Place) -> tuple[str, str, str, str]:
    top = f"{base}/{NAME}"
    pod = f"{top}/{place.pod}"
    return top, pod, f"{pod}/{place.container}", f"{pod}/{place.container}/{place.attempt}"


# --- Version 2 ----------------------------------------------------------------------------------


def _one_tree(
    where: Hierarchies, place: Place, pod: Limits, container: Limits
) -> tuple[Group, ...]:
    controllers = list(where.bases)
    base = where.bases[controllers[0]]
    top, of_pod, middle, leaf = _paths(base, place)
    passed_on = Write("cgroup.subtree_control", " ".join(f"+{name}" for name in controllers))
    together = (
        (Write("memory.oom.group", "1", is_optional=True),) if "memory" in controllers else ()
    )
    return (
        Group(top, (passed_on,)),
        Group(of_pod, (*_values_v2(controllers, pod), passed_on)),
        Group(middle, (*_weight_v2(controllers, container), passed_on)),
        Group(leaf, (*_values_v2(controllers, container), *together), holds=True),
    )


def _weight_v2(controllers: Iterable[str], limits: Limits) -> tuple[Write, ...]:
    """Weights are compared between neighbours: those of a pod's containers are the groups that attempts are in."""
    return (Write("cpu.weight", str(weight_of(limits.shares))),) if "cpu" in controllers else ()


def _values_v2(controllers: Iterable[str], limits: Limits) -> tuple[Write, ...]:
    quota = "max" if limits.quota_us is None else str(limits.quota_us)
    found = {
        "cpu": (*_weight_v2(("cpu",), limits), Write("cpu.max", f"{quota} {PERIOD_US}")),
        "memory": (
            Write("memory.max", "max" if limits.memory is None else str(limits.memory)),
            *(() if limits.memory is None else (Write("memory.swap.max", "0", is_optional=True),)),
        ),
        "pids": (Write("pids.max", "max" if limits.pids is None else str(limits.pids)),),
        "cpuset": (Write("cpuset.cpus", limits.cpus),) if limits.cpus else (),
    }
    return tuple(write for name in controllers for write in found.get(name, ()))


# --- Version 1 ----------------------------------------------------------------------------------


def _one_controller(
    where: Hierarchies, controller: str, place: Place, pod: Limits, container: Limits
) -> tuple[Group, ...]:
    top, of_pod, middle, leaf = _paths(where.bases[controller], place)
    if controller == "cpuset":
        everything = (
            Write("cpuset.cpus", where.all_cpus),
            Write("cpuset.mems", where.all_nodes),
        )
        own = (Write("cpuset.cpus", container.cpus), Write("cpuset.mems", where.all_nodes))
        above = tuple(Group(path, everything) for path in (top, of_pod, middle))
        return (*above, Group(leaf, own, holds=True))
    return (
        Group(top),
        Group(of_pod, _values_v1(controller, pod)),
        Group(middle, _weight_v1(controller, container)),
        Group(leaf, _values_v1(controller, container), holds=True),
    )


def _weight_v1(controller: str, limits: Limits) -> tuple[Write, ...]:
    return (Write("cpu.shares", str(limits.shares)),) if controller == "cpu" else ()


def _values_v1(controller: str, limits: Limits) -> tuple[Write, ...]:
    match controller:
        case "cpu":
            quota = _NONE if limits.quota_us is None else str(limits.quota_us)
            return (
                *_weight_v1(controller, limits),
                Write("cpu.cfs_period_us", str(PERIOD_US)),
                Write("cpu.cfs_quota_us", quota),
            )
        case "memory" if limits.memory is not None:
            most = str(limits.memory)
            return (
                Write("memory.limit_in_bytes", most),
                # With swap, so that nothing more is to be had there.
                Write("memory.memsw.limit_in_bytes", most, is_optional=True),
            )
        case "pids":
            return (Write("pids.max", "max" if limits.pids is None else str(limits.pids)),)
    return ()
