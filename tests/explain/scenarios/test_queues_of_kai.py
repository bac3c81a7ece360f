"""Scenarios of pods that a queue of the KAI Scheduler keeps out."""

from __future__ import annotations

import pytest

from drayman.reasons.reason import Reason
from explain.scenarios.scene import NVIDIA, Scene, numbered
from explain.scenarios.telling import Scenario, check, named
from oracle.build import claim, exactly
from oracle.nodes import JsonObject

TWO_GPUS = claim(exactly("gpus", 2, cls=NVIDIA))


def queue(name: str, **gpu: int) -> JsonObject:
    return {"metadata": {"name": name}, "spec": {"resources": {"gpu": gpu}}}


def waiting_in(name: str, scene: Scene, **fields: object) -> Scene:
    labels = {"kai.scheduler/queue": name}
    return scene.waits("llama", {"gpus": TWO_GPUS}, labels=labels, **fields)


def in_a_queue_that_is_full() -> Scene:
    scene = Scene("dgx-h100=1").add("kai_queues", queue("research", quota=2, limit=3))
    labels = {"kai.scheduler/queue": "research"}
    scene.holds("bert", "dgx-h100-0", numbered(2), labels=labels)
    return waiting_in("research", scene)


def firm_and_beyond_the_quota() -> Scene:
    scene = Scene("dgx-h100=1").add("kai_queues", queue("research", quota=1, limit=-1))
    return waiting_in("research", scene, priority=100)


def in_a_queue_that_is_misspelt() -> Scene:
    scene = Scene("dgx-h100=1").add("kai_queues", queue("research", quota=2, limit=-1))
    return waiting_in("reserch", scene)


SCENARIOS = (
    Scenario(
        name="a queue of KAI has reached its limit",
        scene=in_a_queue_that_is_full,
        reason=Reason.OVER_LIMIT,
        says="Queue research has a limit of 3: 2 GPUs wanted, 2 in use, by pod default/bert (2).",
    ),
    Scenario(
        name="work that is not preemptible exceeds the quota of its queue",
        scene=firm_and_beyond_the_quota,
        reason=Reason.NON_PREEMPTIBLE_OVER_QUOTA,
        says="research",
    ),
    Scenario(
        name="a queue of KAI is misspelt",
        scene=in_a_queue_that_is_misspelt,
        reason=Reason.QUEUE_DOES_NOT_EXIST,
        says=("reserch", "research"),
    ),
)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=named)
def test_what_is_told(scenario: Scenario) -> None:
    """The reason names the queue, and what it has."""
    check(scenario)
