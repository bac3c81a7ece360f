"""Scenarios of nodes whose processors, pods, ports or volumes others use."""

from __future__ import annotations

import pytest

from drayman.reasons.reason import Reason
from explain.scenarios.scene import Scene, gpus, mounted
from explain.scenarios.telling import Near, Scenario, check, named
from oracle.selectors import GPU


def processors_of_the_node() -> Scene:
    scene = Scene().node("n1", 4).node("n2")
    scene.runs("loader", "n1", cpu=6).runs("tail", "n1", cpu=1).runs("web", "n2", cpu=8)
    return scene.waits("trainer", {"one": gpus()}, cpu=4)


def pods_of_the_node() -> Scene:
    scene = Scene().node("n1", 1, allocatable={"pods": "2"})
    scene.runs("a", "n1").runs("b", "n1", priority=5)
    return scene.waits("third", {"one": gpus()})


def node_of_the_claim() -> Scene:
    scene = Scene().node("n1", 2).node("n2", 2)
    result = {"request": "gpus", "driver": GPU, "pool": "n1", "device": "gpu-0"}
    scene.claim("shared", gpus(), [result], node="n1", users=["first"])
    scene.runs("first", "n1", {"shared": None}, cpu=2).runs("other", "n1", cpu=4)
    return scene.waits("second", {"shared": None}, cpu=4)


def host_port() -> Scene:
    scene = Scene().node("n1", 2).runs("exporter", "n1", host_port=9100)
    return scene.waits("second-exporter", {"one": gpus()}, host_port=9100)


def volume_for_a_single_pod() -> Scene:
    scene = Scene().node("n1", 2).volume("model", mode="ReadWriteOncePod")
    scene.runs("first", "n1", volumes=[mounted("model")])
    return scene.waits("second", {"one": gpus()}, volumes=[mounted("model")])


SCENARIOS = (
    Scenario(
        name="free GPUs on a node without processors left",
        scene=processors_of_the_node,
        reason=Reason.NODES_FULL,
        says="Node n1, which could serve claim one, does not have enough left of what the pod needs: cpu",
        fit="resources 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n1", "4 cpu wanted, 1 free; its devices would do", devices="gpu-0 gpu-1 gpu-2 gpu-3"
        ),
        holders=(
            "default/loader",
            "default/tail",
        ),
        remedies=(
            "Ask for 1 instead of 4 of cpu in container main.",
            "Delete pod default/loader.",
        ),
    ),
    Scenario(
        name="a node that has all the pods that it can have",
        scene=pods_of_the_node,
        reason=Reason.NODES_FULL,
        says=("Node n1, which could serve claim one, does not have enough left", "pods"),
        fit="resources 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "it already has the 2 pods that it can have; its devices would do",
            devices="gpu-0",
        ),
        holders=(
            "default/a",
            "default/b priority 5",
        ),
        remedies=("Delete pod default/a.",),
    ),
    Scenario(
        name="the claim has its devices on a node that is full",
        scene=node_of_the_claim,
        reason=Reason.NODES_FULL,
        says="Node n1 does not have enough left of what the pod needs: cpu",
        fit="resources 1, allocated claims 0",
        nearest=Near("n1", "4 cpu wanted, 2 free"),
        holders=(
            "default/first",
            "default/other",
        ),
        remedies=(
            "Ask for 2 instead of 4 of cpu in container main.",
            "Delete pod default/other.",
            "Delete pod default/first so that claim shared can move.",
        ),
    ),
    Scenario(
        name="a host port that another pod has",
        scene=host_port,
        reason=Reason.PORTS_IN_USE,
        says="Node n1, which could serve claim one, already has a pod that uses host port 9100",
        fit="ports 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "a host port that the pod needs is in use; its devices would do",
            devices="gpu-0 gpu-1",
        ),
        holders=("default/exporter",),
        remedies=(
            "Delete pod default/exporter.",
            "Do without host port 9100 in container main.",
        ),
    ),
    Scenario(
        name="a volume that only one pod may use",
        scene=volume_for_a_single_pod,
        reason=Reason.VOLUME_IN_USE,
        says="The pod uses volume claim model, which only one pod may use, and another pod does.",
        fit="volumes 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "a volume that only one pod may use is in use; its devices would do",
            devices="gpu-0 gpu-1",
        ),
        remedies=("Delete pod default/first.",),
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the funnel, the nearest miss, the holders and the remedies are as the scenario says, and every remedy helps."""
    check(scenario)
