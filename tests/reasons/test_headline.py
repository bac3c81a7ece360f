"""The reason that is told first, for small clusters in which one thing is wrong, or several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from drayman.explain.pod import explain_pod
from drayman.placement.decision.deciding import Decider
from drayman.placement.placing import NotFound
from drayman.reasons.headline import headline
from drayman.reasons.reason import Headline
from drayman.reasons.waiting import demand_of
from explain.scenarios.scene import Scene
from explain.town import ROOT, Town
from oracle.build import capacity, claim, device, everything, exactly, partitioned, shared, taint
from oracle.selectors import MODEL_A, MODEL_A_GUARDED

TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
ONE = claim(exactly("r"))
TWO = claim(exactly("r", 2))
ALIGNED = claim(exactly("r", 2), match=[ROOT])


def rule(town: Town) -> Town:
    """All devices of the GPU driver are tainted."""
    spec = {
        "deviceSelector": {"driver": "gpu.example.com"},
        "taint": taint("health", "bad", "NoSchedule"),
    }
    town.rules.append({"metadata": {"name": "rule"}, "spec": spec})
    return town


def parted(*, held: str = "") -> Town:
    """A node with a card of two units, and three partitions of one unit each."""
    town = Town().node("a")
    parts = [device(f"p{n}", spends={"card": {"units": 1}}) for n in range(3)]
    town.slices += partitioned(parts, {"card": {"units": 2}}, pool="a", nodeName="a")
    if held:
        town.holds("first", "a", held)
    return town


def near(kind: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


CASES: dict[str, tuple[Callable[[], Town], str, str]] = {
    "no nodes": (lambda: Town().wants(ONE), "NoNodes (never)", "no nodes"),
    "in use": (
        lambda: Town().node("a", 1).holds("x", "a", "d0").wants(ONE),
        "DevicesInUse (not now)",
        "Claim c1, request r wants 1 device",
    ),
    "in use on one node, none on another": (
        lambda: Town().node("a", 1).node("b").holds("x", "a", "d0").wants(ONE),
        "DevicesInUse (not now)",
        "in use",
    ),
    "some left, not enough": (
        lambda: Town().node("a", 2).holds("x", "a", "d0").wants(TWO),
        "DevicesInUse (not now)",
        "of 2 that match, 1 is in use, and 1 is left",
    ),
    "scattered": (
        lambda: (
            Town().node("a", 2).node("b", 2).holds("x", "a", "d0").holds("y", "b", "d0").wants(TWO)
        ),
        "Fragmented (not here)",
        "2 that match are free, but on 2 nodes, with at most 1 on one",
    ),
    "misaligned": (
        lambda: (
            Town().rooted("a", "r1", "r1", "r2", "r2").holds("x", "a", "d0", "d2").wants(ALIGNED)
        ),
        "Misaligned (not here)",
        f"2 are free on node a, but no two agree in {ROOT}",
    ),
    "never aligned": (
        lambda: Town().rooted("a", "r1", "r2").wants(ALIGNED),
        "ConstraintUnmeetable (never)",
        f"no two agree in {ROOT}",
    ),
    "competing": (
        lambda: (
            Town().node("a", 3).holds("x", "a", "d0").wants(claim(exactly("r", 2), exactly("s", 1)))
        ),
        "RequestsCompete (not here)",
        "(r, s) could each be served on node a",
    ),
    "in conflict": (
        lambda: Town().node("a", 2).wants(claim(exactly("r", 2), exactly("s", 1))),
        "RequestsConflict (never)",
        "no node serves all of them together",
    ),
    "too many": (lambda: Town().node("a", 1).wants(TWO), "CountTooHigh (never)", "more than 1"),
    "more than a claim may have": (
        lambda: Town().node("a", 40).wants(claim(exactly("r", 33))),
        "ClaimTooLarge (never)",
        "33 devices",
    ),
    "no devices": (lambda: Town().node("a").wants(ONE), "NoDevices (never)", "publishes any"),
    "of another class": (
        lambda: Town().node("a", 1).wants(claim(exactly("r", cls="nic"))),
        "NoSuchDevice (never)",
        "none on any node passes",
    ),
    "no such class": (
        lambda: Town().node("a", 1).wants(claim(exactly("r", cls="tpu"))),
        "ClassMissing (never)",
        "request r: device class tpu does not exist",
    ),
    "an attribute that no device has": (
        lambda: Town().node("a", 1).wants(claim(exactly("r", select=[MODEL_A]))),
        "AttributeUnknown (never)",
        "gpu.example.com/model",
    ),
    "an attribute of the wrong value": (
        lambda: (
            Town()
            .node("a", [device("d0", attrs={"model": "b"})])
            .wants(claim(exactly("r", select=[MODEL_A_GUARDED])))
        ),
        "NoSuchDevice (never)",
        "",
    ),
    "a selector that is no expression": (
        lambda: Town().node("a", 1).wants(claim(exactly("r", select=["device.("]))),
        "SelectorInvalid (never)",
        "device.(",
    ),
    "capacity in use": (
        lambda: (
            Town()
            .node("a", [shared("d0", {"memory": capacity(4)})])
            .holds("x", "a", shares={"d0": "3"})
            .wants(claim(exactly("r", asks={"memory": 2})))
        ),
        "CapacityInUse (not now)",
        "short of capacity",
    ),
    "capacity that no device has": (
        lambda: (
            Town()
            .node("a", [shared("d0", {"memory": capacity(4)})])
            .wants(claim(exactly("r", asks={"memory": 8})))
        ),
        "CapacityTooHigh (never)",
        "memory",
    ),
    "counters in use": (
        lambda: parted(held="p0").holds("second", "a", "p1").wants(ONE),
        "CountersInUse (not now)",
        "",
    ),
    "counters in use, for several": (
        lambda: parted(held="p0").wants(TWO),
        "CountersInUse (not now)",
        "2 are free on node a, but not that many at once",
    ),
    "a tainted device": (
        lambda: rule(Town().node("a", 1)).wants(ONE),
        "DevicesTainted (held)",
        "health=bad:NoSchedule",
    ),
    "a cordoned node": (
        lambda: Town().node("a", 1, unschedulable=True).node("b").wants(ONE),
        "NodesCordoned (held)",
        "Node a, which could serve claim c0, is cordoned.",
    ),
    "a tainted node": (
        lambda: Town().node("a", 1, taints=[TAINT]).node("b").wants(ONE),
        "NodesTainted (held)",
        "c0, has a taint that the pod does not tolerate: gpu=yes:NoSchedule.",
    ),
    "a cordoned node and one in use": (
        lambda: (
            Town().node("a", 1, unschedulable=True).node("b", 1).holds("x", "b", "d0").wants(ONE)
        ),
        "DevicesInUse (not now)",
        "",
    ),
    "an incomplete pool": (
        lambda: Town().node("a").slice(["d0"], pool="a", nodeName="a", of=2).wants(ONE),
        "PoolIncomplete (held)",
        "gpu.example.com/a is incomplete: 1 of 2 slices",
    ),
    "an incomplete pool of another driver": (
        lambda: (
            Town()
            .node("a")
            .slice(["d0"], driver="nic.example.com", pool="a", nodeName="a", of=2)
            .wants(ONE)
        ),
        "NoDevices (never)",
        "",
    ),
    "an invalid pool": (
        lambda: Town().node("a", ["d0", "d0"]).wants(ONE),
        "PoolInvalid (held)",
        "duplicate device name d0",
    ),
    "all devices of a pool that is incomplete": (
        lambda: (
            Town()
            .node("a")
            .slice(["d0"], pool="a", nodeName="a", of=2)
            .wants(claim(everything("r")))
        ),
        "PoolIncomplete (held)",
        "incomplete",
    ),
    "a feature that is off": (
        lambda: (
            Town(off=["consumable_capacity"])
            .node("a", 1)
            .wants(claim(exactly("r", asks={"memory": 1})))
        ),
        "FeatureOff (held)",
        "off",
    ),
    "a full node": (
        lambda: Town().node("a", 1).runs("x", "a", cpu=7).wants(ONE, cpu=2),
        "NodesFull (not now)",
        "Node a, which could serve claim c0, does not have enough left of what the pod needs: cpu.",
    ),
    "a small node with the device, a large one without": (
        lambda: Town().node("a", 1, allocatable={"cpu": "1"}).node("b").wants(ONE, cpu=2),
        "NodeTooSmall (never)",
        "Node a, which could serve claim c0",
    ),
    "another label": (
        lambda: Town().node("a", 1).node("b").wants(ONE, nodeSelector={"disk": "fast"}),
        "NodeMismatch (never)",
        "Node a",
    ),
    "alone without its like": (
        lambda: Town().node("a", 1).wants(ONE, **near("podAffinity")),
        "PodAffinity (not here)",
        "Node a",
    ),
    "its like is there": (
        lambda: (
            Town()
            .node("a", 1)
            .runs("x", "a", metadata={"labels": {"app": "x"}})
            .wants(ONE, **near("podAntiAffinity"))
        ),
        "PodAntiAffinity (not here)",
        "Node a",
    ),
    "the device is where its like is not": (
        lambda: (
            Town()
            .node("a", 1)
            .node("b", 1)
            .holds("x", "a", "d0", metadata={"labels": {"app": "x"}})
            .wants(ONE, **near("podAffinity"))
        ),
        # The affinity is met on node a, so it is no reason, although the holder is the very pod that it asks for.
        "DevicesInUse (not now)",
        "c1",
    ),
}


def told(town: Town) -> Headline:
    world = town.world()
    pod = world.pod("default", "pending")
    assert pod is not None
    round_ = Decider(world.state).round(world.now)
    demand = demand_of(world, round_, pod)
    assert not isinstance(demand, Headline)
    found = round_.find(demand)
    assert isinstance(found, NotFound), "the pod fits"
    return headline(world.state, demand, found)


@pytest.mark.parametrize("name", CASES)
def test_the_reason(name: str) -> None:
    """The word, its kind, and what the sentence must say."""
    make, title, words = CASES[name]
    found = told(make())
    assert (found.reason.title, found.kind) == (
        title,
        found.reason.kind and found.reason.kind.value,
    )
    assert words in found.sentence


def test_a_label_by_which_pods_are_spread_is_named() -> None:
    """Nodes that do not have it cannot take the pod, and have to be labelled."""
    rule = {"maxSkew": 1, "labelSelector": {"matchLabels": {"a": "b"}}}
    spread = [
        {**rule, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"},
        {**rule, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
        {**rule, "topologyKey": "rack", "whenUnsatisfiable": "ScheduleAnyway"},
    ]
    scene = (
        Scene()
        .node("n1")
        .node("n2")
        .waits("p", labels={"a": "b"}, topologySpreadConstraints=spread)
    )
    world = scene.world()
    assert explain_pod(world, world.objects.pods[0]).headline.sentence == (
        "2 nodes are without the label zone, which the pod's topology spread constraints use."
    )
