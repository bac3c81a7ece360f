"""Recorded scenarios: what a whole cluster does, compared with what the embedded one does, from the API server to the events."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Final

import pytest

from conformance.differences import DIFFERENCES, assert_only_known_differences
from conformance.records import typed
from conformance.scheduling.cluster import cluster
from conformance.scheduling.replaying import Replay, Times
from conformance.scheduling.scenarios import Scenario
from drayman.allocator import Policy
from patience import PATIENCE_S

FILE: Final = "scheduling/scenarios"
SCENARIOS: Final = typed(FILE, Scenario)
GROUPS: Final = sorted({scenario.group for scenario in SCENARIOS})
IS_LONG: Final = os.environ.get("HYPOTHESIS_PROFILE") == "long"
POLICIES: Final = (Policy.BEST, Policy.FIRST_FIT) if IS_LONG else (Policy.BEST,)
HOLD_S: Final = 1.0 if IS_LONG else 0.25
USUAL: Final = Times(PATIENCE_S, HOLD_S)
KNOWN_TO_DIFFER: Final = Times(4.0, HOLD_S)
"""For scenarios with a checkpoint that is not expected to be reached."""


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with certificates and tokens, which take longer to make than a cluster takes to start."""
    folder = tmp_path_factory.mktemp("credentials") / "drayman"

    async def make() -> None:
        async with cluster(folder, Policy.BEST):
            pass

    asyncio.run(make())
    return folder


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.value)
@pytest.mark.parametrize("group", GROUPS)
def test_a_cluster_comes_to_rest_as_a_real_one(
    group: str, policy: Policy, credentials: Path, tmp_path: Path
) -> None:
    """The same pods are bound and wait, the same devices are allocated and given back, and the same events say so."""
    chosen = [scenario for scenario in SCENARIOS if scenario.group == group]

    async def replay(scenario: Scenario) -> str:
        times = KNOWN_TO_DIFFER if scenario.name in DIFFERENCES.get(FILE, {}) else USUAL
        folder = shutil.copytree(credentials, tmp_path / scenario.name)
        async with cluster(folder, policy) as place:
            return await Replay(scenario, place, times).run()

    async def replay_all() -> list[str]:
        """All at once, each on a cluster of its own, as they mostly wait."""
        return await asyncio.gather(*map(replay, chosen))

    names = [scenario.name for scenario in chosen]
    found = zip(names, asyncio.run(replay_all()), strict=True)
    assert_only_known_differences(FILE, names, {name: text for name, text in found if text})
