"""The workloads at the sizes at which Kubernetes runs them."""

from __future__ import annotations

from typing import Final

from drayman.cli.bench.workloads import Workload

_STEADY_S: Final = 10.0


def _all() -> tuple[Workload, ...]:
    template = "SchedulingWithResourceClaimTemplate"
    steady = "SteadyStateClusterResourceClaimTemplate"
    direct = "SchedulingWithResourceClaim"
    found = [
        Workload(f"{template}/fast", 1, 10, 10, bare_nodes=1),
        Workload(f"{template}/2000pods_100nodes", 100, 20, 1000, 1000),
        Workload(f"{template}/2000pods_200nodes", 200, 10, 1000, 1000),
        Workload(f"{template}/5000pods_500nodes", 500, 10, 2500, 2500, target=500.0),
    ]
    for nodes, half, full in ((100, 500, 990), (200, 1000, 1990), (500, 2500, 4990)):
        found += [
            Workload(f"{steady}/{name}_{nodes}nodes", nodes, 10, 10, 0, claims, _STEADY_S)
            for name, claims in (("empty", 0), ("half", half), ("full", full))
        ]
    found += [
        Workload(f"{direct}/fast", 1, 2, 10, bare_nodes=1, kind="shared"),
        Workload(f"{direct}/2000pods_100nodes", 100, 4, 1000, 1000, kind="shared"),
        Workload(f"{direct}/2000pods_200nodes", 200, 2, 1000, 1000, kind="shared"),
        Workload(f"{direct}/5000pods_500nodes", 500, 2, 2500, 2500, kind="shared"),
        Workload("FirstAvailable/fast", 1, 10, 10, bare_nodes=1, kind="first-available"),
        Workload("DeviceTaintToleration/fast", 1, 10, 10, bare_nodes=1, kind="taints"),
        Workload(
            "Partitionable/fast", 1, 0, 10, 0, 10, bare_nodes=1, pools=10, kind="partitionable"
        ),
        Workload(
            "Partitionable/2000pods_100nodes",
            100,
            0,
            2000,
            claims_before=2000,
            steady_s=_STEADY_S,
            pools=2000,
            kind="partitionable",
        ),
        Workload(
            "PartitionableBacktracking/fast", 1, 0, 1, bare_nodes=1, pools=1, kind="backtracking"
        ),
        Workload("ConsumableCapacity/fast", 1, 2, 1, bare_nodes=1, pools=1, kind="consumable"),
        Workload(
            "ConsumableCapacity/2000pods_100nodes",
            100,
            20,
            2000,
            steady_s=_STEADY_S,
            pools=2000,
            kind="consumable",
        ),
        Workload("ExtendedResource/fast", 1, 10, 10, bare_nodes=1, classes=10, kind="extended"),
    ]
    for nodes, pods in ((200, 1000), (500, 2500)):
        size = f"{2 * pods}pods_{nodes}nodes"
        found += [
            Workload(
                f"ExtendedResource_{classes}Classes/{size}",
                nodes,
                10,
                pods,
                pods,
                classes=classes,
                kind="extended",
            )
            for classes in (25, 50)
        ]
        found.append(
            Workload(
                f"ImplicitExtendedResource_25Classes/{size}",
                nodes,
                10,
                pods,
                pods,
                classes=25,
                kind="implicit-extended",
            )
        )
    scoring = "ExtendedResourceScoring"
    found += [
        Workload(f"{scoring}/fast", 3, 10, 10, bare_nodes=1, classes=2, kind="extended-scoring"),
        Workload(
            f"{scoring}/2000pods_200nodes", 200, 20, 2000, classes=10, kind="extended-scoring"
        ),
        Workload(
            f"{scoring}/5000pods_500nodes", 500, 20, 5000, classes=20, kind="extended-scoring"
        ),
    ]
    return tuple(found)


WORKLOADS: Final = {workload.name: workload for workload in _all()}
