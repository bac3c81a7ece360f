"""Scenarios of classes and selectors that let no device through: missing, broken, or with a name misspelt."""

from __future__ import annotations

import pytest

from drayman.reasons.reason import Reason
from explain.scenarios.scene import NVIDIA, Scene, gpus, numbered
from explain.scenarios.telling import Near, Scenario, check, named
from oracle.build import claim, device, exactly, first_available
from oracle.selectors import GPU


def class_by_nearly_its_name() -> Scene:
    return Scene("dgx-h100=1").waits("trainer", {"one": gpus(cls="gpu.nvidia")})


def alternative_of_no_class() -> Scene:
    wanted = first_available("any", exactly("best", 8, cls="b300"), exactly("good", 8, cls=NVIDIA))
    return Scene("dgx-h100=1").waits("trainer", {"eight": claim(wanted)})


def selector_that_does_not_compile() -> Scene:
    wanted = gpus(1, "device.product == 'H100'", cls=NVIDIA)
    return Scene("dgx-h100=1").waits("trainer", {"one": wanted})


def selector_that_fails_on_every_device() -> Scene:
    wanted = gpus(1, f"device.attributes['{NVIDIA}'].architecture > 8", cls=NVIDIA)
    return Scene("dgx-h100=1").waits("trainer", {"one": wanted})


def class_that_does_not_compile() -> Scene:
    scene = Scene().node("n1", 2).device_class("fast", "device.speed > 3")
    return scene.waits("trainer", {"one": gpus(cls="fast")})


def attribute_misspelt() -> Scene:
    wanted = gpus(2, f"device.attributes['{NVIDIA}'].productNmae.matches('H100')", cls=NVIDIA)
    return Scene("dgx-h100=2").waits("trainer", {"two": wanted})


def attribute_in_the_wrong_domain() -> Scene:
    wanted = gpus(2, "device.attributes['nvidia.com'].architecture == 'Hopper'", cls=NVIDIA)
    return Scene("dgx-h100=2").waits("trainer", {"two": wanted})


def capacity_misspelt() -> Scene:
    enough = "memroy.compareTo(quantity('40Gi')) >= 0"
    wanted = gpus(2, f"device.capacity['{NVIDIA}'].{enough}", cls=NVIDIA)
    return Scene("dgx-h100=1").waits("trainer", {"two": wanted})


def attribute_that_is_like_no_other() -> Scene:
    scene = Scene().node("n1", [device("gpu-0", attrs={"model": "a"})])
    return scene.waits("server", {"one": gpus(1, f"device.attributes['{GPU}'].colour == 'green'")})


SCENARIOS = (
    Scenario(
        name="a class by nearly its name",
        scene=class_by_nearly_its_name,
        reason=Reason.CLASS_MISSING,
        says="Claim one, request gpus: device class gpu.nvidia does not exist",
        funnels={"gpus": "node fit 1/20, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim one finds 0 of 1 device (20 not of the class)",
            missing=1,
        ),
        remedies=(
            "Ask for class gpu.nvidia.com instead of gpu.nvidia in request gpus of claim one.",
        ),
    ),
    Scenario(
        name="a first choice of a class that does not exist spoils the second",
        scene=alternative_of_no_class,
        reason=Reason.CLASS_MISSING,
        says="Claim eight, request any/best: device class b300 does not exist",
        funnels={
            "any/best": "node fit 1/20, class 0/0, free 0/0, taints 0/0, count 0/0, together 0/0",
            "any/good": "node fit 1/20, class 1/8, free 1/8, taints 1/8, count 1/8, together 0/0",
        },
        nearest=Near(
            "dgx-h100-0",
            "its devices would do, but the pod cannot have any as it is",
            devices=numbered(8),
        ),
        remedies=("Leave out alternative best of request any of claim eight.",),
    ),
    Scenario(
        name="a selector that does not compile",
        scene=selector_that_does_not_compile,
        reason=Reason.SELECTOR_INVALID,
        says="Claim one, request gpus: the selector `device.product == 'H100'` fails: undefined field 'product'.",
        funnels={"gpus": "node fit 1/20, class 1/8, selector 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim one finds 0 of 1 device (8 not selected)",
            missing=1,
            blocked={numbered(8): "not selected by device.product == 'H100'"},
        ),
        remedies=("Drop the selector `device.product == 'H100'` of request gpus of claim one.",),
        plays=False,
    ),
    Scenario(
        name="a selector that compares text with a number",
        scene=selector_that_fails_on_every_device,
        reason=Reason.SELECTOR_INVALID,
        says=".architecture > 8` fails: no such overload",
        funnels={"gpus": "node fit 1/20, class 1/8, selector 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim one finds 0 of 1 device (8 not selected)",
            missing=1,
            blocked={numbered(8): "not selected by"},
        ),
        remedies=(
            "Drop the selector `device.attributes['gpu.nvidia.com'].architecture > 8` of request gpus of claim one.",
        ),
    ),
    Scenario(
        name="a class whose selector does not compile",
        scene=class_that_does_not_compile,
        reason=Reason.SELECTOR_INVALID,
        says="the selector `device.speed > 3` of class fast fails: undefined field 'speed'",
        funnels={"gpus": "node fit 1/2, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n1", "request gpus of claim one finds 0 of 1 device (2 not of the class)", missing=1
        ),
        plays=False,
    ),
    Scenario(
        name="an attribute with two letters swapped",
        scene=attribute_misspelt,
        reason=Reason.ATTRIBUTE_UNKNOWN,
        says="Claim two, request gpus: a selector reads the attribute gpu.nvidia.com/productNmae, which no device has.",
        funnels={
            "gpus": "node fit 2/40, class 2/16, selector 0/0, free 0/0, taints 0/0, count 0/0"
        },
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim two finds 0 of 2 devices (8 not selected)",
            missing=2,
            blocked={numbered(8): "not selected by"},
        ),
        spelling=("gpu.nvidia.com/productNmae: gpu.nvidia.com/productName 16",),
        remedies=(
            "Write productName instead of productNmae in the selector of request gpus of claim two.",
            "Drop the selector `device.attributes['gpu.nvidia.com'].productNmae.matches('H100')` of request gpus of claim two.",
        ),
    ),
    Scenario(
        name="an attribute in the domain of the company instead of the driver",
        scene=attribute_in_the_wrong_domain,
        reason=Reason.ATTRIBUTE_UNKNOWN,
        says="reads the attribute nvidia.com/architecture, which no device has",
        funnels={
            "gpus": "node fit 2/40, class 2/16, selector 0/0, free 0/0, taints 0/0, count 0/0"
        },
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim two finds 0 of 2 devices (8 not selected)",
            missing=2,
            blocked={numbered(8): "not selected by"},
        ),
        spelling=("nvidia.com/architecture: gpu.nvidia.com/architecture 16",),
        remedies=(
            "Write gpu.nvidia.com/architecture instead of nvidia.com/architecture in the selector of request gpus of claim two.",
            "Drop the selector `device.attributes['nvidia.com'].architecture == 'Hopper'` of request gpus of claim two.",
        ),
    ),
    Scenario(
        name="a capacity with two letters swapped",
        scene=capacity_misspelt,
        reason=Reason.ATTRIBUTE_UNKNOWN,
        says="reads the capacity gpu.nvidia.com/memroy, which no device has",
        funnels={"gpus": "node fit 1/20, class 1/8, selector 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim two finds 0 of 2 devices (8 not selected)",
            missing=2,
            blocked={numbered(8): "not selected by"},
        ),
        spelling=("gpu.nvidia.com/memroy: gpu.nvidia.com/memory 8",),
        remedies=(
            "Write memory instead of memroy in the selector of request gpus of claim two.",
            "Drop the selector `device.capacity['gpu.nvidia.com'].memroy.compareTo(quantity('40Gi')) >= 0` of request gpus of claim two.",
        ),
    ),
    Scenario(
        name="an attribute that is like no other",
        scene=attribute_that_is_like_no_other,
        reason=Reason.ATTRIBUTE_UNKNOWN,
        says="reads the attribute gpu.example.com/colour, which no device has",
        funnels={"gpus": "node fit 1/1, class 1/1, selector 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "n1",
            "request gpus of claim one finds 0 of 1 device (1 not selected)",
            missing=1,
            blocked={"gpu-0": "not selected by"},
        ),
        spelling=("gpu.example.com/colour: ",),
        remedies=(
            "Drop the selector `device.attributes['gpu.example.com'].colour == 'green'` of request gpus of claim one.",
        ),
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the funnel, the nearest miss, the holders and the remedies are as the scenario says, and every remedy helps."""
    check(scenario)
