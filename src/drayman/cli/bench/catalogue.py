"""The workloads at the sizes at which Kubernetes runs them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from drayman.cli.bench.workloads import Workload

_STEADY_S: Final = 10.0


def _from_template() -> Iterator[Workload]:
    name = "SchedulingWithResourceClaimTemplate"
    yield Workload(f"{name}/fast", 1, 10, 10, bare_nodes=1)
    yield Workload(f"{name}/2000pods_100nodes", 100, 20, 1000, 1000)
    yield Workload(f"{name}/2000pods_200nodes", 200, 10, 1000, 1000)
    yield Workload(f"{name}/5000pods_500nodes", 500, 10, 2500, 2500, target=500.0)


def _steady() -> Iterator[Workload]:
    name = "SteadyStateClusterResourceClaimTemplate"
    for nodes, half, full in ((100, 500, 990), (200, 1000, 1990), (500, 2500, 4990)):
        for how_full, claims in (("empty", 0), ("half", half), ("full", full)):
            yield Workload(f"{name}/{how_full}_{nodes}nodes", nodes, 10, 10, 0, claims, _STEADY_S)


def _shared() -> Iterator[Workload]:
    name = "SchedulingWithResourceClaim"
    yield Workload(f"{name}/fast", 1, 2, 10, bare_nodes=1, kind="shared")
    yield Workload(f"{name}/2000pods_100nodes", 100, 4, 1000, 1000, kind="shared")
    yield Workload(f"{name}/2000pods_200nodes", 200, 2, 1000, 1000, kind="shared")
    yield Workload(f"{name}/5000pods_500nodes", 500, 2, 2500, 2500, kind="shared")


def _choices_and_taints() -> Iterator[Workload]:
    yield Workload("FirstAvailable/fast", 1, 10, 10, bare_nodes=1, kind="first-available")
    yield Workload("DeviceTaintToleration/fast", 1, 10, 10, bare_nodes=1, kind="taints")


def _of_the_network() -> Iterator[Workload]:
    """Devices that all nodes share: partitions, counters, capacities."""
    yield Workload(
        "Partitionable/fast", 1, 0, 10, 0, 10, bare_nodes=1, pools=10, kind="partitionable"
    )
    yield Workload(
        "Partitionable/2000pods_100nodes",
        100,
        0,
        2000,
        claims_before=2000,
        steady_s=_STEADY_S,
        pools=2000,
        kind="partitionable",
    )
    yield Workload(
        "PartitionableBacktracking/fast", 1, 0, 1, bare_nodes=1, pools=1, kind="backtracking"
    )
    yield Workload("ConsumableCapacity/fast", 1, 2, 1, bare_nodes=1, pools=1, kind="consumable")
    yield Workload(
        "ConsumableCapacity/2000pods_100nodes",
        100,
        20,
        2000,
        steady_s=_STEADY_S,
        pools=2000,
        kind="consumable",
    )


def _extended() -> Iterator[Workload]:
    yield Workload("ExtendedResource/fast", 1, 10, 10, bare_nodes=1, classes=10, kind="extended")
    for nodes, pods in ((200, 1000), (500, 2500)):
        size = f"{2 * pods}pods_{nodes}nodes"
        for name, classes, kind in (
            ("ExtendedResource_25Classes", 25, "extended"),
            ("ExtendedResource_50Classes", 50, "extended"),
            ("ImplicitExtendedResource_25Classes", 25, "implicit-extended"),
        ):
            yield Workload(f"{name}/{size}", nodes, 10, pods, pods, classes=classes, kind=kind)


def _extended_scoring() -> Iterator[Workload]:
    name, kind = "ExtendedResourceScoring", "extended-scoring"
    yield Workload(f"{name}/fast", 3, 10, 10, bare_nodes=1, classes=2, kind=kind)
    yield Workload(f"{name}/2000pods_200nodes", 200, 20, 2000, classes=10, kind=kind)
    yield Workload(f"{name}/5000pods_500nodes", 500, 20, 5000, classes=20, kind=kind)


WORKLOADS: Final = {
    workload.name: workload
    for workload in chain(
        _from_template(),
        _steady(),
        _shared(),
        _choices_and_taints(),
        _of_the_network(),
        _extended(),
        _extended_scoring(),
    )
}
