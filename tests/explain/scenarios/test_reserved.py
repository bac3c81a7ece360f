"""Scenarios of pods for which there is room that is reserved for admitted workloads."""

from __future__ import annotations

import pytest

from drayman.explain.group import explain_group
from drayman.explain.node import explain_node
from drayman.explain.overview import explain_all
from drayman.explain.pod import explain_pod
from drayman.reasons.reason import Reason
from explain.scenarios.scene import NVIDIA, Scene, gpus, numbered
from explain.scenarios.telling import Near, Scenario, check, named
from explain.scenarios.test_gangs import group

DGX = "dgx-h100-0"


def train(nodes: int = 1) -> Scene:
    """A Job with a pod for each node, which needs all GPUs of it: admitted, and its pods are still to come."""
    scene = Scene(f"dgx-h100={nodes}").template("eight", gpus(8, cls=NVIDIA))
    places = [(f"dgx-h100-{n}", numbered(8)) for n in range(nodes)]
    return scene.admitted("train", "eight", *places)


def reserved_for_pods_to_come() -> Scene:
    return train().waits("whole", {"gpus": gpus(2, cls=NVIDIA)})


def reserved_for_a_pod_that_waits() -> Scene:
    scene = train().waits(
        "train-0", {"gpus": "eight"}, job="train", labels={"kueue.x-k8s.io/podset": "main"}
    )
    return scene.waits("whole", {"gpus": gpus(2, cls=NVIDIA)})


def gang_beside_a_job() -> Scene:
    scene = train(2).add("pod_groups", group(2))
    for number in (1, 0):
        ring = {"schedulingGroup": {"podGroupName": "ring"}}
        scene.waits(f"llama-{number}", {f"gpus-{number}": gpus(2, cls=NVIDIA)}, **ring)
    return scene


TOLD = "There would be room on node dgx-h100-0, but it is reserved for Workload default/job-train, which is admitted."
NEAREST = Near(
    DGX,
    "request gpus of claim gpus finds 0 of 2 devices (8 in use)",
    missing=2,
    blocked={
        numbered(8): "in use by default/job-train (Workload, for which it is reserved)",
    },
)
FUNNELS = {"gpus": "node fit 1/20, class 1/8, free 0/0, taints 0/0, count 0/0"}
HOLDERS = ("default/ of Workload/job-train: gpu-0 gpu-1 gpu-2 gpu-3 gpu-4 gpu-5 gpu-6 gpu-7",)

SCENARIOS = (
    Scenario(
        name="free GPUs are reserved for pods of an admitted job that are still to come",
        scene=reserved_for_pods_to_come,
        reason=Reason.DEVICES_IN_USE,
        says=("all 8 that match are in use", TOLD),
        funnels=FUNNELS,
        nearest=NEAREST,
        holders=HOLDERS,
        plays=False,
    ),
    Scenario(
        name="free GPUs are reserved for a pod of an admitted job that waits for its turn",
        scene=reserved_for_a_pod_that_waits,
        reason=Reason.DEVICES_IN_USE,
        says=("all 8 that match are in use", TOLD),
        funnels=FUNNELS,
        nearest=NEAREST,
        holders=HOLDERS,
        plays=False,
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason is that of devices in use, as the scheduler has it, and the sentence names the workload."""
    check(scenario)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_the_overview_says_the_same(scenario: Scenario) -> None:
    """The overview has the headline of the pod that waits, and no other pod waits for room."""
    world = scenario.scene().world()
    found = explain_all(world)
    alone = explain_pod(world, world.objects.pods[-1]).headline
    assert [part.headline for part in found.parts if part.name == "whole"] == [alone]
    assert {part.name for part in found.parts} <= {"whole"}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_the_node_says_the_same(scenario: Scenario) -> None:
    """The explanation of the node whose devices are reserved names the workload that keeps the pod from it, and leaves out its own pod."""
    world = scenario.scene().world()
    (part,) = explain_node(world, world.objects.nodes[0]).parts
    assert (part.name, part.headline.reason) == ("whole", Reason.DEVICES_IN_USE)
    assert part.headline.sentence.endswith(TOLD)


def test_a_pod_of_the_job_fits() -> None:
    """What is reserved for a workload is free for its own pod."""
    world = reserved_for_a_pod_that_waits().world()
    own = world.pod("default", "train-0")
    assert own is not None
    found = explain_pod(world, own)
    assert (found.headline.reason, found.node) == (Reason.FITS, DGX)


def test_a_gang() -> None:
    """A gang, each pod of it, its group and the overview have one reason, and name the workload."""
    world = gang_beside_a_job().world()
    said = [explain_pod(world, pod).headline for pod in world.objects.pods]
    said.append(explain_group(world, world.objects.pod_groups[0]).headline)
    said += [part.headline for part in explain_all(world).parts]
    assert {each.reason for each in said} == {Reason.GANG_TOO_LARGE}
    assert all("all 16 that match are in use" in each.sentence for each in said[:2])
    assert all("is reserved for Workload default/job-train" in each.sentence for each in said)


def test_a_question_changes_nothing() -> None:
    """The state is as before an explanation, and a second explanation equals the first."""
    world = reserved_for_pods_to_come().world()
    first = explain_pod(world, world.objects.pods[-1])
    assert not list(world.state.ledger.held_in((NVIDIA, DGX)))
    assert explain_pod(world, world.objects.pods[-1]) == first
