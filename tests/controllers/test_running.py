"""Controllers are kept going, each for itself."""

from __future__ import annotations

import asyncio
import logging
import random
from pathlib import Path

import pytest

from cluster.contract.clusters import in_process
from controllers.world import World, from_template
from drayman.cluster import Backoff, Client, Election, Informers
from drayman.cluster.resources import LEASES
from drayman.controllers.claims.controller import ClaimController
from drayman.controllers.running import (
    ControllerOptions,
    RunningControllers,
    all_controllers,
    start_controllers,
)

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


class Counting:
    """Counts how many of its kind are at work."""

    at_work = 0

    def __init__(self, client: Client, informers: Informers) -> None:
        """Needs neither."""

    async def run(self) -> None:
        Counting.at_work += 1
        try:
            await asyncio.Event().wait()
        finally:
            Counting.at_work -= 1


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
        options = ControllerOptions((make, ClaimController), backoff=QUICKLY)
        with caplog.at_level(logging.ERROR):
            running = await start_controllers(client, informers, options)
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
        running = await start_controllers(client, informers)
        await informers.wait_synced()
        assert len(asyncio.all_tasks()) > len(all_controllers())
        await running.stop()
        await informers.stop()
        assert asyncio.all_tasks() == before


async def test_of_several_candidates_one_works(tmp_path: Path) -> None:
    """Only the leader's controllers run; when it leaves, the next one takes over."""

    def election(identity: str) -> Election:
        return Election(
            name="controllers",
            namespace="default",
            identity=identity,
            lease_seconds=3,
            renew_deadline=2.0,
            retry_period=0.05,
        )

    async def stand(client: Client, identity: str) -> tuple[RunningControllers, Informers]:
        informers = Informers(client)
        options = ControllerOptions((Counting,), election=election(identity), backoff=QUICKLY)
        return await start_controllers(client, informers, options), informers

    async def until_led_by(client: Client, identity: str) -> None:
        for _ in range(500):
            found = await client.list(LEASES, "default")
            holders = [lease["spec"].get("holderIdentity") for lease in found.items]
            if holders == [identity] and Counting.at_work == 1:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(f"{identity} does not lead, {Counting.at_work} are at work")

    async with in_process(tmp_path) as client:
        first = await stand(client, "a")
        await until_led_by(client, "a")
        second = await stand(client, "b")
        await asyncio.sleep(0.2)
        assert Counting.at_work == 1
        await first[0].stop()
        await until_led_by(client, "b")
        await second[0].stop()
        assert Counting.at_work == 0
        for _, informers in (first, second):
            await informers.stop()
