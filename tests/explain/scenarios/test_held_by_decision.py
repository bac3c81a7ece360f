"""Scenarios of pods that are held back by what somebody has decided about nodes and devices."""

from __future__ import annotations

import pytest

from drayman.reasons.reason import Reason
from explain.scenarios.scene import NVIDIA, Scene
from explain.scenarios.telling import Near, Scenario, check, named
from oracle.build import claim, device, exactly, taint
from oracle.nodes import JsonObject

EIGHT = "gpu-0 gpu-1 gpu-2 gpu-3 gpu-4 gpu-5 gpu-6 gpu-7"


def gpus(count: int) -> JsonObject:
    return claim(exactly("gpus", count, cls=NVIDIA))


def decided(scene: Scene, node: str, **spec: object) -> Scene:
    """What somebody has said about a node."""
    for each in scene.objects["nodes"]:
        if each["metadata"]["name"] == node:
            each["spec"] = {**each.get("spec", {}), **spec}
    return scene


# Nodes.


def firmware_update() -> Scene:
    scene = decided(Scene("dgx-h100=1", "cpu=1"), "dgx-h100-0", unschedulable=True)
    return scene.waits("llama", {"training": gpus(8)})


def rack_drained() -> Scene:
    scene = Scene("gb200-nvl72=1")
    for number in range(18):
        decided(scene, f"gb200-nvl72-0-{number:02}", unschedulable=True)
    return scene.waits("llama", {"tray": gpus(4)})


def cordoned_by_kubectl() -> Scene:
    mark = taint("node.kubernetes.io/unschedulable")
    scene = decided(Scene("dgx-h100=1"), "dgx-h100-0", unschedulable=True, taints=[mark])
    return scene.holds("bert", "dgx-h100-0", "gpu-0 gpu-1").waits("llama", {"training": gpus(6)})


def reserved() -> Scene:
    scene = decided(Scene("dgx-h100=1", "cpu=1"), "dgx-h100-0", taints=[taint("team", "nlp")])
    return scene.waits("llama", {"training": gpus(8)})


def lent(scene: Scene, node: str, **labels: str) -> Scene:
    """What the labels of a node say about its terms."""
    for each in scene.objects["nodes"]:
        if each["metadata"]["name"] == node:
            each["metadata"]["labels"] |= {f"drayman.dev/{key}": v for key, v in labels.items()}
    return scene


def only_spot() -> Scene:
    scene = lent(Scene("dgx-h100=1", "cpu=1"), "dgx-h100-0", spot="true")
    return scene.waits("llama", {"training": gpus(8)})


def reserved_for_two_teams() -> Scene:
    scene = decided(Scene("dgx-h100=2"), "dgx-h100-0", taints=[taint("team", "nlp")])
    decided(scene, "dgx-h100-1", taints=[taint("team", "vision"), taint("burn-in")])
    tolerations = [{"key": "team", "operator": "Equal", "value": "audio"}]
    return scene.waits("llama", {"training": gpus(8)}, tolerations=tolerations)


def not_ready() -> Scene:
    mark = taint("node.kubernetes.io/not-ready")
    scene = decided(Scene("dgx-h100=1"), "dgx-h100-0", taints=[mark])
    return scene.waits("llama", {"training": gpus(8)})


# Devices.


def gpu_under_repair() -> Scene:
    scene = Scene("dgx-h100=1")
    gone = {"driver": NVIDIA, "pool": "dgx-h100-0", "device": "gpu-3"}
    scene.rule("xid-79", "example.com/fell-off-bus", **gone)
    return scene.waits("llama", {"training": gpus(8)})


def unhealthy_says_the_driver() -> Scene:
    bad = device("gpu-1", taints=[taint("health", "ecc")])
    scene = Scene().node("node-a", ["gpu-0", bad]).node("node-b", 1)
    return scene.waits("infer", {"pair": claim(exactly("gpus", 2))})


def two_rules_for_one() -> Scene:
    scene = Scene().node("node-a", 1).rule("burn-in", "burn-in", pool="node-a")
    scene.rule("recall", "recalled", "NoExecute", device="gpu-0")
    return scene.waits("infer", {"one": claim(exactly("gpu"))})


def driver_being_updated() -> Scene:
    scene = Scene("mi300x=2").rule("update", "driver-update", driver="gpu.amd.com")
    return scene.waits("infer", {"one": claim(exactly("gpu", cls="gpu.amd.com"))})


# Units that come first.


def reserved_for_larger_work() -> Scene:
    scene = Scene("dgx-h100=1")
    lasts = {"drayman.dev/runtime": "2h"}
    scene.holds("bert", "dgx-h100-0", "gpu-0 gpu-1 gpu-2 gpu-3", annotations=lasts)
    return scene.waits("gpt", {"all": gpus(8)}).waits("llama", {"some": gpus(2)})


SCENARIOS = (
    Scenario(
        name="the free half of the DGX is reserved for work that needs all of it",
        scene=reserved_for_larger_work,
        reason=Reason.ROOM_RESERVED,
        says=("reserved for pod default/gpt, which comes first", "not known how long the pod runs"),
    ),
    Scenario(
        name="the only DGX is cordoned for a firmware update",
        scene=firmware_update,
        reason=Reason.NODES_CORDONED,
        says="Node dgx-h100-0, which could serve claim training, is cordoned",
        fit="cordon 1",
        funnels={"gpus": "node fit 1/2, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near("dgx-h100-0", "it is cordoned; its devices would do", devices=EIGHT),
        remedies=("Uncordon node dgx-h100-0.",),
    ),
    Scenario(
        name="a whole rack is drained",
        scene=rack_drained,
        reason=Reason.NODES_CORDONED,
        says="18 nodes that could serve claim tray are cordoned",
        fit="cordon 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "gb200-nvl72-0-00",
            "it is cordoned; its devices would do",
            devices="gpu-0 gpu-1 gpu-2 gpu-3",
        ),
        remedies=("Uncordon node gb200-nvl72-0-00.",),
    ),
    Scenario(
        name="kubectl has cordoned the node and put its taint there",
        scene=cordoned_by_kubectl,
        reason=Reason.NODES_CORDONED,
        says="is cordoned",
        fit="cordon 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "it is cordoned; its devices would do",
            devices="gpu-2 gpu-3 gpu-4 gpu-5 gpu-6 gpu-7",
        ),
        remedies=("Uncordon node dgx-h100-0.",),
    ),
    Scenario(
        name="the only DGX is reserved for another team",
        scene=reserved,
        reason=Reason.NODES_TAINTED,
        says="has a taint that the pod does not tolerate: team=nlp:NoSchedule",
        fit="node taints 1",
        funnels={"gpus": "node fit 1/2, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "the pod does not tolerate its taint team=nlp:NoSchedule; its devices would do",
            devices=EIGHT,
        ),
        remedies=(
            "Take the taint team=nlp:NoSchedule off node dgx-h100-0.",
            "Tolerate the taint team=nlp:NoSchedule of nodes in the pod.",
        ),
    ),
    Scenario(
        name="the only DGX is a spot node",
        scene=only_spot,
        reason=Reason.SPOT_NOT_ACCEPTED,
        says=(
            "Node dgx-h100-0, which could serve claim training, is a spot node",
            'does not say that it accepts that (drayman.dev/spot: "true")',
        ),
        fit="spot 1",
        funnels={"gpus": "node fit 1/2, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "it is a spot node, which the pod does not accept; its devices would do",
            devices=EIGHT,
        ),
        remedies=("Accept spot nodes in the pod.",),
    ),
    Scenario(
        name="both DGX are reserved for other teams and one is being burnt in",
        scene=reserved_for_two_teams,
        reason=Reason.NODES_TAINTED,
        says=(
            "2 nodes that could serve claim training",
            "team=nlp:NoSchedule, team=vision:NoSchedule and burn-in:NoSchedule",
        ),
        fit="node taints 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "the pod does not tolerate its taint team=nlp:NoSchedule; its devices would do",
            devices=EIGHT,
        ),
        remedies=(
            "Take the taint team=nlp:NoSchedule off node dgx-h100-0.",
            "Tolerate the taint team=nlp:NoSchedule of nodes in the pod.",
            "Tolerate the taints team=vision:NoSchedule and burn-in:NoSchedule of nodes in the pod.",
        ),
    ),
    Scenario(
        name="the only DGX is not ready",
        scene=not_ready,
        reason=Reason.NODES_TAINTED,
        says="node.kubernetes.io/not-ready:NoSchedule",
        fit="node taints 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "the pod does not tolerate its taint node.kubernetes.io/not-ready:NoSchedule; its devices would do",
            devices=EIGHT,
        ),
    ),
    Scenario(
        name="one of eight GPUs has fallen off the bus",
        scene=gpu_under_repair,
        reason=Reason.DEVICES_TAINTED,
        says=(
            "Claim training, request gpus wants 8 devices",
            "of 8 that match, 1 is tainted (example.com/fell-off-bus:NoSchedule)",
        ),
        funnels={"gpus": "node fit 1/20, class 1/8, free 1/8, taints 1/7, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim training finds 7 of 8 devices (1 tainted)",
            devices="gpu-0 gpu-1 gpu-2 gpu-4 gpu-5 gpu-6 gpu-7",
            missing=1,
            blocked={"gpu-3": "tainted example.com/fell-off-bus:NoSchedule"},
        ),
        remedies=(
            "Delete the device taint rule xid-79.",
            "Tolerate the taint example.com/fell-off-bus:NoSchedule of devices in request gpus of claim training.",
            "Ask for 7 instead of 8 in request gpus of claim training.",
        ),
    ),
    Scenario(
        name="the driver reports memory errors of one of two GPUs",
        scene=unhealthy_says_the_driver,
        reason=Reason.DEVICES_TAINTED,
        says=("wants 2 devices", "of 2 that match, 1 is tainted (health=ecc:NoSchedule)"),
        funnels={"gpus": "node fit 2/3, class 2/3, free 2/3, taints 2/2, count 0/0"},
        nearest=Near(
            "node-a",
            "request gpus of claim pair finds 1 of 2 devices (1 tainted)",
            devices="gpu-0",
            missing=1,
            blocked={"gpu-1": "tainted health=ecc:NoSchedule"},
        ),
        remedies=(
            "Have driver gpu.example.com take the taints off gpu-1 of node-a.",
            "Tolerate the taint health=ecc:NoSchedule of devices in request gpus of claim pair.",
            "Ask for 1 instead of 2 in request gpus of claim pair.",
        ),
    ),
    Scenario(
        name="two rules keep pods from the only GPU",
        scene=two_rules_for_one,
        reason=Reason.DEVICES_TAINTED,
        says="the only one that matches is tainted (burn-in:NoSchedule and recalled:NoExecute)",
        funnels={"gpu": "node fit 1/1, class 1/1, free 1/1, taints 0/0, count 0/0"},
        nearest=Near(
            "node-a",
            "request gpu of claim one finds 0 of 1 device (1 tainted)",
            missing=1,
            blocked={"gpu-0": "tainted burn-in:NoSchedule, recalled:NoExecute"},
        ),
        remedies=(
            "Delete the device taint rules burn-in and recall.",
            "Tolerate the taints burn-in:NoSchedule and recalled:NoExecute of devices in request gpu of claim one.",
        ),
    ),
    Scenario(
        name="the driver of all GPUs is being updated",
        scene=driver_being_updated,
        reason=Reason.DEVICES_TAINTED,
        says=("wants 1 device;", "all 16 that match are tainted (driver-update:NoSchedule)"),
        funnels={"gpu": "node fit 2/36, class 2/16, free 2/16, taints 0/0, count 0/0"},
        nearest=Near(
            "mi300x-0",
            "request gpu of claim one finds 0 of 1 device (8 tainted)",
            missing=1,
            blocked={
                "gpu-1-128 gpu-2-129 gpu-3-130 gpu-4-131 gpu-5-132 gpu-6-133 gpu-7-134 gpu-8-135": "tainted driver-update:NoSchedule"
            },
        ),
        remedies=(
            "Delete the device taint rule update.",
            "Tolerate the taint driver-update:NoSchedule of devices in request gpu of claim one.",
        ),
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the funnel, the nearest miss, the holders and the remedies are as the scenario says, and every remedy helps."""
    check(scenario)
