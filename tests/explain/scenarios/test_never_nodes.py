"""Scenarios of nodes that never do: there are none, they are the wrong ones, or too small, or have no devices."""

from __future__ import annotations

import pytest

from drayman.reasons.reason import Reason
from explain.scenarios.scene import NVIDIA, Scene, gpus, numbered, only
from explain.scenarios.telling import Near, Scenario, check, named
from oracle.build import label_selector

AMD = "gpu.amd.com"
DGX = "dgx-h100-0"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def empty_cluster() -> Scene:
    return Scene().waits("first", {"one": gpus()})


def product_that_no_node_has() -> Scene:
    wanted = {"nvidia.com/gpu.product": "NVIDIA-H200"}
    return Scene("dgx-h100=2").waits("trainer", {"all": gpus(8, cls=NVIDIA)}, nodeSelector=wanted)


def zone_without_nodes() -> Scene:
    terms = label_selector("topology.kubernetes.io/zone", "sim-b", "sim-c")
    affinity = {"nodeAffinity": {REQUIRED: terms}}
    scene = Scene("dgx-h100=1", "cpu=1")
    return scene.waits("trainer", {"one": gpus(cls=NVIDIA)}, affinity=affinity)


def node_that_was_removed() -> Scene:
    affinity = {"nodeAffinity": {REQUIRED: only("dgx-h100-7")}}
    return Scene("dgx-h100=2").waits("agent", {"one": gpus(cls=NVIDIA)}, affinity=affinity)


def more_processors_than_there_are() -> Scene:
    return Scene("dgx-h100=2").waits("loader", {"one": gpus(cls=NVIDIA)}, cpu=256)


def memory_and_gpus_apart() -> Scene:
    scene = Scene().node("small", 2).node("large", allocatable={"memory": "1Ti"})
    return scene.waits("trainer", {"one": gpus()}, memory="64Gi")


def resource_that_nobody_offers() -> Scene:
    return Scene("mi300x=1").waits("trainer", extended={"nvidia.com/gpu": 2})


def no_driver_installed() -> Scene:
    return Scene().node("n1").node("n2").waits("trainer", {"one": gpus()})


SCENARIOS = (
    Scenario(
        name="a claim in a cluster without nodes",
        scene=empty_cluster,
        reason=Reason.NO_NODES,
        says="The cluster has no nodes.",
    ),
    Scenario(
        name="two DGX H100 for a pod that selects nodes with H200",
        scene=product_that_no_node_has,
        reason=Reason.NODE_MISMATCH,
        says="2 nodes that could serve claim all do not match the node selector or affinity of the pod",
        fit="node selector 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "it does not match the pod's node selector or affinity; its devices would do",
            devices=numbered(8),
        ),
        remedies=("Drop nvidia.com/gpu.product=NVIDIA-H200 from the pod's node selector.",),
    ),
    Scenario(
        name="a pod that has to be in zones without nodes",
        scene=zone_without_nodes,
        reason=Reason.NODE_MISMATCH,
        says="Node dgx-h100-0, which could serve claim one, does not match",
        fit="node selector 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "it does not match the pod's node selector or affinity; its devices would do",
            devices=numbered(8),
        ),
        remedies=("Drop the pod's required node affinity.",),
    ),
    Scenario(
        name="a pod that is meant for a node that was removed",
        scene=node_that_was_removed,
        reason=Reason.NODE_MISMATCH,
        says="2 nodes that could serve claim one do not match",
        fit="node selector 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "it does not match the pod's node selector or affinity; its devices would do",
            devices=numbered(8),
        ),
        remedies=("Drop the pod's required node affinity.",),
    ),
    Scenario(
        name="more processors than a DGX has",
        scene=more_processors_than_there_are,
        reason=Reason.NODE_TOO_SMALL,
        says=(
            "2 nodes that could serve claim one are too small for the pod",
            "even when empty",
            "cpu",
        ),
        fit="resources 0",
        funnels={"gpus": "node fit 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0", "256 cpu wanted, it has 224; its devices would do", devices=numbered(8)
        ),
        remedies=("Ask for 224 instead of 256 of cpu in container main.",),
    ),
    Scenario(
        name="the node with GPUs has too little memory and the node with memory has no GPUs",
        scene=memory_and_gpus_apart,
        reason=Reason.NODE_TOO_SMALL,
        says=("Node small, which could serve claim one, is too small", "memory"),
        fit="resources 1",
        funnels={"gpus": "node fit 1/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "small", "64Gi memory wanted, it has 16Gi; its devices would do", devices="gpu-0 gpu-1"
        ),
        remedies=("Ask for 16Gi instead of 64Gi of memory in container main.",),
    ),
    Scenario(
        name="an NVIDIA resource on AMD nodes",
        scene=resource_that_nobody_offers,
        reason=Reason.NODE_TOO_SMALL,
        says="No node offers nvidia.com/gpu, and no device class provides that.",
        fit="resources 0",
        nearest=Near("mi300x-0", "2 nvidia.com/gpu wanted, it has 0"),
    ),
    Scenario(
        name="nodes on which no driver has published anything",
        scene=no_driver_installed,
        reason=Reason.NO_DEVICES,
        says=("Claim one, request gpus wants 1 device", "no node publishes any"),
        funnels={"gpus": "node fit 2/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near("n1", "request gpus of claim one finds 0 of 1 device", missing=1),
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the funnel, the nearest miss, the holders and the remedies are as the scenario says, and every remedy helps."""
    check(scenario)
