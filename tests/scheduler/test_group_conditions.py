"""Groups say whether they are scheduled, whatever becomes of the writes, and however late they are shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from cluster.contract.clusters import in_process
from controllers.world import NAMESPACE, POD_VALUES, World, eventually, stays
from drayman.api.core import Pod
from drayman.api.pod_groups import PodGroup
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import POD_GROUPS, PODS
from drayman.placement.gangs.book import GangBook, key_of_group
from drayman.scheduler.group_conditions import GroupConditions, condition_of
from scheduler.wire import AWAY, FAILURES, Wire, soon

GROUP_VALUES = POD_GROUPS.as_values()


@dataclass(slots=True)
class Desk:
    """Conditions of the group `g` are being written. It is shown as it was when it was made, until it is shown again."""

    world: World
    gangs: GangBook
    conditions: GroupConditions

    async def make(self) -> None:
        await self.world.create(
            GROUP_VALUES,
            {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}},
        )
        await self.show()

    async def show(self) -> None:
        self.gangs.set_group(await self.group())

    async def group(self) -> PodGroup:
        return await self.world.client.get(POD_GROUPS, "g", NAMESPACE)

    async def stuck(self, why: str) -> None:
        self.conditions.stuck(key_of_group(await self.group()), lambda: why)

    async def member(self) -> Pod:
        container = {"name": "main", "image": "example.com/image:1"}
        spec = {"containers": [container], "schedulingGroup": {"podGroupName": "g"}}
        await self.world.create(POD_VALUES, {"metadata": {"name": "p"}, "spec": spec})
        return await self.world.client.get(PODS, "p", NAMESPACE)

    async def said(self) -> tuple[str, str]:
        found = condition_of(await self.group())
        return ("", "") if found is None else (found.status, found.message)

    async def says(self, status: str, message: str = "") -> None:
        await eventually(self.said, lambda found: found == (status, message))


@asynccontextmanager
async def desk(folder: Path, wire: Wire | None = None) -> AsyncIterator[Desk]:
    async with in_process(folder) as client:
        if wire is not None:
            wire.client = client
        gangs = GangBook()
        way = client if wire is None else cast("Client", wire)
        conditions = GroupConditions(way, gangs, time.time)
        running = asyncio.create_task(conditions.run())
        try:
            at = Desk(World(client, ()), gangs, conditions)
            await at.make()
            yield at
        finally:
            running.cancel()
            await asyncio.wait((running,))


@pytest.mark.parametrize("failure", FAILURES, ids=lambda each: type(each).__name__)
async def test_what_could_not_be_written_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: ClusterError
) -> None:
    """Though nothing else happens to the group."""
    soon(monkeypatch)
    wire = Wire(failure, 2)
    async with desk(tmp_path, wire) as at:
        await at.stuck("no room")
        await at.says("False", "no room")
        wire.times = 2
        at.conditions.bound(await at.member())
        await at.says("True")


async def test_a_group_that_is_scheduled_stays_so(tmp_path: Path) -> None:
    """Also if others of its members are refused before that is shown."""
    async with desk(tmp_path) as at:
        at.conditions.bound(await at.member())
        await at.says("True")
        await at.stuck("no room")
        await stays(at.said, lambda found: found == ("True", ""))


async def test_a_reason_that_comes_back_is_news(tmp_path: Path) -> None:
    """Also if the other reason is not shown yet."""
    async with desk(tmp_path) as at:
        await at.stuck("no room")
        await at.says("False", "no room")
        await at.show()
        await at.stuck("no devices")
        await at.says("False", "no devices")
        await at.stuck("no room")
        await at.says("False", "no room")


async def test_another_group_of_the_name_is_not_scheduled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be written about a group that is gone says nothing about the next one."""
    soon(monkeypatch)
    wire = Wire(AWAY, 1)
    async with desk(tmp_path, wire) as at:

        async def replace_group() -> None:
            unprotected = merge_patch({"metadata": {"finalizers": None}})
            await at.world.client.patch(GROUP_VALUES, "g", unprotected, NAMESPACE)
            await at.world.remove(GROUP_VALUES, "g")
            await at.make()

        wire.meanwhile = replace_group
        at.conditions.bound(await at.member())
        await wire.has_failed.wait()
        await at.stuck("no room")
        await at.says("False", "no room")
