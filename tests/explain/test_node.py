"""A node: how it is, who has its devices, and why pods that wait do not go there."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.explain.answer import Explanation
from drayman.explain.node import explain_node
from explain.town import GPU, Town
from oracle.build import claim, device, exactly, taint

SWEEP = {
    "ownerReferences": [{"kind": "Job", "name": "sweep", "uid": "uid-sweep", "controller": True}]
}


def node(town: Town, name: str = "n0") -> Explanation:
    world = town.world()
    return explain_node(world, world.state.nodes[name].node)


STATES: list[tuple[str, dict[str, Any], dict[str, Any], str, str]] = [
    (
        "ready",
        {},
        {},
        "Runs",
        "Node n0 is ready and takes pods. It has 1 pod and 3 devices: 1 in use, 1 free and 1 tainted.",
    ),
    (
        "cordoned",
        {"unschedulable": True},
        {},
        "NodesCordoned",
        "Node n0 is cordoned; it takes no pods. It has 1 pod and 3 devices: 1 in use, 0 free, 1 tainted and 1 unavailable.",
    ),
    (
        "tainted",
        {"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
        {},
        "Runs",
        "takes pods that tolerate gpu=yes:NoSchedule.",
    ),
    (
        "silent",
        {},
        {
            "conditions": [
                {
                    "type": "Ready",
                    "status": "Unknown",
                    "message": "Kubelet stopped posting node status.",
                }
            ]
        },
        "NodeNotReady",
        "Node n0 is not ready: Kubelet stopped posting node status; it takes no pods.",
    ),
    (
        "silent and cordoned",
        {"unschedulable": True},
        {"conditions": [{"type": "Ready", "status": "Unknown"}]},
        "NodeNotReady",
        "is not ready and cordoned; it takes no pods.",
    ),
]


@pytest.mark.parametrize(
    ("spec", "status", "reason", "says"), [s[1:] for s in STATES], ids=[s[0] for s in STATES]
)
def test_how_it_is(spec: dict[str, Any], status: dict[str, Any], reason: str, says: str) -> None:
    """Ready or not, cordoned or not, for whom, and what becomes of its devices."""
    devices = ["d0", "d1", device("d2", taints=[taint("broken")])]
    town = Town().node("n0", devices, **spec).node("n1", 2).holds("a", "n0", "d0")
    town.nodes[0]["status"] |= status
    found = node(town)
    assert (found.kind, found.name, found.headline.reason.value) == ("Node", "n0", reason)
    assert says in found.headline.sentence
    (counts,) = found.counts
    assert (counts.driver, counts.total, counts.states["used"]) == (GPU, 3, 1)
    assert found.evidence["node"] == ""


def test_what_may_be_held_by_others_is_not_called_free() -> None:
    """Somebody who does not see all claims cannot know."""
    world = Town().node("n0", 2).holds("a", "n0", "d0").world()
    world.unseen = ("resourceclaims.resource.k8s.io outside of namespace default",)
    found = explain_node(world, world.state.nodes["n0"].node)
    assert found.counts[0].states == {"used": 1, "unknown": 1}
    assert "1 in use, 0 free and 1 unknown" in found.headline.sentence


def test_who_has_its_devices_is_told_by_workload() -> None:
    """Those with most devices first; holders on other nodes are not."""
    town = Town().node("n0", 4).node("n1", 1).holds("alone", "n0", "d0").holds("far", "n1", "d0")
    for number in (1, 2):
        town.holds(f"sweep-{number}", "n0", f"d{number}", metadata=SWEEP)
    found = node(town)
    assert [(h.workload or h.pods[0], h.count, len(h.devices)) for h in found.holders] == [
        ("Job/sweep", 2, 2),
        ("alone", 1, 1),
    ]


def test_who_waits_and_why_not_here() -> None:
    """What this node says to pods that wait, whatever others say; pods that could go here or wait for something else are not told."""
    town = Town().node("n0", 1, labels={"zone": "a"}).node("n1", 2).holds("a", "n0", "d0")
    for number in range(2):
        town.wants(claim(exactly("gpus", 1)), name=f"sweep-{number}", metadata=SWEEP)
    town.wants(claim(exactly("gpus", 3)), name="greedy")
    town.wants(name="picky", nodeSelector={"zone": "b"})
    town.wants(name="heavy", cpu=100)
    town.wants(name="gated", schedulingGates=[{"name": "wait"}])
    town.wants(name="easy", cpu=1)
    found = node(town)
    assert [(p.name, p.count, p.headline.reason.value) for p in found.parts] == [
        ("sweep", 2, "DevicesInUse"),
        ("greedy", 1, "CountTooHigh"),
        ("heavy", 1, "NodesFull"),
        ("picky", 1, "NodeMismatch"),
    ]
    assert "not have enough left of what the pod needs: cpu" in found.parts[2].headline.sentence


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"unschedulable": True}, "The node is cordoned."),
        (
            {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
            "The node has a taint that the pod does not tolerate: gpu:NoSchedule.",
        ),
    ],
)
def test_a_closed_node_says_so_to_pods(spec: dict[str, Any], says: str) -> None:
    """Before anything of devices."""
    (part,) = node(Town().node("n0", 1, **spec).wants(claim(exactly("gpus", 1)))).parts
    assert part.headline.sentence == says


def test_a_spot_node_says_for_whom_it_is() -> None:
    """And to others that it is not for them."""
    labels, taints = {"drayman.dev/spot": "true"}, [{"key": "gpu", "effect": "NoSchedule"}]
    found = node(Town().node("n0", 1, labels=labels).wants(claim(exactly("gpus", 1))))
    assert "Node n0 is ready and takes pods that accept spot nodes." in found.headline.sentence
    (part,) = found.parts
    assert (part.headline.reason.value, part.headline.sentence) == (
        "SpotNotAccepted",
        "The node is a spot node, which the pod does not accept.",
    )
    found = node(Town().node("n0", 1, labels=labels, taints=taints))
    assert "that tolerate gpu:NoSchedule and accept spot nodes." in found.headline.sentence


def test_the_rule_that_refuses_gives_the_reason() -> None:
    """A volume that is not there and a neighbour that is avoided are not confused with other rules about volumes and neighbours."""
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "host"}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    town = Town().node("n0", labels={"host": "n0"})
    town.runs("web", "n0", metadata={"labels": {"app": "web"}})
    town.wants(name="alone", affinity=rules)
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "none"}}
    town.wants(name="unbound", volumes=[volume])
    reasons = {part.name: part.headline.reason.value for part in node(town).parts}
    assert reasons == {"alone": "PodAntiAffinity", "unbound": "VolumeUnbound"}
