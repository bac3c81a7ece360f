"""The nearest miss: which node came closest, what would do there, and what is in the way of the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from explain.town import NIC, ROOT, Town
from oracle.build import (
    capacity,
    claim,
    device,
    everything,
    exactly,
    partitioned,
    shared,
    taint,
)


@dataclass(frozen=True, slots=True)
class Case:
    """A cluster, and what is said of the node that came closest. Devices are named without driver."""

    name: str
    build: Callable[[], Town]
    node: str
    missing: int
    would_do: list[str] = field(default_factory=list)
    blocked: dict[str, str] = field(default_factory=dict)
    says: str = ""


def fewest_missing() -> Town:
    town = Town().node("n0", 4).node("n1", 4).node("n2", 4)
    town.holds("a", "n0", "d0", "d1", "d2").holds("b", "n1", "d0", "d1").holds(
        "c", "n2", "d0", "d1", "d3"
    )
    return town.wants(claim(exactly("gpus", 3)))


def equal_ones() -> Town:
    return Town().node("n1", 1).node("n0", 1).wants(claim(exactly("gpus", 2)))


def could_one_day() -> Town:
    """A small node with all free is further away than a large one in use."""
    town = Town().node("small", 3).node("large", 4).holds("a", "large", "d0", "d1", "d2")
    return town.wants(claim(exactly("gpus", 4)))


def cordoned() -> Town:
    town = Town().node("bare").node("n0", 2, unschedulable=True)
    return town.wants(claim(exactly("gpus", 2)))


def open_before_cordoned() -> Town:
    town = Town().node("closed", 2, unschedulable=True).node("open", 2).holds("a", "open", "d0")
    return town.wants(claim(exactly("gpus", 2)))


def furthest_test() -> Town:
    """Devices of the wrong class are further away than the right ones in use."""
    town = Town().node("n0", 3, driver=NIC).node("n1", 1).holds("a", "n1", "d0")
    return town.wants(claim(exactly("gpus", 1)))


def tainted() -> Town:
    town = Town().node("n0", ["d0", device("d1", taints=[taint("xid", "79")])])
    return town.wants(claim(exactly("gpus", 2)))


def short_of_capacity() -> Town:
    town = Town().node("n0", [shared("d0", {"memory": capacity("80Gi")})])
    town.holds("a", "n0", shares={"d0": "50Gi"})
    return town.wants(claim(exactly("gpus", 1, asks={"memory": "60Gi"})))


def never_the_capacity() -> Town:
    town = Town().node("n0", [device("d0", capacity={"memory": capacity("40Gi")}), "d1"])
    return town.wants(claim(exactly("gpus", 1, asks={"memory": "60Gi"})))


def short_of_counters() -> Town:
    parts = [device(f"d{i}", spends={"card": {"units": 3}}) for i in range(2)]
    town = Town().node("n0")
    town.slices += partitioned(parts, {"card": {"units": 4}}, pool="n0", nodeName="n0")
    return town.holds("a", "n0", "d0").wants(claim(exactly("gpus", 1)))


def misaligned() -> Town:
    town = Town().rooted("n0", "r0", "r0", "r1", "r1", "r1").holds("a", "n0", "d4")
    return town.wants(claim(exactly("gpus", 3), match=[ROOT]))


def root_shared_with_a_nic() -> Town:
    town = Town().rooted("n0", "r0", "r0", "r1", "r1")
    nics = [device("nic0", attrs={ROOT: "r1"}), device("nic1", attrs={ROOT: "r0"})]
    town.slice(nics, driver=NIC, pool="nics", nodeName="n0")
    town.holds("a", "n0", "d2").holds("b", "nics", "nic1", driver=NIC)
    return town.wants(claim(exactly("gpus", 2), exactly("nic", 1, cls="nic"), match=[ROOT]))


def all_of_them() -> Town:
    town = Town().node("n0", 3).holds("a", "n0", "d1")
    return town.wants(claim(everything("gpus")))


def competing() -> Town:
    return Town().node("n0", 3).wants(claim(exactly("x", 2), exactly("y", 2)))


def least_short() -> Town:
    town = Town().node("n0").node("n1").node("tiny", allocatable={"cpu": "5"})
    return town.runs("a", "n0", cpu=6).runs("b", "n1", cpu=4).wants(cpu=6)


def some_before_none() -> Town:
    """A node with some of the right devices is nearer than one with plenty that no selector wants."""
    town = Town().node("many", 8).node("few", [device("d0", attrs={"model": "a"})])
    only = 'device.attributes["gpu.example.com"].model == "a"'
    return town.wants(claim(exactly("gpus", 2, select=[only])))


def tolerated_nowhere() -> Town:
    town = Town().node("n0", taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])
    return town.wants()


A, B = "default/a-claim (a)", "default/b-claim (b)"
CASES = [
    Case("fewest missing", fewest_missing, "n1", 1, ["n1/d2", "n1/d3"],
         {"n1/d0": f"in use by {B}", "n1/d1": f"in use by {B}"}, "2 of 3 devices (2 in use)"),
    Case("the first of equals", equal_ones, "n1", 1, ["n1/d0"],
         says="finds 1 of 2 devices."),
    Case("could one day", could_one_day, "large", 3, ["large/d3"],
         {f"large/d{i}": f"in use by {A}" for i in range(3)}, "1 of 4 devices (3 in use)"),
    Case("cordoned, but with the devices", cordoned, "n0", 0, ["n0/d0", "n0/d1"],
         says="Node n0: it is cordoned; its devices would do."),
    Case("open before cordoned", open_before_cordoned, "open", 1, ["open/d1"],
         {"open/d0": f"in use by {A}"}),
    Case("furthest test", furthest_test, "n1", 1, [], {"n1/d0": f"in use by {A}"}),
    Case("tainted", tainted, "n0", 1, ["n0/d0"], {"n0/d1": "tainted xid=79:NoSchedule"},
         "(1 tainted)"),
    Case("short of capacity", short_of_capacity, "n0", 1, [],
         {"n0/d0": "memory: 60Gi wanted, 30Gi left"}),
    Case("never the capacity", never_the_capacity, "n0", 1, [],
         {"n0/d0": "memory: 60Gi wanted, 40Gi in total", "n0/d1": "has no memory"}),
    Case("short of counters", short_of_counters, "n0", 1, [],
         {"n0/d0": f"in use by {A}", "n0/d1": f"card/units: 3 wanted, 1 left ({A})"}),
    Case("misaligned", misaligned, "n0", 1, ["n0/d0", "n0/d1"],
         {"n0/d2": f"{ROOT} is r1", "n0/d3": f"{ROOT} is r1", "n0/d4": f"in use by {A}"},
         f"2 of 3 devices (1 in use, 2 apart in {ROOT})"),
    Case("a root shared with a NIC", root_shared_with_a_nic, "n0", 1,
         ["n0/d0", "n0/d1"],
         {"n0/d2": f"in use by {A}", "n0/d3": f"{ROOT} is r1", "nics/nic0": f"{ROOT} is r1",
          "nics/nic1": f"in use by {B}"}, "request nic of claim c2 finds 0 of 1 device"),
    Case("all of them", all_of_them, "n0", 1, ["n0/d0", "n0/d2"], {"n0/d1": f"in use by {A}"},
         "2 of all 3 devices"),
    Case("competing", competing, "n0", 1, ["n0/d0", "n0/d1", "n0/d2"],
         says="not all of them together; 1 more device would be needed"),
    Case("least short of processors", least_short, "n1", 0, says="6 cpu wanted, 4 free"),
    Case("some before none", some_before_none, "few", 1, ["few/d0"],
         says="finds 1 of 2 devices."),
    Case("a taint of the node", tolerated_nowhere, "n0", 0,
         says="the pod does not tolerate its taint k=v:NoSchedule"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_nearest_miss(case: Case) -> None:
    """The node that came closest is named, with the devices that would do and what is in the way of others."""
    found = case.build().explain().nearest
    assert found is not None
    assert (found.node, found.missing) == (case.node, case.missing)
    assert [device.partition("/")[2] for device in found.devices] == case.would_do
    blocked = {device.partition("/")[2]: why for device, why in found.blocked.items()}
    assert blocked == case.blocked
    assert case.says in found.sentence


def test_a_cluster_without_nodes_has_no_nearest_one() -> None:
    """Nothing is said of nodes where there are none."""
    assert Town().wants(claim(exactly("gpus", 1))).explain().nearest is None
