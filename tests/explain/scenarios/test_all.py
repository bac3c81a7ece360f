"""All scenarios together: for every reason that has remedies, one of them is carried out on a cluster."""

from __future__ import annotations

import pytest

from drayman.explain.reasons import Reason
from explain.scenarios.collected import SCENARIOS
from explain.scenarios.playing import Play, server
from explain.scenarios.telling import Scenario, explain, named


def played() -> list[Scenario]:
    """The first scenario of each reason that has remedies and that can be played."""
    found: dict[Reason, Scenario] = {}
    for scenario in SCENARIOS:
        if scenario.plays and scenario.remedies and scenario.about == "pod":
            found.setdefault(scenario.reason, scenario)
    return list(found.values())


@pytest.mark.parametrize("scenario", played(), ids=named)
async def test_a_remedy_makes_the_pod_run(scenario: Scenario) -> None:
    """On a cluster the pod waits for the same reason, and gets a node once the first remedy is carried out."""
    world = scenario.scene().world()
    remedy = explain(world, scenario.about).remedies[0]
    async with server(world.features) as client:
        play = Play(client, world.objects)
        await play.begin()
        await play.waits_for(scenario.reason)
        await play.carry_out(remedy)
        node = await play.is_bound()
    assert node in {each.metadata.name for each in world.objects.nodes}
