"""Scenarios of devices that others use."""

from __future__ import annotations

import pytest

from drayman.reasons.reason import Reason
from explain.scenarios.scene import NVIDIA, Scene, gpus, numbered
from explain.scenarios.telling import Near, Scenario, check, named
from oracle.build import claim, device, everything, exactly, first_available
from oracle.selectors import GPU

DGX = "dgx-h100-0"
FABRIC = "fabric.example.com"


def third_training() -> Scene:
    scene = Scene("dgx-h100=1")
    scene.holds("bert", DGX, "gpu-0 gpu-1 gpu-2 gpu-3", namespace="team-a")
    scene.holds("llama", DGX, "gpu-4 gpu-5", priority=10)
    return scene.waits("mixtral", {"experts": gpus(4, cls=NVIDIA)})


def every_gpu_of_a_node() -> Scene:
    scene = Scene("dgx-h100=2").holds("notebook", DGX, "gpu-3")
    scene.holds("bert", "dgx-h100-1", "gpu-0 gpu-1")
    return scene.waits("burn-in", {"node": claim(everything("gpus", cls=NVIDIA))})


def both_alternatives() -> Scene:
    scene = Scene().device_class("large", f"device.attributes['{GPU}'].memory == 80")
    scene.device_class("small", f"device.attributes['{GPU}'].memory == 40")
    scene.node("n1", [device(f"gpu-{n}", attrs={"memory": 80 if n < 2 else 40}) for n in range(6)])
    scene.holds("a", "n1", "gpu-1", priority=100).holds("b", "n1", "gpu-2 gpu-3")
    two, four = exactly("large", 2, cls="large"), exactly("small", 4, cls="small")
    return scene.waits("server", {"either": claim(first_available("any", two, four))})


def extended_resource() -> Scene:
    scene = Scene("dgx-h100=1").holds("bert", DGX, numbered(7))
    return scene.waits("legacy", extended={"nvidia.com/gpu": 2})


def devices_in_the_network() -> Scene:
    scene = Scene().device_class("fabric", f"device.driver == '{FABRIC}'").node("n1").node("n2")
    scene.slice(["target-0", "target-1"], pool="fabric", driver=FABRIC, allNodes=True)
    scene.holds("db-0", "n1", "target-0", pool="fabric", driver=FABRIC, cls="fabric", priority=9)
    scene.holds("db-1", "n2", "target-1", pool="fabric", driver=FABRIC, cls="fabric")
    return scene.waits("db-2", {"disk": gpus(cls="fabric")})


def job_with_a_deadline() -> Scene:
    scene = Scene("dgx-h100=1").job("nightly", activeDeadlineSeconds=7200)
    scene.holds("nightly-x", DGX, numbered(8), job="nightly")
    return scene.waits("morning", {"two": gpus(2, cls=NVIDIA)})


def two_small_pods() -> Scene:
    scene = Scene().node("n1", 4).holds("vip", "n1", "gpu-2 gpu-3", priority=1000)
    scene.holds("web-0", "n1", "gpu-0", namespace="web")
    scene.holds("web-1", "n1", "gpu-1", namespace="web")
    return scene.waits("trainer", {"two": gpus(2)}, priority=100)


def forgotten_claim() -> Scene:
    scene = Scene().node("n1", 1)
    result = {"request": "gpus", "driver": GPU, "pool": "n1", "device": "gpu-0"}
    scene.claim("forgotten", gpus(), [result], node="n1")
    return scene.waits("server", {"one": gpus()})


def claim_from_a_template() -> Scene:
    scene = Scene().node("n1", 2).holds("a", "n1", "gpu-0").template("pair", gpus(2))
    return scene.waits("trainer", {"gpus": "pair"})


SCENARIOS = (
    Scenario(
        name="two trainings have six GPUs of the only DGX and a third wants four",
        scene=third_training,
        reason=Reason.DEVICES_IN_USE,
        says="Claim experts, request gpus wants 4 devices; of 8 that match, 6 are in use, and 2 are left",
        funnels={"gpus": "node fit 1/20, class 1/8, free 1/2, taints 1/2, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim experts finds 2 of 4 devices (6 in use)",
            devices="gpu-6 gpu-7",
            missing=2,
            blocked={
                "gpu-0 gpu-1 gpu-2 gpu-3": "in use by team-a/bert-claim (bert)",
                "gpu-4 gpu-5": "in use by default/llama-claim (llama)",
            },
        ),
        holders=(
            "team-a/bert: gpu-0 gpu-1 gpu-2 gpu-3",
            "default/llama priority 10: gpu-4 gpu-5",
        ),
        remedies=(
            "Ask for 2 instead of 4 in request gpus of claim experts.",
            "Delete pod team-a/bert.",
        ),
    ),
    Scenario(
        name="all GPUs of a node while a notebook has one of them",
        scene=every_gpu_of_a_node,
        reason=Reason.DEVICES_IN_USE,
        says="Claim node, request gpus wants all devices of a node; of 16 that match, 3 are in use, and no node has more than 7 left",
        funnels={"gpus": "node fit 2/40, class 2/16, free 2/13, taints 2/13, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim node finds 7 of all 8 devices (1 in use)",
            devices="gpu-0 gpu-1 gpu-2 gpu-4 gpu-5 gpu-6 gpu-7",
            missing=1,
            blocked={"gpu-3": "in use by default/notebook-claim (notebook)"},
        ),
        holders=(
            "default/notebook: gpu-3",
            "default/bert: gpu-0 gpu-1",
        ),
        remedies=(
            "Ask for 7 instead of all in request gpus of claim node.",
            "Delete pod default/notebook.",
        ),
    ),
    Scenario(
        name="both alternatives are in use",
        scene=both_alternatives,
        reason=Reason.DEVICES_IN_USE,
        says="Claim either, request any/large wants 2 devices; of 2 that match, 1 is in use, and 1 is left",
        funnels={
            "any/large": "node fit 1/6, class 1/2, free 1/1, taints 1/1, count 0/0",
            "any/small": "node fit 1/6, class 1/4, free 1/2, taints 1/2, count 0/0",
        },
        nearest=Near(
            "n1",
            "request any/large of claim either finds 1 of 2 devices (1 in use)",
            devices="gpu-0",
            missing=1,
            blocked={"gpu-1": "in use by default/a-claim (a)"},
        ),
        holders=(
            "default/a priority 100: gpu-1",
            "default/b: gpu-2 gpu-3",
        ),
        remedies=(
            "Ask for 1 instead of 2 in request any/large of claim either.",
            "Ask for 2 instead of 4 in request any/small of claim either.",
            "Delete pod default/b.",
            "Ask for class gpu instead of large in request any/large of claim either.",
            "Ask for class small instead of large in request any/large of claim either.",
        ),
    ),
    Scenario(
        name="a pod that still asks for nvidia.com/gpu",
        scene=extended_resource,
        reason=Reason.DEVICES_IN_USE,
        says="Extended resource nvidia.com/gpu wants 2 devices; of 8 that match, 7 are in use, and 1 is left",
        funnels={
            "container-0-request-0": "node fit 1/20, class 1/8, free 1/1, taints 1/1, count 0/0"
        },
        nearest=Near(
            "dgx-h100-0",
            "what extended resources want of class gpu.nvidia.com finds 1 of 2 devices (7 in use)",
            devices="gpu-7",
            missing=1,
            blocked={numbered(7): "in use by default/bert-claim (bert)"},
        ),
        holders=("default/bert: gpu-0 gpu-1 gpu-2 gpu-3 gpu-4 gpu-5 gpu-6",),
        remedies=(
            "Ask for 1 instead of 2 nvidia.com/gpu in container main.",
            "Delete pod default/bert.",
        ),
    ),
    Scenario(
        name="storage targets that every node can reach",
        scene=devices_in_the_network,
        reason=Reason.DEVICES_IN_USE,
        says="Claim disk, request gpus wants 1 device; those that match are in use",
        funnels={"gpus": "node fit 2/2, class 2/2, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "request gpus of claim disk finds 0 of 1 device (2 in use)",
            missing=1,
            blocked={
                "target-0": "in use by default/db-0-claim (db-0)",
                "target-1": "in use by default/db-1-claim (db-1)",
            },
        ),
        holders=(
            "default/db-0 priority 9: target-0",
            "default/db-1: target-1",
        ),
        remedies=("Delete pod default/db-1.",),
    ),
    Scenario(
        name="a job with a deadline has the whole node",
        scene=job_with_a_deadline,
        reason=Reason.DEVICES_IN_USE,
        says="Claim two, request gpus wants 2 devices; all 8 that match are in use",
        funnels={"gpus": "node fit 1/20, class 1/8, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim two finds 0 of 2 devices (8 in use)",
            missing=2,
            blocked={numbered(8): "in use by default/nightly (Job)"},
        ),
        holders=(
            "default/nightly-x of Job/nightly: gpu-0 gpu-1 gpu-2 gpu-3 gpu-4 gpu-5 gpu-6 gpu-7",
        ),
        remedies=(
            "Wait for the end of job default/nightly, which is at 2027-01-15T09:00:00Z at the latest.",
            "Delete pod default/nightly-x, and suspend job/nightly, which would recreate it.",
        ),
    ),
    Scenario(
        name="two small pods are in the way and the third is more important",
        scene=two_small_pods,
        reason=Reason.DEVICES_IN_USE,
        says="all 4 that match are in use",
        funnels={"gpus": "node fit 1/4, class 1/4, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "request gpus of claim two finds 0 of 2 devices (4 in use)",
            missing=2,
            blocked={
                "gpu-0": "in use by web/web-0-claim (web-0)",
                "gpu-1": "in use by web/web-1-claim (web-1)",
                "gpu-2 gpu-3": "in use by default/vip-claim (vip)",
            },
        ),
        holders=(
            "web/web-0: gpu-0",
            "web/web-1: gpu-1",
            "default/vip priority 1000: gpu-2 gpu-3",
        ),
        remedies=("Delete pods web/web-0 and web/web-1.",),
    ),
    Scenario(
        name="a claim that nobody uses any more keeps the last GPU",
        scene=forgotten_claim,
        reason=Reason.DEVICES_IN_USE,
        says="the only one that matches is in use",
        funnels={"gpus": "node fit 1/1, class 1/1, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "request gpus of claim one finds 0 of 1 device (1 in use)",
            missing=1,
            blocked={"gpu-0": "in use by default/forgotten"},
        ),
        holders=("default/forgotten: gpu-0",),
        remedies=("Delete claim default/forgotten, which no pod uses.",),
    ),
    Scenario(
        name="a claim that is still to be made from a template",
        scene=claim_from_a_template,
        reason=Reason.DEVICES_IN_USE,
        says="Claim gpus, request gpus wants 2 devices; of 2 that match, 1 is in use, and 1 is left",
        funnels={"gpus": "node fit 1/2, class 1/2, free 1/1, taints 1/1, count 0/0"},
        nearest=Near(
            "n1",
            "request gpus of claim gpus finds 1 of 2 devices (1 in use)",
            devices="gpu-1",
            missing=1,
            blocked={"gpu-0": "in use by default/a-claim (a)"},
        ),
        holders=("default/a: gpu-0",),
        remedies=(
            "Ask for 1 instead of 2 in request gpus of template pair.",
            "Delete pod default/a.",
        ),
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the funnel, the nearest miss, the holders and the remedies are as the scenario says, and every remedy helps."""
    check(scenario)
