"""How a node keeps containers within their limits: control groups where it may make them, and a warning where it may not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from drayman.api.core import Container, Pod
from drayman.driver_configs.cpu import CPUSET_VARIABLE, format_cpus, parse_cpus
from drayman.node.cgroups.finding import CannotLimitError, find_hierarchies, leave
from drayman.node.cgroups.layout import (
    Group,
    Hierarchies,
    Place,
    groups_of,
    out_of_memory_file,
)
from drayman.node.cgroups.limits import container_limits, limited_resources, pod_limits
from drayman.plugins.errors import CdiError

_NOT_DELEGATED: Final = "its controller is not passed on to the node"


class Confinement(Struct, frozen=True):
    """What keeps one attempt within its limits."""

    groups: tuple[Group, ...] = ()
    oom_file: str = ""
    cpus: tuple[int, ...] = ()
    """Where no control group keeps it on its CPUs."""


class NodeLimits:
    """Those of all containers of a node."""

    def __init__(
        self, where: Hierarchies | None, why_not: str = "", pids: int | None = None
    ) -> None:
        """`pids`: how many processes and threads a pod may have."""
        self._where = where
        self.why_not = why_not
        """Why nothing is enforced; empty if something is."""
        self._pids = pids

    @classmethod
    def here(cls, pids: int | None = None) -> NodeLimits:
        """As far as this process may limit others."""
        try:
            return cls(find_hierarchies(), pids=pids)
        except CannotLimitError as error:
            return cls(None, str(error), pids)

    def confine(self, pod: Pod, name: str, attempt: int, cpus: tuple[int, ...]) -> Confinement:
        """What an attempt of a container is started with. `cpus` are those that it is to stay on; none for all."""
        where = self._where
        if where is None:
            return Confinement(cpus=cpus)
        resources = _container(pod, name).resources
        by_group = cpus if "cpuset" in where.bases else ()
        groups = groups_of(
            where,
            Place(pod.metadata.uid, name, attempt),
            pod_limits(pod, self._pids),
            container_limits(resources, format_cpus(by_group)),
        )
        return Confinement(
            groups, out_of_memory_file(where, groups), () if by_group else tuple(cpus)
        )

    def not_enforced(self, pod: Pod, name: str) -> str:
        """Which limits of a container nobody enforces, and why; empty if there are none."""
        bases = {} if self._where is None else self._where.bases
        wanted = limited_resources(_container(pod, name).resources)
        ignored = [each for each in wanted if each not in bases]
        if not ignored:
            return ""
        why = self.why_not or _NOT_DELEGATED
        return f"container {name}: limits of {', '.join(ignored)} are not enforced: {why}"

    def leave(self) -> None:
        """The agent ends. Groups with containers stay."""
        if self._where is not None:
            leave(self._where)


def cpus_of(variables: Mapping[str, str]) -> tuple[int, ...]:
    """The CPUs that drivers have given to a container, from the variables that CDI adds. Raises CdiError."""
    found: set[int] = set()
    for name, value in variables.items():
        if name.startswith(CPUSET_VARIABLE):
            try:
                found |= set(parse_cpus(value))
            except ValueError as error:
                raise CdiError(f"{name}: {error}") from error
    return tuple(sorted(found))


def _container(pod: Pod, name: str) -> Container:
    everyone = (*pod.spec.init_containers, *pod.spec.containers)
    return next(each for each in everyone if each.name == name)
