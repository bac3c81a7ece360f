"""What a container or a pod may take, in the kernel's terms. The formulas are those of a kubelet.

A request for CPU is a weight: it counts while others want the same CPUs. A limit for CPU is an amount of time in each period. A limit for
memory is a number of bytes, beyond which the kernel kills.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from drayman.api.core import Container, Pod, ResourceRequirements
from drayman.placement.fit.requests import CPU, MEMORY, requests_of, whole_amounts

PERIOD_US: Final = 100_000
_LEAST_QUOTA_US: Final = 1_000
_LEAST_SHARES: Final = 2
_MOST_SHARES: Final = 262_144
_SHARES_OF_A_CPU: Final = 1024
_MOST_WEIGHT: Final = 10_000
LIMITED: Final = (CPU, MEMORY)
"""The resources whose limits a node enforces."""


class Limits(Struct, frozen=True):
    """What a control group is told."""

    shares: int
    """The weight in terms of version 1, in which a CPU counts 1024."""
    quota_us: int | None = None
    """Of CPU time in each period; None for as much as there is."""
    memory: int | None = None
    pids: int | None = None
    cpus: str = ""
    """The only CPUs that may be used, as a list that Linux reads; empty for all."""


def shares_of(milli_cpu: int) -> int:
    """The weight of a request, in terms of version 1."""
    wanted = milli_cpu * _SHARES_OF_A_CPU // 1000
    return min(max(wanted, _LEAST_SHARES), _MOST_SHARES)


def weight_of(shares: int) -> int:
    """The weight of a request, in terms of version 2: the range of shares mapped onto 1 to 10000."""
    return 1 + (shares - _LEAST_SHARES) * (_MOST_WEIGHT - 1) // (_MOST_SHARES - _LEAST_SHARES)


def quota_of(milli_cpu: int) -> int:
    """The CPU time in each period that a limit amounts to."""
    return max(milli_cpu * PERIOD_US // 1000, _LEAST_QUOTA_US)


def container_limits(resources: ResourceRequirements, cpus: str = "") -> Limits:
    """Those of one container."""
    requests, limits = whole_amounts(resources.requests), whole_amounts(resources.limits)
    # A limit without a request is a request too.
    wanted = requests.get(CPU, limits.get(CPU, 0))
    return _limits(wanted, limits.get(CPU), limits.get(MEMORY), cpus=cpus)


def pod_limits(pod: Pod, pids: int | None = None) -> Limits:
    """Those of all containers of a pod together. A resource is limited if each of them limits it, or if the pod as a whole does."""
    requests = requests_of(pod).amounts
    most = requests_of(_with_limits_as_requests(pod)).amounts
    capped = {name: most[name] for name in LIMITED if _is_limited(pod, name)}
    return _limits(requests.get(CPU, 0), capped.get(CPU), capped.get(MEMORY), pids=pids)


def limited_resources(resources: ResourceRequirements) -> list[str]:
    """Those of which a container says how much it may take at most."""
    return [name for name in LIMITED if name in resources.limits]


def _limits(
    milli_request: int,
    milli_limit: int | None,
    memory: int | None,
    *,
    pids: int | None = None,
    cpus: str = "",
) -> Limits:
    quota = None if not milli_limit else quota_of(milli_limit)
    return Limits(shares_of(milli_request), quota, memory or None, pids, cpus)


def _is_limited(pod: Pod, name: str) -> bool:
    of_pod = pod.spec.resources
    if of_pod is not None and name in of_pod.limits:
        return True
    everyone = (*pod.spec.init_containers, *pod.spec.containers)
    return all(name in each.resources.limits for each in everyone)


def _with_limits_as_requests(pod: Pod) -> Pod:
    """Limits add up as requests do."""

    def swapped(resources: ResourceRequirements) -> ResourceRequirements:
        return replace(resources, requests=resources.limits)

    def of_container(container: Container) -> Container:
        return replace(container, resources=swapped(container.resources))

    spec = pod.spec
    return replace(
        pod,
        spec=replace(
            spec,
            containers=tuple(map(of_container, spec.containers)),
            init_containers=tuple(map(of_container, spec.init_containers)),
            resources=None if spec.resources is None else swapped(spec.resources),
        ),
    )
