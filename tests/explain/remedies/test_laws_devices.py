"""What holds for remedies whatever devices there are and whatever claims ask for: partitions, shares, lists, broken pools."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import event, given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from drayman.inventory import Features
from drayman.placement.decision.deciding import Decider
from drayman.placement.placing import Found
from drayman.placement.world import Objects, World
from explain.remedies.cluster import NOW, checked_in
from oracle.nodes import JsonObject
from oracle.strategies import problems
from oracle.strategies_split import split_problems


def world_of(problem: JsonObject) -> World:
    """The node of a problem in a cluster of its own: what is in use is held by claims, a pod asks for the rest."""
    node = {**problem["node"], "status": {"allocatable": {"pods": "10"}}}
    claims = [convert(ResourceClaim, item) for item in (*_held(problem), *_asked(problem))]
    entries = [
        {"name": f"c{number}", "resourceClaimName": item["metadata"]["name"]}
        for number, item in enumerate(problem["claims"])
    ]
    metadata = {"name": "waiting", "namespace": "default", "uid": "pod-waiting"}
    pod = {"metadata": metadata, "spec": {"resourceClaims": entries}}
    objects = Objects(
        nodes=(convert(Node, node),),
        slices=tuple(convert(ResourceSlice, item) for item in problem["slices"]),
        classes=tuple(convert(DeviceClass, item) for item in problem["classes"]),
        claims=tuple(claims),
        pods=(convert(Pod, pod),),
    )
    return World(objects, NOW, features=Features.from_gates(problem["features"]))


def _asked(problem: JsonObject) -> Iterator[JsonObject]:
    for item in problem["claims"]:
        name = item["metadata"]["name"]
        yield {**item, "metadata": {**item["metadata"], "uid": name, "resourceVersion": "1"}}


def _held(problem: JsonObject) -> Iterator[JsonObject]:
    """A claim for each device, or share of one, that is in use."""
    used = problem["allocated"]
    results = [dict(entry) for entry in used.get("devices") or ()]
    results += [dict(entry) for entry in used.get("sharedDevices") or ()]
    sums = {
        (entry["driver"], entry["pool"], entry["device"]): entry["consumedCapacity"]
        for entry in used.get("aggregatedCapacity") or ()
    }
    for number, result in enumerate(results):
        # The sum over the shares is known, not who has how much: the first share has it all.
        key = (result["driver"], result["pool"], result["device"])
        if "shareID" in result and key in sums:
            result["consumedCapacity"] = sums.pop(key)
        name = f"held-{number}"
        yield {
            "metadata": {
                "name": name, "namespace": "default", "uid": name, "resourceVersion": "1"
            },
            "status": {"allocation": {"devices": {"results": [{"request": "r", **result}]}}},
        }  # fmt: skip


@given(st.one_of(problems(), split_problems()))
def test_every_remedy_helps(problem: JsonObject) -> None:
    """Whatever is named makes the claims fit, when it is done."""
    world = world_of(problem)
    round_, pod = Decider(world.state).round(NOW), world.pod("default", "waiting")
    assert pod is not None
    if not isinstance(round_.find(round_.demand(pod)), Found):
        event(f"{len(checked_in(world))} remedies")
