"""The funnel: how many nodes and devices are left after each test, on clusters where that can be counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from drayman.explain.answer import Explanation, Funnel
from explain.town import GPU, NIC, ROOT, Town
from oracle.build import (
    capacity,
    claim,
    device,
    everything,
    exactly,
    first_available,
    partitioned,
    shared,
    taint,
    toleration,
)

Steps = list[tuple[str, int, int]]
MODEL_A = f'device.attributes["{GPU}"].model == "a"'
BIG = f'device.attributes["{GPU}"].size > 4'


def steps_of(funnel: Funnel) -> Steps:
    return [(step.test, step.nodes, step.devices) for step in funnel.steps]


def funnels_of(found: Explanation) -> dict[str, Steps]:
    return {funnel.request: steps_of(funnel) for funnel in found.funnels}


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster, and what is left for each request."""

    name: str
    build: Callable[[], Town]
    want: dict[str, Steps]
    fit: Steps = field(default_factory=list)


def two_of_one() -> Town:
    return Town().node("n0", 1).node("n1", 1).node("bare").wants(claim(exactly("gpus", 2)))


def in_use() -> Town:
    town = Town().node("n0", 4).node("n1", 2)
    return town.holds("a", "n0", "d0", "d1", "d2").wants(claim(exactly("gpus", 3)))


def selectors() -> Town:
    devices = [
        device("d0", attrs={"model": "a", "size": 8}),
        device("d1", attrs={"model": "a", "size": 2}),
        device("d2", attrs={"model": "b", "size": 8}),
        device("d3"),
    ]
    town = Town().node("n0", devices).node("n1", devices[1:]).node("n2", 2, driver=NIC)
    return town.wants(claim(exactly("gpus", 2, select=[MODEL_A, BIG])))


def tainted() -> Town:
    broken = [taint("xid", "79"), taint("burnt", effect="NoExecute")]
    town = Town().node("n0", ["d0", device("d1", taints=broken)])
    town.node("n1", [device("d0", taints=broken[:1]), device("d1", taints=broken[:1])])
    return town.wants(claim(exactly("gpus", 2, tolerates=[toleration("burnt")])))


def capacities() -> Town:
    town = Town().node("n0", [shared("d0", {"memory": capacity("40Gi")})])
    town.node("n1", [shared("d0", {"memory": capacity("80Gi")}), "d1"])
    town.holds("a", "n1", shares={"d0": "50Gi"})
    return town.wants(claim(exactly("gpus", 1, asks={"memory": "60Gi"})))


def counters() -> Town:
    parts = [device(f"d{i}", spends={"card": {"units": 3}}) for i in range(3)]
    town = Town().node("n0")
    town.slices += partitioned(parts, {"card": {"units": 4}}, pool="n0", nodeName="n0")
    return town.holds("a", "n0", "d0").wants(claim(exactly("gpus", 1)))


def matching() -> Town:
    town = Town().rooted("n0", "r0", "r0", "r1", "r1").rooted("n1", "r0", "r0", "r0")
    town.node("n2", ["d0", "d1", "d2"]).holds("a", "n1", "d0")
    return town.wants(claim(exactly("gpus", 3), match=[ROOT]))


def across_requests() -> Town:
    """Two GPUs and a NIC at the same root, where the root with free GPUs has no NIC."""
    town = Town().rooted("n0", "r0", "r0", "r1", "r1")
    town.slice([device("nic0", attrs={ROOT: "r1"})], driver=NIC, pool="n0-nics", nodeName="n0")
    town.holds("a", "n0", "d2")
    return town.wants(claim(exactly("gpus", 2), exactly("nic", 1, cls="nic"), match=[ROOT]))


def different() -> Town:
    town = Town().rooted("n0", "r0", "r0", "r1")
    return town.wants(claim(exactly("gpus", 3), distinct=[ROOT]))


def all_devices() -> Town:
    town = Town().node("n0", 3).node("n1", 2).holds("a", "n0", "d0").holds("b", "n1", "d1")
    return town.wants(claim(everything("gpus")))


def alternatives() -> Town:
    town = Town().node("n0", 2).node("n1", 2, driver=NIC)
    return town.wants(
        claim(first_available("any", exactly("gpu", 3), exactly("nic", 4, cls="nic")))
    )


def competing() -> Town:
    return Town().node("n0", 3).wants(claim(exactly("x", 2), exactly("y", 2)))


def apart() -> Town:
    """Each request finds a node, but not the same one."""
    town = Town().node("n0", 2).node("n1", 1, driver=NIC)
    return town.wants(claim(exactly("x", 2), exactly("y", 1, cls="nic")))


def seen_by_all() -> Town:
    town = Town().node("n0", 1).node("n1").node("n2")
    town.slice(["f0", "f1", "f2"], pool="fabric", allNodes=True)
    return town.wants(claim(exactly("gpus", 5)))


def missing_class() -> Town:
    return Town().node("n0", 2).wants(claim(exactly("gpus", 1, cls="nosuch")))


def extended_resource() -> Town:
    """A resource that devices stand in for, but on nodes that offer it themselves."""
    town = Town().node("n0", 1).node("n1", 2)
    town.node("plugin", allocatable={"example.com/gpu": "1"})
    town.classes[0]["spec"]["extendedResourceName"] = "example.com/gpu"
    asked = {"requests": {"example.com/gpu": "3"}, "limits": {"example.com/gpu": "3"}}
    return town.wants(containers=[{"name": "c", "resources": asked}])


def prioritized_lists_off() -> Town:
    town = Town(off=["prioritized_list"]).node("n0", 2)
    return town.wants(claim(first_available("any", exactly("gpu", 1))))


def partitions_off() -> Town:
    town = Town(off=["partitionable_devices"]).node("n0")
    parts = [device("d0", spends={"card": {"units": 3}}), device("d1")]
    town.slices += partitioned(parts, {"card": {"units": 4}}, pool="n0", nodeName="n0")
    return town.wants(claim(exactly("gpus", 2)))


def broken_pool() -> Town:
    """All devices of a node cannot be had while nobody knows which they are."""
    town = Town().node("n0", 2)
    return town.slice(["x"], pool="half", of=2, nodeName="n0").wants(claim(everything("gpus")))


def node_fit() -> Town:
    town = Town().node("n0", 1, unschedulable=True).node("n1", 2, labels={"zone": "a"})
    town.node("n2", 3, taints=[{"key": "k", "effect": "NoSchedule"}]).node("n3", 4)
    town.node("n4", 5, labels={"zone": "a"}, allocatable={"cpu": "1"})
    return town.wants(claim(exactly("gpus", 3)), nodeSelector={"zone": "a"}, cpu=2)


CASES = [
    Case("count", two_of_one, {"gpus": [
        ("node fit", 3, 2), ("class", 2, 2), ("free", 2, 2), ("taints", 2, 2), ("count", 0, 0)]}),
    Case("in use", in_use, {"gpus": [
        ("node fit", 2, 6), ("class", 2, 6), ("free", 2, 3), ("taints", 2, 3), ("count", 0, 0)]}),
    Case("class and each selector", selectors, {"gpus": [
        ("node fit", 3, 9), ("class", 2, 7), ("selector", 2, 3), ("selector", 1, 1), ("free", 1, 1),
        ("taints", 1, 1), ("count", 0, 0)]}),
    Case("taints", tainted, {"gpus": [
        ("node fit", 2, 4), ("class", 2, 4), ("free", 2, 4), ("taints", 1, 1), ("count", 0, 0)]}),
    Case("capacity", capacities, {"gpus": [
        ("node fit", 2, 3), ("class", 2, 3), ("free", 2, 3), ("taints", 2, 3), ("capacity", 0, 0),
        ("count", 0, 0)]}),
    Case("counters", counters, {"gpus": [
        ("node fit", 1, 3), ("class", 1, 3), ("free", 1, 2), ("taints", 1, 2), ("counters", 0, 0),
        ("count", 0, 0)]}),
    Case("matching attribute", matching, {"gpus": [
        ("node fit", 3, 10), ("class", 3, 10), ("free", 3, 9), ("taints", 3, 9),
        ("constraint", 1, 2), ("count", 0, 0)]}),
    Case("matching across requests", across_requests, {
        "gpus": [("node fit", 1, 5), ("class", 1, 4), ("free", 1, 3), ("taints", 1, 3),
                 ("constraint", 0, 0), ("count", 0, 0)],
        "nic": [("node fit", 1, 5), ("class", 1, 1), ("free", 1, 1), ("taints", 1, 1),
                ("constraint", 0, 0), ("count", 0, 0)]}),
    Case("distinct attribute", different, {"gpus": [
        ("node fit", 1, 3), ("class", 1, 3), ("free", 1, 3), ("taints", 1, 3),
        ("constraint", 0, 0), ("count", 0, 0)]}),
    Case("all devices", all_devices, {"gpus": [
        ("node fit", 2, 5), ("class", 2, 5), ("free", 2, 3), ("taints", 2, 3), ("count", 0, 0)]}),
    Case("alternatives", alternatives, {
        "any/gpu": [("node fit", 2, 4), ("class", 1, 2), ("free", 1, 2), ("taints", 1, 2),
                    ("count", 0, 0)],
        "any/nic": [("node fit", 2, 4), ("class", 1, 2), ("free", 1, 2), ("taints", 1, 2),
                    ("count", 0, 0)]}),
    Case("requests that compete", competing, {
        name: [("node fit", 1, 3), ("class", 1, 3), ("free", 1, 3), ("taints", 1, 3),
               ("count", 1, 3), ("together", 0, 0)] for name in ("x", "y")}),
    Case("requests on different nodes", apart, {
        "x": [("node fit", 2, 3), ("class", 1, 2), ("free", 1, 2), ("taints", 1, 2),
              ("count", 1, 2), ("together", 0, 0)],
        "y": [("node fit", 2, 3), ("class", 1, 1), ("free", 1, 1), ("taints", 1, 1),
              ("count", 1, 1), ("together", 0, 0)]}),
    Case("devices of all nodes count once", seen_by_all, {"gpus": [
        ("node fit", 3, 4), ("class", 3, 4), ("free", 3, 4), ("taints", 3, 4), ("count", 0, 0)]}),
    Case("no such class", missing_class, {"gpus": [
        ("node fit", 1, 2), ("class", 0, 0), ("free", 0, 0), ("taints", 0, 0), ("count", 0, 0)]}),
    Case("extended resources", extended_resource, {"container-0-request-0": [
        ("node fit", 2, 3), ("class", 2, 3), ("free", 2, 3), ("taints", 2, 3), ("count", 0, 0)]},
        fit=[("resources", 2, 3)]),
    Case("a feature of the request", prioritized_lists_off, {"any/gpu": [
        ("node fit", 1, 2), ("feature", 0, 0), ("class", 0, 0), ("free", 0, 0), ("taints", 0, 0),
        ("count", 0, 0)]}),
    Case("a feature of the devices", partitions_off, {"gpus": [
        ("node fit", 1, 2), ("class", 1, 2), ("free", 1, 2), ("taints", 1, 2), ("feature", 1, 1),
        ("count", 0, 0)]}),
    Case("an incomplete pool", broken_pool, {"gpus": [
        ("node fit", 1, 2), ("class", 1, 2), ("free", 1, 2), ("taints", 1, 2), ("count", 0, 0)]}),
    Case("node fit", node_fit, {"gpus": [
        ("node fit", 1, 2), ("class", 1, 2), ("free", 1, 2), ("taints", 1, 2), ("count", 0, 0)]},
        fit=[("cordon", 4, 14), ("node taints", 3, 11), ("node selector", 2, 7),
             ("resources", 1, 2)]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_each_test_leaves(case: Case) -> None:
    """Nodes and devices are counted after each test, for each request and alternative."""
    found = case.build().explain()
    assert funnels_of(found) == case.want
    assert [(step.test, step.nodes, step.devices) for step in found.node_fit] == case.fit


def test_lost_devices_are_told_by_taint() -> None:
    """Where taints take devices away, the step says which; those that are tolerated are not named."""
    steps = {step.test: step for step in tainted().explain().funnels[0].steps}
    assert steps["taints"].lost == {"xid=79:NoSchedule": 3}


def test_lost_devices_that_several_nodes_see_are_told_once() -> None:
    """Devices of all nodes count once among the lost ones too, also where nodes have others of their own."""
    town = Town().node("n0", 1).node("n1", 1).node("n2")
    broken = device("f0", taints=[taint("broken")])
    town.slice([broken, "f1"], pool="fabric", allNodes=True)
    steps = {s.test: s for s in town.wants(claim(exactly("gpus", 5))).explain().funnels[0].steps}
    assert (steps["taints"].devices, steps["taints"].lost) == (3, {"broken:NoSchedule": 1})


def test_devices_on_which_a_selector_fails_are_told_apart() -> None:
    """A device without the attribute is lost because the selector fails on it, not because it says no."""
    first, second = [s for s in selectors().explain().funnels[0].steps if s.test == "selector"]
    assert (first.detail, second.detail) == (MODEL_A, BIG)
    assert first.lost == {"selector fails": 2}
    assert second.lost == {}


def test_what_keeps_all_devices_from_being_had_is_told() -> None:
    """A pool that is not whole is in the way of a request for all devices, and is named."""
    found = broken_pool().explain()
    reason = "pool gpu.example.com/half is incomplete"
    assert found.funnels[0].steps[-1].lost == {reason: 2}
    assert found.nearest is not None
    assert found.nearest.sentence.endswith(f"finds 2 of all 2 devices, but {reason}.")


def test_nodes_are_told_by_what_they_lack() -> None:
    """A node can be short of several resources, and is counted for each."""
    town = Town().node("n0").node("n1", allocatable={"memory": "1Gi"})
    found = town.wants(cpu=9, memory="2Gi").explain()
    (step,) = found.node_fit
    assert (step.test, step.nodes, step.lost) == ("resources", 0, {"cpu": 2, "memory": 1})


def test_a_pod_that_fits_has_funnels_that_end_with_nodes() -> None:
    """The funnel of something that fits is there too, and nothing is lost at its end."""
    found = Town().node("n0", 2).node("n1", 1).wants(claim(exactly("gpus", 2))).explain()
    assert found.headline.reason.value == "Fits"
    assert funnels_of(found)["gpus"][-1] == ("count", 1, 2)


def test_requests_for_all_devices_want_no_number() -> None:
    """Mode All is told by the number 0."""
    (funnel,) = all_devices().explain().funnels
    assert funnel.wanted == 0
