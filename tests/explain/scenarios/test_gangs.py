"""Scenarios of pods that start together with others, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.reasons.reason import Reason
from explain.scenarios.scene import NVIDIA, Scene, generated, numbered
from explain.scenarios.telling import Near, Scenario, check, explain, helps, named
from oracle.build import claim, exactly
from oracle.nodes import JsonObject

RACK = "topology.kubernetes.io/rack"
ZONE = "topology.kubernetes.io/zone"
FOUR_GPUS = claim(exactly("gpus", 4, cls=NVIDIA))
ONE_GPU = claim(exactly("gpus"))


def group(least: int, level: str = "") -> JsonObject:
    spec: JsonObject = {"schedulingPolicy": {"gang": {"minCount": least}}}
    if level:
        spec["schedulingConstraints"] = {"topology": [{"key": level}]}
    metadata = {"name": "ring", "namespace": "default", "uid": "group-ring"}
    return {"metadata": metadata, "spec": spec}


def members(scene: Scene, number: int, wanted: JsonObject, **fields: Any) -> Scene:
    """Pods of the group, the first of them last: that is the one that is asked about."""
    for index in reversed(range(number)):
        metadata = {"schedulingGroup": {"podGroupName": "ring"}}
        scene.waits(f"llama-{index}", {f"gpus-{index}": wanted}, **metadata, **fields)
    return scene


def not_all_created() -> Scene:
    return members(Scene("dgx-h100=1").add("pod_groups", group(3)), 2, FOUR_GPUS)


def one_is_gated() -> Scene:
    scene = Scene("dgx-h100=1").add("pod_groups", group(2))
    ring = {"schedulingGroup": {"podGroupName": "ring"}}
    scene.waits("llama-1", {"gpus-1": FOUR_GPUS}, schedulingGates=[{"name": "budget"}], **ring)
    return scene.waits("llama-0", {"gpus-0": FOUR_GPUS}, **ring)


def gang_of_none() -> Scene:
    said = {"drayman.dev/gang": "none", "drayman.dev/gang-name": "ring"}
    return Scene("dgx-h100=1").waits("llama-0", {"gpus": FOUR_GPUS}, annotations=said)


def larger_than_the_cluster() -> Scene:
    return members(Scene("dgx-h100=1").add("pod_groups", group(3)), 3, FOUR_GPUS)


def too_much_for_each() -> Scene:
    nine = claim(exactly("gpus", 9, cls=NVIDIA))
    return members(Scene("dgx-h100=1").add("pod_groups", group(2)), 2, nine)


def too_much_for_one() -> Scene:
    """A gang of two, of which the other one asks for more than a node has."""
    scene = Scene("dgx-h100=2").add("pod_groups", group(2))
    ring = {"schedulingGroup": {"podGroupName": "ring"}}
    scene.waits("large", {"gpus-l": claim(exactly("gpus", 9, cls=NVIDIA))}, **ring)
    return scene.waits("small", {"gpus-s": FOUR_GPUS}, **ring)


def too_much_for_each_of_two_nodes() -> Scene:
    scene = Scene("dgx-h100=2").add("pod_groups", group(2))
    scene.template("nine", claim(exactly("gpus", 9, cls=NVIDIA)))
    for name in ("llama-1", "llama-0"):
        scene.waits(name, {"gpus": "nine"}, schedulingGroup={"podGroupName": "ring"})
    return scene


def selected_in_vain() -> Scene:
    scene = Scene("dgx-h100=1").add("pod_groups", group(2))
    for name in ("llama-1", "llama-0"):
        ring = {"schedulingGroup": {"podGroupName": "ring"}}
        scene.waits(name, cpu=1, nodeSelector={"pool": "fast"}, **ring)
    return scene


def held_by_another() -> Scene:
    scene = Scene("dgx-h100=1").add("pod_groups", group(2))
    return members(scene.holds("bert", "dgx-h100-0", numbered(5)), 2, FOUR_GPUS)


def racks(*free: int) -> Scene:
    """Racks with so many nodes of one GPU each, all of them in one zone."""
    scene = Scene()
    for rack, number in zip("abc", free, strict=False):
        for index in range(number):
            labels = {RACK: rack, ZONE: "z"}
            scene.node(f"node-{rack}{index}", 1, labels=labels)
    return scene


def in_no_single_rack() -> Scene:
    scene = racks(3, 2).holds("bert", "node-a0", "gpu-0")
    return members(scene.add("pod_groups", group(3, RACK)), 3, ONE_GPU)


SCENARIOS = (
    Scenario(
        name="a pod of the gang does not exist yet",
        scene=not_all_created,
        reason=Reason.GANG_INCOMPLETE,
        says="Pod group default/ring has 2 of the 3 pods that start together.",
    ),
    Scenario(
        name="a pod of the gang is gated",
        scene=one_is_gated,
        reason=Reason.GANG_INCOMPLETE,
        says=(
            "Pod group default/ring has 1 of the 2 pods that start together and are ready.",
            "Pod llama-1: Gated (held): The pod is held back by a scheduling gate: budget.",
        ),
    ),
    Scenario(
        name="the number of pods that start together is not a number",
        scene=gang_of_none,
        reason=Reason.GANG_INVALID,
        says=("Pod default/llama-0", "drayman.dev/gang"),
    ),
    Scenario(
        name="the gang is larger than the cluster",
        scene=larger_than_the_cluster,
        reason=Reason.GANG_OVERSIZED,
        says=(
            "Pod group default/ring: even with nothing in use, the cluster holds 2 of 3 pods.",
            "As of now, the next one: Claim gpus-2, request gpus wants 4 devices; all 8 that match are taken"
            " by other pods of the gang.",
        ),
        remedies=("Let 2 pods of pod group default/ring start together instead of 3.",),
    ),
    Scenario(
        name="each pod of the gang asks for more than a node has",
        scene=too_much_for_each,
        reason=Reason.COUNT_TOO_HIGH,
        says=(
            "None of the 2 pods of pod group default/ring that are to start fits anywhere.",
            "Claim gpus-0, request gpus wants 9 devices",
        ),
        funnels={"gpus": "node fit 1/20, class 1/8, free 1/8, taints 1/8, count 0/0"},
        nearest=Near("dgx-h100-0", "finds 8 of 9", devices=numbered(8), missing=1),
    ),
    Scenario(
        name="another pod of the gang asks for more than a node has",
        scene=too_much_for_one,
        reason=Reason.GANG_OVERSIZED,
        says="Pod group default/ring",
        remedies=(
            "For pod large: ask for 8 instead of 9 in request gpus of claim gpus-l.",
            "Let 1 pod of pod group default/ring start together instead of 2.",
        ),
    ),
    Scenario(
        name="each pod of the gang asks for more than a node has, and there is a node for each",
        scene=too_much_for_each_of_two_nodes,
        reason=Reason.COUNT_TOO_HIGH,
        says="None of the 2 pods of pod group default/ring that are to start fits anywhere.",
        funnels={"gpus": "node fit 2/40, class 2/16, free 2/16, taints 2/16, count 0/0"},
        nearest=Near("dgx-h100-0", "finds 8 of 9", devices=numbered(8), missing=1),
        remedies=(
            "For pod llama-0 and 1 like it: ask for 8 instead of 9 in request gpus of template nine.",
        ),
    ),
    Scenario(
        name="no node has the label that the pods of the gang select",
        scene=selected_in_vain,
        reason=Reason.NODE_MISMATCH,
        says="None of the 2 pods of pod group default/ring that are to start fits anywhere.",
        fit="node selector 0",
        nearest=Near("dgx-h100-0", "it does not match the pod's node selector"),
        remedies=(
            "For pod llama-0 and 1 like it: drop pool=fast from the pod's node selector.",
            "For pod llama-0 and 1 like it: label node dgx-h100-0 with pool=fast.",
        ),
    ),
    Scenario(
        name="another pod has what the gang needs",
        scene=held_by_another,
        reason=Reason.GANG_TOO_LARGE,
        says="Pod group default/ring: 0 of 2 pods fit at once. The next one: Claim gpus-0",
        funnels={"gpus": "node fit 1/20, class 1/8, free 1/3, taints 1/3, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "finds 3 of 4",
            devices="gpu-5 gpu-6 gpu-7",
            missing=1,
            blocked={numbered(5): "in use by"},
        ),
        holders=(f"default/bert: {numbered(5)}",),
        remedies=("Delete pod default/bert.",),
    ),
    Scenario(
        name="no rack has room for all of the gang",
        scene=in_no_single_rack,
        reason=Reason.GANG_SCATTERED,
        says=(
            "Pod group default/ring has to be in one rack. Rack a holds 2 of 3, rack b holds 2 of 3.",
            "The next one in rack a: Claim gpus-2",
        ),
        remedies=(
            "Let 2 pods of pod group default/ring start together instead of 3.",
            f"Require one zone ({ZONE}) instead of one rack for pod group default/ring.",
            "Delete pod default/bert.",
        ),
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the numbers and the remedies are as the scenario says, and every remedy lets the gang start."""
    check(scenario)


def test_claims_that_were_made_from_a_template_change_with_it() -> None:
    """Those of all members: otherwise the others would still fit nowhere."""
    scene = too_much_for_each_of_two_nodes()
    for pod in scene.objects["pods"]:
        name = pod["metadata"]["name"]
        made = {"name": "gpus", "resourceClaimName": f"{name}-gpus"}
        pod["status"]["resourceClaimStatuses"] = [made]
        scene.claim(
            f"{name}-gpus", claim(exactly("gpus", 9, cls=NVIDIA)), **generated("gpus", name)
        )
    world = scene.world()
    (found,) = explain(world, "pod").remedies
    assert [(each.kind, each.name) for each in found.operations] == [
        ("ResourceClaimTemplate", "nine"),
        ("ResourceClaim", "llama-0-gpus"),
        ("ResourceClaim", "llama-1-gpus"),
    ]
    helps(world, "pod", found)
    assert explain(world, "pod").remedies == (found,)  # what was tried is undone
