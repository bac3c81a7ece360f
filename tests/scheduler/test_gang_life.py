"""Gangs that get members by a decision which is then taken back: the server shows nothing of that."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cluster.contract.clusters import in_process
from controllers.world import World, eventually
from drayman.api.core import Pod
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Handlers, Informers
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import PODS, JsonObject
from drayman.placement.gangs.book import GangBook
from drayman.scheduler import gang_life
from drayman.scheduler.gang_life import BELOW, GangLife

POD_VALUES = PODS.as_values()
STATED = {"drayman.dev/gang": "2", "drayman.dev/gang-name": "train", "drayman.dev/gang-grace": "0s"}


class Hearing(EventRecorder):
    """Calls somebody before it records that a gang is below its quorum."""

    heard: Callable[[], None] = staticmethod(lambda: None)

    def record(self, regarding: Any, type_: Any, reason: str, *rest: Any) -> None:
        if reason == BELOW:
            self.heard()
        super().record(regarding, type_, reason, *rest)


@dataclass(slots=True)
class Watch:
    """A gang of two, of which `p` has a node and `q` waits for one."""

    world: World
    gangs: GangBook
    life: GangLife
    recorder: Hearing

    async def create(self, name: str, **spec: str) -> None:
        container: JsonObject = {"name": "main", "image": "example.com/image:1"}
        metadata = {"name": name, "annotations": STATED}
        made = {"metadata": metadata, "spec": {"containers": [container], **spec}}
        await self.world.create(POD_VALUES, made)

    async def known(self, name: str) -> Pod:
        """A pod, once the gang has it."""

        async def read() -> Pod | None:
            pod = await self.world.get_pod(name)
            return None if pod is None or self.gangs.member(pod.metadata.uid) is None else pod

        found = await eventually(read, lambda pod: pod is not None)
        assert found is not None
        return found

    async def evicted(self, name: str) -> None:
        async def read() -> Pod | None:
            return await self.world.get_pod(name)

        await eventually(
            read, lambda pod: pod is None or pod.metadata.deletion_timestamp is not None
        )


@asynccontextmanager
async def watch(folder: Path) -> AsyncIterator[Watch]:
    async with in_process(folder) as client:
        gangs, informers = GangBook(), Informers(client)
        handlers, recorder = Handlers(informers), Hearing(client, "default-scheduler")
        names = frozenset({"default-scheduler"})
        life = GangLife(client, gangs, recorder, names, time.time, str)

        def follow(notice: Notice[Pod]) -> None:
            (gangs.forget if notice.type == "DELETED" else gangs.see)(notice.object)

        handlers.add(PODS, follow)
        life.follow(handlers)
        at = Watch(World(client, ()), gangs, life, recorder)
        await at.create("p", nodeName="n")
        await at.create("q")
        await informers.start()
        await informers.wait_synced()
        try:
            yield at
        finally:
            await life.stop()
            await informers.stop()


async def test_a_gang_is_ended_that_seemed_complete_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the end of its grace period a decision is under way that gives it enough members, and then it is taken back."""
    monkeypatch.setattr(gang_life, "AGAIN_S", 0.01)
    async with watch(tmp_path) as at:
        q = await at.known("q")
        seemed_complete = asyncio.Event()

        def decide() -> None:
            at.gangs.place(q, "n")
            seemed_complete.set()

        at.recorder.heard = decide
        at.life.begin()
        await seemed_complete.wait()
        for _ in range(5):  # the grace period is over by then
            await asyncio.sleep(0)
        at.gangs.displace(q.metadata.uid)
        await at.evicted("p")


async def test_a_decision_that_is_taken_back_is_noticed(tmp_path: Path) -> None:
    """The gang was complete when it was looked at, and there is nothing that the server shows afterwards."""
    async with watch(tmp_path) as at:
        q = await at.known("q")
        at.gangs.place(q, "n")
        at.life.begin()
        await asyncio.sleep(gang_life.GATHER_S)  # the gang is looked at just before
        at.gangs.displace(q.metadata.uid)
        at.life.taken_back(q)
        await at.evicted("p")
