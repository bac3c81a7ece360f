"""All scenarios together: every reason has one, and remedies of every sort are carried out on a cluster."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from drayman.reasons.lost import LOST
from drayman.reasons.reason import Reason
from explain.queues.cases import CASES as QUEUED
from explain.scenarios.collected import SCENARIOS
from explain.scenarios.playing import Play, server
from explain.scenarios.telling import Scenario, explain, named

IS_LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"


def played() -> Iterator[object]:
    """For every reason, one remedy of each sort, from scenarios that can be played; all of them in a long run.

    That every single one helps is shown by each scenario for itself, without a server (`telling.helps`).
    """
    seen: set[tuple[Reason, str]] = set()
    for scenario in SCENARIOS:
        if scenario.plays and scenario.about == "pod":
            for number, sentence in enumerate(scenario.remedies):
                sort = (scenario.reason, sentence.partition(" ")[0])
                if IS_LONG or sort not in seen:
                    yield pytest.param(scenario, number, id=f"{named(scenario)}-{number}")
                seen.add(sort)


def test_every_reason_has_a_scenario() -> None:
    """The scenarios, and the cases of queues, cover the whole list of reasons."""
    reasons = {scenario.reason for scenario in SCENARIOS} | {case.reason for case in QUEUED}
    assert reasons == set(Reason)


def test_there_are_sixty_different_stories() -> None:
    """No two scenarios have one name, and there are at least sixty."""
    names = Counter(scenario.name for scenario in SCENARIOS)
    assert [name for name, number in names.items() if number > 1] == []
    assert len(names) >= 60


def test_a_remedy_of_every_reason_that_has_some_is_played() -> None:
    """Scenarios that cannot be played are the only ones of a reason where no cluster comes into such a state, or not for long."""
    helped = {s.reason for s in SCENARIOS if s.remedies and s.about == "pod"}
    assert helped - {s.reason for s in SCENARIOS if s.remedies and s.plays} <= {
        Reason.CLAIM_INVALID,  # the server does not let such claims in
        Reason.CLAIM_LEFT_BEHIND,  # the scheduler removes them itself
        # Another pod is made in the place of the one that is explained.
        Reason.CLAIM_UNALLOCATED,
        *LOST,
    }


@pytest.mark.parametrize(("scenario", "number"), list(played()))
async def test_the_remedy_makes_the_pod_run(scenario: Scenario, number: int) -> None:
    """On a cluster the pod waits for the same reason, and gets a node once the remedy is carried out."""
    scene = scenario.scene()
    world = scene.world()
    remedy = explain(world, scenario.about).remedies[number]
    async with server(world.features) as client:
        play = Play(client, world.objects, scene.objects)
        await play.begin()
        await play.waits_for(scenario.reason)
        await play.carry_out(remedy)
        node = await play.is_bound()
    assert node in {each.metadata.name for each in world.objects.nodes}
