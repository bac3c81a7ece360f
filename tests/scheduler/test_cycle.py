"""Decisions about pods that share claims which have devices already."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.allocator import Policy
from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import DeviceClass, ResourceClaim, ResourceSlice
from drayman.inventory.features import Features
from drayman.placement.state import ClusterState
from drayman.scheduler.cycle import MAKING_S, PATIENCE_S, Cycle, Decisions
from drayman.scheduler.queue import Queue
from oracle.build import device, device_class, piece

GPU = "gpu.example.com"
ALLOCATABLE = {"cpu": "8", "memory": "8Gi", "pods": "10"}


class Desk:
    """A cluster with nodes `n0` and `n1`, and a scheduler that decides about what is in line."""

    def __init__(self, *slices: dict[str, Any]) -> None:
        self.now = 0.0
        self.queue = Queue()
        self.state = ClusterState(Features(), self.queue.wake)
        self.cycle = Cycle(
            self.state,
            self.queue,
            lambda: self.now,
            policy=Policy.BEST,
            binding_timeout_s=600.0,
            may_preempt=lambda pod: (pod.spec.priority or 0) > 0,
        )
        self.versions = 0
        for name in ("n0", "n1"):
            node = {"metadata": {"name": name}, "status": {"allocatable": ALLOCATABLE}}
            self.state.set_node(convert(Node, node))
        self.state.set_class(convert(DeviceClass, device_class("gpu")))
        for item in slices:
            self.state.set_slice(convert(ResourceSlice, item))

    def claim(self, name: str, count: int = 1, *expressions: str, **status: Any) -> None:
        self.versions += 1
        wanted: dict[str, Any] = {
            "deviceClassName": "gpu",
            "allocationMode": "ExactCount",
            "count": count,
            "selectors": [{"cel": {"expression": each}} for each in expressions],
        }
        metadata = {"name": name, "namespace": "default", "uid": name}
        value = {
            "metadata": {**metadata, "resourceVersion": str(self.versions)},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": wanted}]}},
            "status": status,
        }
        self.state.set_claim(convert(ResourceClaim, value))

    def pod(self, name: str, *claims: str, **spec: Any) -> None:
        metadata = {"name": name, "namespace": "default", "uid": name}
        spec = {"resourceClaims": [by_name(claim) for claim in claims], **spec}
        self.queue.add(convert(Pod, {"metadata": metadata, "spec": spec}))

    def decide(self) -> Decisions:
        return self.cycle.decide(100)

    def settle(self, decided: Decisions) -> None:
        """The decisions are written."""
        for placement in decided.placements:
            for claim in placement.claims:
                self.state.forget_claim(claim)
            self.cycle.retrying.settled(placement.claims)


def by_name(claim: str) -> dict[str, str]:
    return {"name": claim, "resourceClaimName": claim}


def held(pool: str, name: str, *, node: str = "", **result: Any) -> dict[str, Any]:
    """The status of a claim that has a device; on a node, or anywhere."""
    found = {"request": "r", "driver": GPU, "pool": pool, "device": name, **result}
    allocation: dict[str, Any] = {"devices": {"results": [found]}}
    if node:
        fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"allocation": allocation}


def names(decided: Decisions) -> tuple[list[str], list[str]]:
    """Who is placed and who is refused."""
    placed = [placement.pod.metadata.name for placement in decided.placements]
    return placed, [refused.entry.pod.metadata.name for refused in decided.refused]


def test_pods_tied_to_a_node_do_not_answer_for_each_other() -> None:
    """One wants too much beside a claim that ties it to a node; another, tied to it as well, wants less and gets it."""
    at = Desk(piece(["d0", "d1"], pool="n0", name="n0", nodeName="n0"))
    at.claim("shared", **held("n0", "d0", node="n0"))
    at.claim("much", 2)
    at.claim("little")
    at.pod("greedy", "shared", "much")
    at.pod("modest", "shared", "little")
    assert names(at.decide()) == (["modest"], ["greedy"])


def test_who_may_ask_others_to_go_is_the_last_of_a_round() -> None:
    """Those behind it in line are decided about when it is clear what is kept for it."""
    at = Desk(piece(["d0"], pool="n0", name="n0", nodeName="n0"))
    for name, count in (("two", 2), ("three", 3), ("one", 1)):
        at.claim(name, count)
    at.pod("important", "two", priority=9)
    at.pod("so-so", "three", priority=5)
    at.pod("modest", "one")
    assert names(at.decide()) == ([], ["important"])
    assert names(at.decide()) == ([], ["so-so"])
    assert names(at.decide()) == (["modest"], [])


def test_a_claim_that_fails_is_not_joined_any_more() -> None:
    """What was known about pods that join a claim does not hold for those that come after its devices have failed."""
    slow = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"]}
    at = Desk(piece([device("d0", **slow)], pool="net", name="net", allNodes=True))
    status = held("net", "d0", **slow)
    said = {"driver": GPU, "pool": "net", "device": "d0"}
    ready = {**said, "conditions": [{"type": "Ready", "status": "True"}]}
    failed = {**said, "conditions": [{"type": "Failed", "status": "True"}]}
    at.claim("shared", **status, devices=[ready])
    at.pod("first", "shared")
    decided = at.decide()
    assert names(decided) == (["first"], [])
    at.settle(decided)
    at.claim("shared", **status, devices=[failed])
    at.pod("second", "shared")
    assert names(at.decide()) == ([], ["second"])


def test_pods_of_a_group_depend_on_the_write_that_reserves_for_all() -> None:
    """Those that find their claim reserved by the same round are bound with it, not before it."""
    at = Desk(piece(["d0"], pool="n0", name="n0", nodeName="n0"))
    at.claim("shared")
    metadata = {"name": "g", "namespace": "default", "uid": "g-uid"}
    group = {"metadata": metadata, "spec": {"resourceClaims": [by_name("shared")]}}
    at.state.gangs.set_group(convert(PodGroup, group))
    for name in ("first", "second"):
        at.pod(name, "shared", schedulingGroup={"podGroupName": "g"})
    decided = at.decide()
    assert names(decided) == (["first", "second"], [])
    for placement in decided.placements:
        (claim,) = placement.claims
        assert [user.uid for user in claim.status.reserved_for] == ["g-uid"]


@pytest.mark.parametrize(
    ("entry", "patience_s"),
    [
        ({"name": "gpu", "resourceClaimTemplateName": "t"}, MAKING_S),
        ({"name": "gpu", "resourceClaimName": "forgotten"}, PATIENCE_S),
    ],
    ids=["a claim that is being made", "a claim that somebody forgot"],
)
def test_a_claim_in_the_making_is_no_reason_to_warn_soon(
    entry: dict[str, str], patience_s: float
) -> None:
    """A pod whose claim its controller has still to make is left in peace much longer than one that names no claim there is."""
    assert MAKING_S > PATIENCE_S
    at = Desk()
    at.pod("p", resourceClaims=[entry])
    (refused,) = at.decide().refused
    assert refused.patience_s == patience_s
