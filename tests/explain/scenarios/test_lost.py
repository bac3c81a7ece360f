"""Scenarios of pods and claims that have lost what they were given: a node, or devices."""

from __future__ import annotations

import pytest

from drayman.reasons.reason import Reason
from explain.scenarios.scene import NVIDIA, Scene, gpus
from explain.scenarios.telling import Scenario, check, explain, named

LEAVING = "2027-01-15T07:59:00Z"
SILENT = {
    "type": "Ready",
    "status": "Unknown",
    "reason": "NodeStatusUnknown",
    "message": "Kubelet stopped posting node status.",
}


def training() -> Scene:
    return Scene("dgx-h100=2").holds("llama", "dgx-h100-1", "gpu-0 gpu-1")


def node_is_gone() -> Scene:
    return Scene("dgx-h100=1").runs("etl", "cpu-9", cpu=2)


def node_and_slices_are_gone() -> Scene:
    scene = training()
    del scene.objects["nodes"][1]
    scene.objects["slices"] = [
        each for each in scene.objects["slices"] if each["spec"].get("nodeName") != "dgx-h100-1"
    ]
    return scene


def node_is_silent() -> Scene:
    scene = training()
    scene.objects["nodes"][1]["status"]["conditions"] = [SILENT]
    return scene


def node_of_a_job_is_silent() -> Scene:
    scene = Scene("dgx-h100=2").holds("llama", "dgx-h100-1", "gpu-0 gpu-1", job="pretrain")
    scene.objects["nodes"][1]["status"]["conditions"] = [SILENT]
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}
    scene.objects["nodes"][1].setdefault("spec", {})["taints"] = [taint]
    return scene


def node_is_tainted_as_unreachable() -> Scene:
    scene = training()
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    scene.objects["nodes"][1].setdefault("spec", {})["taints"] = [taint]
    return scene


def leaving_a_silent_node() -> Scene:
    scene = node_is_silent()
    scene.objects["pods"][-1]["metadata"]["deletionTimestamp"] = LEAVING
    return scene


def device_is_gone() -> Scene:
    scene = training()
    for each in scene.objects["slices"]:
        if each["spec"].get("nodeName") == "dgx-h100-1" and "devices" in each["spec"]:
            kept = [d for d in each["spec"]["devices"] if d["name"] != "gpu-1"]
            each["spec"]["devices"] = kept
    return scene


def slices_are_gone() -> Scene:
    scene = training()
    scene.objects["slices"].clear()
    return scene


def newer_generation_without_it() -> Scene:
    scene = Scene().node("node-a", 2).holds("llama", "node-a", "gpu-0 gpu-1")
    return scene.slice(["gpu-0"], pool="node-a", nodeName="node-a", generation=2, name="newer")


def newer_generation_half_published() -> Scene:
    scene = Scene().node("node-a", 2).holds("llama", "node-a", "gpu-0 gpu-1")
    scene.slice(["gpu-0"], pool="node-a", nodeName="node-a", generation=2, name="newer", of=2)
    return scene


def named_its_node() -> Scene:
    return Scene("dgx-h100=1").waits("llama", {"training": gpus(cls=NVIDIA)}, nodeName="dgx-h100-0")


def names_no_node() -> Scene:
    return Scene("dgx-h100=1").waits("llama", {"training": gpus(cls=NVIDIA)}, nodeName="dgx-h100")


def job_names_no_node() -> Scene:
    """The next pod of the job would name it as well."""
    scene = Scene("dgx-h100=1").job("llama", {"training": gpus(cls=NVIDIA)})
    return scene.waits("llama-x", {"training": None}, nodeName="dgx-h100", job="llama")


def device_is_to_be_left() -> Scene:
    scene = training()
    return scene.rule(
        "broken", "example.com/broken", "NoExecute", pool="dgx-h100-1", device="gpu-1"
    )


def no_new_pods_for_the_device() -> Scene:
    scene = training()
    return scene.rule("worn", "example.com/worn", "NoSchedule", pool="dgx-h100-1", device="gpu-1")


def tolerated() -> Scene:
    scene = device_is_to_be_left()
    for result in scene.objects["claims"][0]["status"]["allocation"]["devices"]["results"]:
        result["tolerations"] = [{"key": "example.com/broken", "operator": "Exists"}]
    return scene


def tolerated_for(seconds: int) -> Scene:
    """The taint is a minute old."""
    scene = device_is_to_be_left()
    scene.objects["taint_rules"][0]["spec"]["taint"]["timeAdded"] = "2027-01-15T07:59:00Z"
    toleration = {"key": "example.com/broken", "operator": "Exists", "effect": "NoExecute"}
    for result in scene.objects["claims"][0]["status"]["allocation"]["devices"]["results"]:
        result["tolerations"] = [{**toleration, "tolerationSeconds": seconds}]
    return scene


def claim_of_another_is_to_be_left() -> Scene:
    """The pod names the claim, but it is reserved for another pod."""
    scene = device_is_to_be_left()
    scene.objects["claims"][0]["status"]["reservedFor"][0] |= {"name": "other", "uid": "other"}
    return scene


def claim_is_going() -> Scene:
    scene = training()
    scene.objects["claims"][0]["metadata"]["deletionTimestamp"] = LEAVING
    return scene


def kept_claim_is_going() -> Scene:
    scene = claim_is_going()
    scene.objects["claims"][0]["status"]["reservedFor"] = []
    scene.objects["pods"].clear()
    return scene


CLAIM = "claim/llama-claim"
HOLDS = ("default/llama: gpu-0 gpu-1",)
SCENARIOS = (
    Scenario(
        name="the node of the pod is gone",
        scene=node_is_gone,
        reason=Reason.NODE_GONE,
        says="The pod is on node cpu-9, which does not exist.",
        remedies=("Delete pod default/etl and create it again.",),
        plays=False,
    ),
    Scenario(
        name="the node of the pod is gone with its devices",
        scene=node_and_slices_are_gone,
        reason=Reason.NODE_GONE,
        says="dgx-h100-1, which does not exist",
        remedies=("Delete pod default/llama and create it again.",),
        plays=False,
    ),
    Scenario(
        name="the node of the pod is silent",
        scene=node_is_silent,
        reason=Reason.NODE_NOT_READY,
        says="The pod is on node dgx-h100-1, which is not ready: Kubelet stopped posting node status.",
    ),
    Scenario(
        name="the node of a job's pod is silent",
        scene=node_of_a_job_is_silent,
        reason=Reason.NODE_NOT_READY,
        says="which is not ready",
        remedies=("Delete pod default/llama so that job/pretrain makes another.",),
        plays=False,
    ),
    Scenario(
        name="the node of the pod is tainted as unreachable",
        scene=node_is_tainted_as_unreachable,
        reason=Reason.NODE_NOT_READY,
        says="dgx-h100-1, which is not ready.",
    ),
    Scenario(
        name="the pod is being deleted on a silent node",
        scene=leaving_a_silent_node,
        reason=Reason.TERMINATING,
        says=("still on node dgx-h100-1, which is not ready", "stopped posting"),
    ),
    Scenario(
        name="a device of the pod is gone",
        scene=device_is_gone,
        reason=Reason.DEVICES_GONE,
        says="1 device of claim llama-claim is not published any more: gpu.nvidia.com/dgx-h100-1/gpu-1.",
        remedies=("Delete pod default/llama and create it again.",),
        plays=False,
    ),
    Scenario(
        name="the slices with the devices of the pod are gone",
        scene=slices_are_gone,
        reason=Reason.DEVICES_GONE,
        says="2 devices of claim llama-claim are not published any more",
    ),
    Scenario(
        name="the driver publishes its pool anew without the device",
        scene=newer_generation_without_it,
        reason=Reason.DEVICES_GONE,
        says="gpu.example.com/node-a/gpu-1",
    ),
    Scenario(
        name="the driver has not finished publishing its pool anew",
        scene=newer_generation_half_published,
        reason=Reason.RUNS,
        says="The pod is on node node-a.",
    ),
    Scenario(
        name="the pod names its node, and nobody gets its devices",
        scene=named_its_node,
        reason=Reason.CLAIM_UNALLOCATED,
        says=("names node dgx-h100-0 itself", "claim training has none."),
        remedies=("Delete pod default/llama and create it again without nodeName.",),
        plays=False,
    ),
    Scenario(
        name="the pod names a node that never was",
        scene=names_no_node,
        reason=Reason.NODE_GONE,
        says="on node dgx-h100, which does not exist.",
        remedies=("Delete pod default/llama and create it again without nodeName.",),
        plays=False,
    ),
    Scenario(
        name="a job whose pods name a node that never was",
        scene=job_names_no_node,
        reason=Reason.NODE_GONE,
        says="on node dgx-h100, which does not exist.",
    ),
    Scenario(
        name="a device of the pod is tainted so that pods leave",
        scene=device_is_to_be_left,
        reason=Reason.DEVICES_TAINTED,
        says=("gpu-1 is tainted example.com/broken:NoExecute", "the pod is evicted"),
    ),
    Scenario(
        name="a device of the pod is tainted so that no new pods come",
        scene=no_new_pods_for_the_device,
        reason=Reason.RUNS,
        says="The pod is on node dgx-h100-1.",
    ),
    Scenario(
        name="the pod tolerates the taint of its device",
        scene=tolerated,
        reason=Reason.RUNS,
        says="The pod is on node dgx-h100-1.",
    ),
    Scenario(
        name="the pod tolerates the taint of its device for a while",
        scene=lambda: tolerated_for(300),
        reason=Reason.DEVICES_TAINTED,
        says="which claim llama-claim tolerates until 2027-01-15T08:04:00Z; then the pod is evicted.",
    ),
    Scenario(
        name="the pod has tolerated the taint of its device long enough",
        scene=lambda: tolerated_for(30),
        reason=Reason.DEVICES_TAINTED,
        says="which claim llama-claim does not tolerate; the pod is evicted.",
    ),
    Scenario(
        name="a device of a claim that the pod only names is tainted",
        scene=claim_of_another_is_to_be_left,
        reason=Reason.RUNS,
        says="The pod is on node dgx-h100-1.",
        plays=False,
    ),
    Scenario(
        name="the claim has its devices on a node that is gone",
        scene=node_and_slices_are_gone,
        about=CLAIM,
        reason=Reason.NODE_GONE,
        says="The claim has its devices on node dgx-h100-1, which does not exist.",
        holders=HOLDS,
    ),
    Scenario(
        name="the claim has its devices on a silent node",
        scene=node_is_silent,
        about=CLAIM,
        reason=Reason.NODE_NOT_READY,
        says="on node dgx-h100-1, which is not ready",
        holders=HOLDS,
    ),
    Scenario(
        name="the claim has a device that is gone",
        scene=device_is_gone,
        about=CLAIM,
        reason=Reason.DEVICES_GONE,
        says="gpu.nvidia.com/dgx-h100-1/gpu-1",
        holders=HOLDS,
    ),
    Scenario(
        name="the claim has a device that its users have to leave",
        scene=device_is_to_be_left,
        about=CLAIM,
        reason=Reason.DEVICES_TAINTED,
        says="the pods that use it are evicted",
        holders=HOLDS,
    ),
    Scenario(
        name="the claim is being deleted and its pod goes on",
        scene=claim_is_going,
        about=CLAIM,
        reason=Reason.CLAIM_DELETING,
        says=("is being deleted", "gpu-0", "used by llama, and keeps them until they have ended"),
        holders=HOLDS,
    ),
    Scenario(
        name="the claim is being deleted and nobody uses it",
        scene=kept_claim_is_going,
        about=CLAIM,
        reason=Reason.CLAIM_DELETING,
        says="not used at the moment, and keeps them until it is gone",
        holders=("default/llama-claim: gpu-0 gpu-1",),
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """What is lost is named, whatever the object itself still says."""
    check(scenario)


@pytest.mark.parametrize("scene", [node_is_silent, device_is_gone])
def test_where_it_was_and_where_it_could_go_is_told_too(scene: type[Scene]) -> None:
    """The node and the devices that it was given, and the nodes that would take it now."""
    found = explain(scene().world(), "pod")
    assert found.node == "dgx-h100-1"
    assert [device.rpartition("/")[2] for device in found.devices] == ["gpu-0", "gpu-1"]
    assert "dgx-h100-0" in [each.node for each in found.alternatives if not each.chosen]


def test_another_pod_is_no_remedy_where_it_would_not_fit() -> None:
    """What a new pod would get is searched for."""
    scene = device_is_gone().holds(
        "other", "dgx-h100-0", "gpu-0 gpu-1 gpu-2 gpu-3 gpu-4 gpu-5 gpu-6 gpu-7"
    )
    scene.holds("more", "dgx-h100-1", "gpu-2 gpu-3 gpu-4 gpu-5 gpu-6 gpu-7")
    scene.objects["pods"].append(scene.objects["pods"].pop(0))
    found = explain(scene.world(), "pod")
    assert (found.headline.reason, found.remedies) == (Reason.DEVICES_GONE, ())
