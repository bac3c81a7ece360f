"""Controllers are kept going, each for itself."""

from __future__ import annotations

import asyncio
import logging
import random
from pathlib import Path

import pytest

from cluster.contract.clusters import in_process
from controllers.world import World, from_template
from drayman.cluster import Backoff, Client, Informers
from drayman.controllers.claims.controller import ClaimController
from drayman.controllers.running import all_controllers, start_controllers

QUICKLY = Backoff(0.001, 0.005, random.Random(1))


class Broken:
    """Fails a few times, then works."""

    def __init__(self, client: Client, informers: Informers) -> None:
        self.runs = 0
        self.works = asyncio.Event()

    async def run(self) -> None:
        self.runs += 1
        if self.runs <= 3:
            raise LookupError("a bug")
        self.works.set()
        await asyncio.Event().wait()


async def test_a_controller_that_fails_is_run_again_and_disturbs_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its failures are reported; the claims of pods are generated meanwhile."""
    made: list[Broken] = []

    def make(client: Client, informers: Informers) -> Broken:
        made.append(Broken(client, informers))
        return made[-1]

    async with in_process(tmp_path) as client:
        informers = Informers(client)
        with caplog.at_level(logging.ERROR):
            makes = (make, ClaimController)
            running = await start_controllers(client, informers, makes, QUICKLY)
            w = World(client, ())
            await w.template()
            await w.pod("p", from_template("x"))
            assert set(await w.generated("p")) == {"x"}
            await made[0].works.wait()
        await running.stop()
        await informers.stop()
    assert made[0].runs == 4
    assert [record.getMessage() for record in caplog.records] == ["Broken failed"] * 3


async def test_all_controllers_start_and_stop(tmp_path: Path) -> None:
    """What runs in production can be stopped at any time, and leaves no task behind."""
    async with in_process(tmp_path) as client:
        before = asyncio.all_tasks()
        informers = Informers(client)
        running = await start_controllers(client, informers, all_controllers())
        await informers.wait_synced()
        assert len(asyncio.all_tasks()) > len(all_controllers())
        await running.stop()
        await informers.stop()
        assert asyncio.all_tasks() == before
