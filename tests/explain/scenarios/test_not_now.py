"""Scenarios of what waits because others use what it needs."""

from __future__ import annotations

import pytest

from drayman.explain.reasons import Reason
from explain.scenarios.scene import NVIDIA, Scene
from explain.scenarios.telling import Near, Scenario, check, named
from oracle.build import claim, exactly


def third_training() -> Scene:
    scene = Scene("dgx-h100=1")
    scene.holds("bert", "dgx-h100-0", "gpu-0 gpu-1 gpu-2 gpu-3", namespace="team-a")
    scene.holds("llama", "dgx-h100-0", "gpu-4 gpu-5", priority=10)
    return scene.waits("mixtral", {"experts": claim(exactly("gpus", 4, cls=NVIDIA))})


SCENARIOS = (
    Scenario(
        name="two trainings have six GPUs of the only DGX and a third wants four",
        scene=third_training,
        reason=Reason.DEVICES_IN_USE,
        says=("Claim experts, request gpus wants 4", "of 8 that match, 6 are in use", "2 are left"),
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
        holders=("team-a/bert: gpu-0 gpu-1 gpu-2 gpu-3", "default/llama priority 10: gpu-4 gpu-5"),
        remedies=(
            "Ask for 2 instead of 4 in request gpus of claim experts.",
            "Delete pod team-a/bert.",
        ),
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason, the funnel, the nearest miss, the holders and the remedies are as the scenario says, and every remedy helps."""
    check(scenario)
