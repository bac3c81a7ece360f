"""Scenarios of pods that are held back by what drivers have published, by features that are off, or by the search itself."""

from __future__ import annotations

import pytest

from drayman.reasons.reason import Reason
from explain.scenarios.scene import NVIDIA, Scene
from explain.scenarios.telling import Near, Scenario, check, named
from oracle.build import claim, everything, exactly, first_available, shared

MIG = "mig.nvidia.com"
EIGHT = "gpu-0 gpu-1 gpu-2 gpu-3 gpu-4 gpu-5 gpu-6 gpu-7"
ALL_PASS = "node fit 1/6, class 1/6, free 1/6, taints 1/6, capacity 1/6, count 1/6"


# Pools.


def slices_missing() -> Scene:
    scene = Scene("dgx-h100-mig=1")
    slices = scene.objects["slices"]
    slices[:] = [s for s in slices if s["metadata"]["name"] != "dgx-h100-mig-0-gpu.nvidia.com-05"]
    return scene.waits("notebook", {"slice": claim(exactly("slice", cls=MIG))})


def half_a_pool() -> Scene:
    scene = Scene().node("node-a").node("node-b", 1)
    scene.slice(["gpu-0", "gpu-1"], pool="node-a", of=2, nodeName="node-a")
    return scene.waits("infer", {"pair": claim(exactly("gpus", 2))})


def all_of_half_a_pool() -> Scene:
    scene = Scene().node("node-a").slice(["gpu-0", "gpu-1"], pool="node-a", of=2, nodeName="node-a")
    return scene.waits("benchmark", {"all": claim(everything("gpus"))})


def published_again(scene: Scene) -> Scene:
    """A driver that has forgotten to take back what it published before."""
    for name in ("old", "new"):
        scene.slice(["gpu-0", "gpu-1"], pool="node-a", of=2, nodeName="node-a", name=name)
    return scene


def published_twice() -> Scene:
    scene = published_again(Scene().node("node-a").node("node-b", 1))
    return scene.waits("infer", {"pair": claim(exactly("gpus", 2))})


def overlapping_when_all_are_wanted() -> Scene:
    scene = published_again(Scene().node("node-a"))
    return scene.waits("benchmark", {"all": claim(everything("gpus"))})


# Features, and the search itself.


def mig_without_partitions() -> Scene:
    scene = Scene("dgx-h100-mig=1", off=["partitionable_devices"])
    whole = 'device.attributes["gpu.nvidia.com"].profile == "7g.80gb"'
    return scene.waits("notebook", {"slice": claim(exactly("slice", cls=MIG, select=[whole]))})


def shares_without_capacity() -> Scene:
    scene = Scene(off=["consumable_capacity"])
    scene.node("node-a", [shared("gpu-0", {"memory": {"value": "80Gi"}})])
    return scene.waits("infer", {"share": claim(exactly("gpu", asks={"memory": "10Gi"}))})


def monitor_without_admin() -> Scene:
    scene = Scene("dgx-h100=1", off=["admin_access"])
    watch = everything("gpus", cls=NVIDIA, admin=True)
    return scene.waits("dcgm", {"monitor": claim(watch)})


def alternatives_without_lists() -> Scene:
    scene = Scene(off=["prioritized_list"]).node("node-a", 2)
    either = first_available("gpus", exactly("two", 2), exactly("one"))
    return scene.waits("infer", {"either": claim(either)})


def fabric_without_conditions() -> Scene:
    scene = Scene("example-binding-conditions=1", off=["binding_conditions"])
    return scene.waits("infer", {"one": claim(exactly("gpu", cls="gpu.example.com"))})


SHARES = (
    *(16, 14, 19, 9, 24, 23, 19, 22, 18, 20, 23, 16),
    *(19, 25, 17, 22, 26, 16, 18, 22, 25, 21, 26, 20),
)
"""In GiB. They fill six GPUs of 80 GiB to the last one, in a way that is hard to find."""


def hard_to_pack() -> Scene:
    whole = {"memory": {"value": "80Gi"}}
    scene = Scene().node("node-a", [shared(f"gpu-{n}", whole) for n in range(6)])
    asked = [exactly(f"m{n}", asks={"memory": f"{size}Gi"}) for n, size in enumerate(SHARES)]
    return scene.waits("ensemble", {"models": claim(*asked)})


SCENARIOS = (
    Scenario(
        name="one of nine slices of a MIG node is missing",
        scene=slices_missing,
        reason=Reason.POOL_INCOMPLETE,
        says=("Pool gpu.nvidia.com/dgx-h100-mig-0 is incomplete", "8 of 9 slices", "claim slice"),
        funnels={"slice": "node fit 1/12, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-mig-0",
            "request slice of claim slice finds 0 of 1 device (12 not of the class)",
            missing=1,
        ),
    ),
    Scenario(
        name="half of a pool is published",
        scene=half_a_pool,
        reason=Reason.POOL_INCOMPLETE,
        says=("Pool gpu.example.com/node-a is incomplete", "1 of 2 slices", "claim pair"),
        funnels={"gpus": "node fit 2/1, class 1/1, free 1/1, taints 1/1, count 0/0"},
        nearest=Near(
            "node-b", "request gpus of claim pair finds 1 of 2 devices", devices="gpu-0", missing=1
        ),
        remedies=("Ask for 1 instead of 2 in request gpus of claim pair.",),
    ),
    Scenario(
        name="all devices of half a pool are wanted",
        scene=all_of_half_a_pool,
        reason=Reason.POOL_INCOMPLETE,
        says=("Pool gpu.example.com/node-a is incomplete", "claim all"),
        funnels={"gpus": "node fit 1/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "node-a",
            "request gpus of claim all wants all devices, but pool gpu.example.com/node-a is incomplete",
            missing=1,
        ),
    ),
    Scenario(
        name="two slices publish the same GPUs",
        scene=published_twice,
        reason=Reason.POOL_INVALID,
        says=(
            "Pool gpu.example.com/node-a is invalid",
            "duplicate device name gpu-0",
            "claim pair",
        ),
        funnels={"gpus": "node fit 2/1, class 1/1, free 1/1, taints 1/1, count 0/0"},
        nearest=Near(
            "node-b", "request gpus of claim pair finds 1 of 2 devices", devices="gpu-0", missing=1
        ),
        remedies=("Ask for 1 instead of 2 in request gpus of claim pair.",),
    ),
    Scenario(
        name="all devices of a pool that contradicts itself are wanted",
        scene=overlapping_when_all_are_wanted,
        reason=Reason.POOL_INVALID,
        says=("Pool gpu.example.com/node-a is invalid", "claim all"),
        funnels={"gpus": "node fit 1/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "node-a",
            "request gpus of claim all wants all devices, but pool gpu.example.com/node-a is invalid",
            missing=1,
        ),
    ),
    Scenario(
        name="MIG slices without the feature for partitions",
        scene=mig_without_partitions,
        reason=Reason.FEATURE_OFF,
        says=(
            "Claim slice, request slice wants 1 device",
            "partitionable devices are switched off",
        ),
        funnels={
            "slice": "node fit 1/220, class 1/200, selector 1/8, free 1/8, taints 1/8, feature 0/0, count 0/0"
        },
        nearest=Near(
            "dgx-h100-mig-0",
            "request slice of claim slice wants 1 device, but partitionable devices are off",
            missing=1,
            blocked={f"gpu-{n}-mig-7g80gb-0-0": "partitionable devices are off" for n in range(8)},
        ),
    ),
    Scenario(
        name="a share of a GPU without the feature for capacity",
        scene=shares_without_capacity,
        reason=Reason.FEATURE_OFF,
        says=("Claim share, request gpu asks for capacity", "consumable capacity is switched off"),
        funnels={
            "gpu": "node fit 1/1, feature 0/0, class 0/0, free 0/0, taints 0/0, capacity 0/0, count 0/0"
        },
        nearest=Near(
            "node-a",
            "request gpu of claim share wants 1 device, but consumable capacity is off",
            missing=1,
        ),
    ),
    Scenario(
        name="monitoring without the feature for admin access",
        scene=monitor_without_admin,
        reason=Reason.FEATURE_OFF,
        says="Claim monitor, request gpus asks for admin access, which is switched off",
        funnels={"gpus": "node fit 1/20, feature 0/0, class 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "dgx-h100-0",
            "request gpus of claim monitor wants all devices, but admin access is off",
            missing=1,
        ),
    ),
    Scenario(
        name="alternatives without the feature for prioritized lists",
        scene=alternatives_without_lists,
        reason=Reason.FEATURE_OFF,
        says="Claim either, request gpus has alternatives, but prioritized lists are switched off",
        funnels={
            "gpus/two": "node fit 1/2, feature 0/0, class 0/0, free 0/0, taints 0/0, count 0/0",
            "gpus/one": "node fit 1/2, feature 0/0, class 0/0, free 0/0, taints 0/0, count 0/0",
        },
        nearest=Near(
            "node-a",
            "request gpus/one of claim either wants 1 device, but prioritized lists are off",
            missing=1,
        ),
    ),
    Scenario(
        name="GPUs of a fabric without the feature for binding conditions",
        scene=fabric_without_conditions,
        reason=Reason.FEATURE_OFF,
        says=(
            "Claim one, request gpu wants 1 device",
            "binding conditions, which are switched off",
        ),
        funnels={"gpu": "node fit 1/18, class 1/8, feature 0/0, free 0/0, taints 0/0, count 0/0"},
        nearest=Near(
            "example-binding-conditions-0",
            "request gpu of claim one wants 1 device, but binding conditions are off",
            missing=1,
            blocked={EIGHT: "binding conditions are off"},
        ),
    ),
    Scenario(
        name="shares that fill six GPUs to the last byte",
        scene=hard_to_pack,
        reason=Reason.SEARCH_LIMIT,
        says=("claim models was given up on 1 node", "tried again"),
        funnels={f"m{n}": ALL_PASS for n in range(len(SHARES))},
        nearest=Near(
            "node-a",
            "each request alone would find its devices; whether all of them would together is not known",
            devices="gpu-0 gpu-1 gpu-2 gpu-3 gpu-4 gpu-5",
        ),
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the funnel, the nearest miss, the holders and the remedies are as the scenario says, and every remedy helps."""
    check(scenario)
