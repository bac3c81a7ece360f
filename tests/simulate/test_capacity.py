"""How often a claim fits, and what runs out first."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.resource import DeviceClass, ResourceClaim
from drayman.drivers.profiles import parse_profiles
from drayman.placement.world import Objects, World
from drayman.simulate.capacity import MOST_ON_A_NODE, Capacity, capacity
from drayman.simulate.planning import plan
from simulate.cluster import NOW, asks, claim, cluster, held, node, piece, wanted, workload

TAINTED = {"taints": [{"key": "k", "effect": "NoSchedule"}]}


def summary(found: Capacity) -> list[tuple[int, int, int]]:
    """Nodes, and copies on each now and when empty, by group."""
    return [(len(group.nodes), group.now, group.empty) for group in found.groups]


def test_nodes_are_counted_in_groups() -> None:
    """Nodes with the same room are one group; those with most room come first."""
    world = cluster({"a": 4, "b": 4, "c": 1, "d": 0}, claims=(held("x", "b", "gpu-0", "gpu-1"),))
    found = capacity(world, claim("c", 2))
    assert (found.now, found.empty) == (3, 4)
    assert summary(found) == [(1, 2, 2), (1, 1, 2), (1, 0, 0), (1, 0, 0)]
    assert found.runs_out is not None
    assert found.runs_out.reason.value == "DevicesInUse"


WANTS_1 = "request gpu wants 1 device"
LIMITS: dict[str, tuple[World, int, str, str]] = {
    "nothing is in use": (
        cluster({"a": 4}),
        2,
        "CountTooHigh",
        "After 2 copies: Claim c, request gpu wants 2 devices; all 4 that match are taken by copies.",
    ),
    "what is in use would not make room for another": (
        cluster({"a": 3}, claims=(held("x", "a", "gpu-0"),)),
        2,
        "CountTooHigh",
        "After 1 copy: Claim c, request gpu wants 2 devices; of 3 that match, 1 is in use and 2 are"
        " taken by copies.",
    ),
    "what is in use would": (
        cluster({"a": 4}, claims=(held("x", "a", "gpu-0", "gpu-1", "gpu-2"),)),
        1,
        "DevicesInUse",
        f"After 1 copy: Claim c, {WANTS_1}; of 4 that match, 3 are in use and 1 is taken by copies.",
    ),
    "none fits": (
        cluster({"a": 2}, claims=(held("x", "a", "gpu-0", "gpu-1"),)),
        1,
        "DevicesInUse",
        f"Claim c, {WANTS_1}; both that match are in use.",
    ),
    "several nodes reach the devices": (
        cluster({"a": 0}, slices=(piece("fabric", 3, allNodes=True),)),
        1,
        "CountTooHigh",
        f"After 3 copies: Claim c, {WANTS_1}; those that match are taken by copies.",
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_copies_are_told_from_what_is_in_use(name: str) -> None:
    """What others hold is in use, and the copies are not; with nothing to be given back it is the hardware that has no more."""
    world, count, reason, sentence = LIMITS[name]
    runs_out = capacity(world, claim("c", count)).runs_out
    assert runs_out is not None
    assert (runs_out.reason.value, runs_out.sentence) == (reason, sentence)


@pytest.mark.parametrize("profile", ["dgx-h100-mig", "example-shared"])
def test_copies_in_parts_of_devices_are_not_in_use(profile: str) -> None:
    """Partitions and shares that copies take are theirs, on hardware that nobody uses."""
    (made,) = parse_profiles(f"{profile}=1")[0].profile.unit(0)
    objects = Objects(
        nodes=(made.node,),
        slices=tuple(made.slices),
        classes=(convert(DeviceClass, {"metadata": {"name": "gpu"}, "spec": {}}),),
    )
    asked = claim("c")
    if profile == "example-shared":
        spec = asks(1)
        spec["devices"]["requests"][0]["exactly"]["capacity"] = {"requests": {"memory": "30Gi"}}
        asked = convert(
            ResourceClaim, {"metadata": {"name": "c", "namespace": "default"}, "spec": spec}
        )
    found = capacity(World(objects, NOW), asked)
    assert found.now == found.empty > 1
    assert found.runs_out is not None
    assert found.runs_out.kind == "never"
    assert "taken by copies" in found.runs_out.sentence
    assert "in use" not in found.runs_out.sentence
    assert "blocked" not in found.runs_out.sentence


def test_nodes_that_take_no_pods_are_left_out() -> None:
    """Cordoned and tainted nodes count for nothing, and are told."""
    nodes = (node("b", spec={"unschedulable": True}), node("c", spec=TAINTED))
    world = cluster({"a": 2}, nodes=nodes, slices=(piece("b", 8), piece("c", 8)))
    found = capacity(world, claim("c"))
    assert (found.now, found.empty, sum(found.closed.values())) == (2, 2, 2)
    assert found.closed["cordoned"] == 1


def test_devices_that_several_nodes_reach_count_once() -> None:
    """Three devices for all nodes are three, however many nodes there are."""
    world = cluster({"a": 0, "b": 0, "c": 1}, slices=(piece("fabric", 3, allNodes=True),))
    assert capacity(world, claim("c")).now == 4


def test_a_claim_that_takes_nothing_fits_for_ever() -> None:
    """Admin access leaves everything as it is."""
    spec: dict[str, Any] = asks(1)
    spec["devices"]["requests"][0]["exactly"]["adminAccess"] = True
    metadata = {"name": "c", "namespace": "default", "uid": "c"}
    found = capacity(
        cluster({"a": 1}), convert(ResourceClaim, {"metadata": metadata, "spec": spec})
    )
    assert (found.unbounded, found.now) == (True, MOST_ON_A_NODE)


def test_a_class_that_does_not_exist_is_the_answer() -> None:
    """Nothing fits, and it is said why."""
    spec = asks(1)
    spec["devices"]["requests"][0]["exactly"]["deviceClassName"] = "gpuu"
    metadata = {"name": "c", "namespace": "default", "uid": "c"}
    found = capacity(
        cluster({"a": 1}), convert(ResourceClaim, {"metadata": metadata, "spec": spec})
    )
    assert (found.now, found.empty) == (0, 0)
    assert found.runs_out is not None
    assert found.runs_out.reason.value == "ClassMissing"


def test_the_world_is_left_as_it_is() -> None:
    """Asked twice, the answer is the same."""
    world = cluster({"a": 5, "b": 2}, claims=(held("x", "a", "gpu-1"),))
    assert capacity(world, claim("c", 2)) == capacity(world, claim("c", 2))


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 5), min_size=1),
    st.sampled_from(("one", "two", "three")),
    st.integers(0, 3),
)
def test_it_is_what_a_plan_of_many_copies_comes_to(
    devices: dict[str, int], template: str, shared: int
) -> None:
    """As many copies fit as pods with the same claim, and nothing else, can be planned."""
    slices = (piece("fabric", shared, allNodes=True),) if shared else ()
    world = cluster(devices, slices=slices)
    count = ("one", "two", "three").index(template) + 1
    asked = wanted(workload("ReplicaSet", "r", template, {"cpu": "0"}, replicas=30))
    fitting = sum(planned.waits is None for planned in plan(world, asked).pods)
    assert capacity(world, claim("c", count)).now == fitting
