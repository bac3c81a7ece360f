"""Scenarios of devices that do not exist: of that kind, of that size, or so many of them."""

from __future__ import annotations

import pytest

from drayman.reasons.reason import Reason
from explain.scenarios.scene import NVIDIA, Scene, gpus, numbered
from explain.scenarios.telling import Near, Scenario, check, named
from oracle.build import capacity, claim, device, exactly, first_available, partitioned, shared
from oracle.selectors import GPU

AMD = "gpu.amd.com"


def product_that_is_not_there() -> Scene:
    wanted = gpus(4, f"device.attributes['{NVIDIA}'].productName == 'NVIDIA H200'", cls=NVIDIA)
    return Scene("dgx-h100=2").waits("trainer", {"four": wanted})


def class_of_another_vendor() -> Scene:
    scene = Scene("dgx-h100=1").device_class(AMD, f"device.driver == '{AMD}'")
    return scene.waits("trainer", {"one": gpus(cls=AMD)})


def one_condition_too_many() -> Scene:
    text = (
        f"device.attributes['{NVIDIA}'].architecture == 'Hopper' &&"
        f" device.capacity['{NVIDIA}'].memory.compareTo(quantity('96Gi')) >= 0"
    )
    return Scene("dgx-h100=1").waits("trainer", {"two": gpus(2, text, cls=NVIDIA)})


def share_larger_than_a_gpu() -> Scene:
    memory = {"memory": capacity("40Gi")}
    scene = Scene().node("n1", [shared("gpu-0", memory), shared("gpu-1", memory)])
    return scene.waits("server", {"share": gpus(asks={"memory": "48Gi"})})


def share_of_something_else() -> Scene:
    scene = Scene().node("n1", [shared("gpu-0", {"memory": capacity("40Gi")})])
    return scene.waits("server", {"share": gpus(asks={"memory": "8Gi", "bandwidth": "100"})})


def more_than_a_node_has() -> Scene:
    return Scene("dgx-h100=2").waits("trainer", {"sixteen": gpus(16, cls=NVIDIA)})


def more_than_a_host_has() -> Scene:
    return Scene("tpu-v6e=3").waits("trainer", {"slice": gpus(8, cls="tpu.google.com")})


def more_partitions_than_a_gpu_has() -> Scene:
    parts = [device(f"part-{n}", spends={"gpu": {"slices": 2}}) for n in range(8)]
    scene = Scene().node("n1")
    scene.add("slices", *partitioned(parts, {"gpu": {"slices": 7}}, pool="n1", nodeName="n1"))
    return scene.waits("server", {"four": gpus(4)})


def too_many_of_either() -> Scene:
    scene = Scene().device_class("big", f"device.attributes['{GPU}'].size == 'big'")
    scene.device_class("small", f"device.attributes['{GPU}'].size == 'small'")
    small = [device(f"small-{n}", attrs={"size": "small"}) for n in range(4)]
    scene.node("n1", [device("big-0", attrs={"size": "big"}), *small])
    wanted = first_available("any", exactly("big", 2, cls="big"), exactly("small", 8, cls="small"))
    return scene.waits("server", {"either": claim(wanted)})


SCENARIOS = (
    Scenario(
        name="GPUs of a product that is not there",
        scene=product_that_is_not_there,
        reason=Reason.NO_SUCH_DEVICE,
        says=(
            "Claim four, request gpus wants 4 devices",
            "none on any node passes the selectors of class and request",
        ),
        funnels={
            "gpus": "node fit 2/40, class 2/16, selector 0/0, free 0/0, taints 0/0, count 0/0"
        },
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim four finds 0 of 4 devices (8 not selected)",
            missing=4,
            blocked={numbered(8): "not selected by"},
        ),
        values=("productName == 'NVIDIA H200': NVIDIA H100 80GB HBM3 16",),
        remedies=(
            "Write 'NVIDIA H100 80GB HBM3' instead of 'NVIDIA H200' in the selector of request gpus of claim four.",
            "Drop the selector `device.attributes['gpu.nvidia.com'].productName == 'NVIDIA H200'` of request gpus of claim four.",
        ),
    ),
    Scenario(
        name="the class of another vendor",
        scene=class_of_another_vendor,
        reason=Reason.NO_SUCH_DEVICE,
        says=("Claim one, request gpus wants 1 device", "none on any node passes"),
        funnels={"gpus": "node fit 1/20, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim one finds 0 of 1 device (20 not of the class)",
            missing=1,
        ),
    ),
    Scenario(
        name="one of two conditions is too much",
        scene=one_condition_too_many,
        reason=Reason.NO_SUCH_DEVICE,
        says=("Claim two, request gpus wants 2 devices", "none on any node passes"),
        funnels={"gpus": "node fit 1/20, class 1/8, selector 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim two finds 0 of 2 devices (8 not selected)",
            missing=2,
            blocked={numbered(8): "not selected by"},
        ),
        values=("memory >= '96Gi': 81559Mi 8",),
        remedies=(
            "Write '81559Mi' instead of '96Gi' in the selector of request gpus of claim two.",
            "Leave `device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('96Gi')) >= 0` out of"
            " the selector of request gpus of claim two.",
        ),
    ),
    Scenario(
        name="a share that is larger than a GPU",
        scene=share_larger_than_a_gpu,
        reason=Reason.CAPACITY_TOO_HIGH,
        says="Claim share, request gpus wants 1 device with 48Gi of memory, more than any that match have even when unused",
        funnels={"gpus": "node fit 1/2, class 1/2, free 1/2, taints 1/2, capacity 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "request gpus of claim share finds 0 of 1 device even if nothing were in use (2 without the capacity)",
            missing=1,
            blocked={"gpu-0 gpu-1": "memory: 48Gi wanted, 40Gi in total"},
        ),
        remedies=("Ask for 40Gi instead of 48Gi of memory in request gpus of claim share.",),
    ),
    Scenario(
        name="a share of something that GPUs do not divide",
        scene=share_of_something_else,
        reason=Reason.CAPACITY_TOO_HIGH,
        says="Claim share, request gpus wants 1 device with bandwidth, a capacity that none of them has",
        funnels={"gpus": "node fit 1/1, class 1/1, free 1/1, taints 1/1, capacity 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "request gpus of claim share finds 0 of 1 device even if nothing were in use (1 without the capacity)",
            missing=1,
            blocked={"gpu-0": "has no bandwidth"},
        ),
        remedies=("Do not ask for bandwidth in request gpus of claim share.",),
    ),
    Scenario(
        name="sixteen GPUs for one pod where nodes have eight",
        scene=more_than_a_node_has,
        reason=Reason.COUNT_TOO_HIGH,
        says="Claim sixteen, request gpus wants 16 devices; no node has more than 8 that match",
        funnels={"gpus": "node fit 2/40, class 2/16, free 2/16, taints 2/16, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim sixteen finds 8 of 16 devices",
            devices=numbered(8),
            missing=8,
        ),
        remedies=("Ask for 8 instead of 16 in request gpus of claim sixteen.",),
    ),
    Scenario(
        name="all eight TPUs of a host that has four",
        scene=more_than_a_host_has,
        reason=Reason.COUNT_TOO_HIGH,
        says="wants 8 devices; no node has more than 4 that match",
        funnels={"gpus": "node fit 3/18, class 3/12, free 3/12, taints 3/12, count 0/0"},
        nearest=Near(
            "tpu-v6e-0",
            "request gpus of claim slice finds 4 of 8 devices",
            devices="0 1 2 3",
            missing=4,
        ),
        remedies=("Ask for 4 instead of 8 in request gpus of claim slice.",),
    ),
    Scenario(
        name="more partitions than a GPU can be divided into",
        scene=more_partitions_than_a_gpu_has,
        reason=Reason.COUNT_TOO_HIGH,
        says="Claim four, request gpus wants 4 devices; 8 match, but no node can provide that many at once",
        funnels={"gpus": "node fit 1/8, class 1/8, free 1/8, taints 1/8, count 1/8, together 0/0"},
        nearest=Near(
            "n1",
            "8 would do, but not 4 devices at once",
            devices="part-0 part-1 part-2 part-3 part-4 part-5 part-6 part-7",
        ),
        remedies=("Ask for 3 instead of 4 in request gpus of claim four.",),
    ),
    Scenario(
        name="too many of either alternative",
        scene=too_many_of_either,
        reason=Reason.COUNT_TOO_HIGH,
        says="Claim either, request any/big wants 2 devices; no node has more than 1 that match",
        funnels={
            "any/big": "node fit 1/5, class 1/1, free 1/1, taints 1/1, count 0/0",
            "any/small": "node fit 1/5, class 1/4, free 1/4, taints 1/4, count 0/0",
        },
        nearest=Near(
            "n1", "request any/big of claim either finds 1 of 2 devices", devices="big-0", missing=1
        ),
        remedies=(
            "Ask for 1 instead of 2 in request any/big of claim either.",
            "Ask for 4 instead of 8 in request any/small of claim either.",
            "Ask for class gpu instead of big in request any/big of claim either.",
            "Ask for class small instead of big in request any/big of claim either.",
        ),
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the funnel, the nearest miss, the holders and the remedies are as the scenario says, and every remedy helps."""
    check(scenario)
