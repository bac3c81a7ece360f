"""The workloads of the benchmark: their objects are right, and their sizes those that were published."""

from __future__ import annotations

import json
from itertools import chain

import pytest
from click.testing import CliRunner

from drayman.cli.bench.catalogue import WORKLOADS
from drayman.cli.bench.workloads import Object, Workload
from drayman.cli.main import cli

SMALL = {name: workload for name, workload in WORKLOADS.items() if name.endswith("fast")}


def dra_objects(workload: Workload) -> list[Object]:
    template = workload.template_object()
    return [
        *workload.class_objects(),
        *workload.slice_objects(),
        *workload.rule_objects(),
        *workload.shared_claims(0, workload.pods),
        *(claim for claim, _ in workload.allocated_claims()),
        *([] if template is None else [template]),
    ]


@pytest.mark.parametrize("name", SMALL)
def test_every_object_is_valid(name: str) -> None:
    """`drayman validate` finds nothing wrong with any of them."""
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": dra_objects(SMALL[name])})
    result = CliRunner().invoke(cli, ["validate", "-"], input=listed, prog_name="drayman")
    assert result.exit_code == 0, result.output


def test_all_published_workloads_are_there() -> None:
    """Every test case of the specification, at every size."""
    cases = {name.split("/")[0] for name in WORKLOADS}
    assert cases == {
        "SchedulingWithResourceClaimTemplate",
        "SteadyStateClusterResourceClaimTemplate",
        "SchedulingWithResourceClaim",
        "FirstAvailable",
        "DeviceTaintToleration",
        "Partitionable",
        "PartitionableBacktracking",
        "ConsumableCapacity",
        "ExtendedResource",
        "ExtendedResource_25Classes",
        "ExtendedResource_50Classes",
        "ImplicitExtendedResource_25Classes",
        "ExtendedResourceScoring",
    }


@pytest.mark.parametrize(
    ("name", "nodes", "pods", "claims"),
    [
        ("SchedulingWithResourceClaimTemplate/5000pods_500nodes", 5000, 25_000, 0),
        ("SteadyStateClusterResourceClaimTemplate/empty_500nodes", 5000, 10, 0),
        ("SteadyStateClusterResourceClaimTemplate/half_500nodes", 5000, 10, 25_000),
        ("SteadyStateClusterResourceClaimTemplate/full_500nodes", 5000, 10, 49_990),
        ("Partitionable/2000pods_100nodes", 5000, 2000, 2000),
        ("Partitionable/fast", 50, 500, 500),
    ],
)
def test_another_number_of_nodes(name: str, nodes: int, pods: int, claims: int) -> None:
    """What grows with the nodes does; a full cluster stays full but for the pods that are measured."""
    sized = WORKLOADS[name].sized(nodes)
    assert (sized.nodes, sized.pods, sized.claims_before) == (nodes, pods, claims)


@pytest.mark.parametrize("name", WORKLOADS)
def test_no_device_is_allocated_twice_beforehand(name: str) -> None:
    """Claims that are allocated before the measurement have devices of their own, which exist."""
    workload = WORKLOADS[name]
    taken = [
        (result["pool"], result["device"])
        for _, status in workload.allocated_claims()
        for result in status["allocation"]["devices"]["results"]
    ]
    assert len(set(taken)) == len(taken)
    published = {
        (slice_["spec"]["pool"]["name"], device["name"])
        for slice_ in workload.slice_objects()
        for device in slice_["spec"].get("devices", [])
    }
    assert set(taken) <= published


def test_pods_name_what_exists() -> None:
    """Pods of shared claims name claims that are made for them."""
    workload = WORKLOADS["SchedulingWithResourceClaim/fast"]
    made = {claim["metadata"]["name"] for claim in workload.shared_claims(0, workload.pods)}
    named = chain.from_iterable(
        (
            entry["resourceClaimName"]
            for entry in workload.pod_object(i, f"p{i}")["spec"]["resourceClaims"]
        )
        for i in range(workload.pods)
    )
    assert set(named) == made


def test_the_list_says_what_is_measured() -> None:
    """One node is one node, and a note says that pods that are placed before the measurement are not counted."""
    result = CliRunner().invoke(cli, ["bench", "schedule", "--list"], prog_name="drayman")
    lines = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()}
    assert " ".join(lines["ConsumableCapacity/fast"]) == "1 node 1 pod"
    shown = lines["SchedulingWithResourceClaimTemplate/2000pods_100nodes"]
    assert " ".join(shown) == "100 nodes 1,000 pods"
    assert "a name also counts those that are placed before" in result.stderr
