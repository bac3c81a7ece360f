"""A bug in the midst of a round costs an attempt, not a pod, whatever the clock is set to meanwhile."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from drayman.apiserver.instance import Options, start
from drayman.apiserver.instance.folder import Folder
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cluster import HttpClient
from drayman.cluster.informers import Informers
from drayman.cluster.inprocess import InProcessClient
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import NODES, PODS, JsonObject
from drayman.cluster.writes import BindWrite, PatchWrite, Write
from drayman.placement.decision.placements import Placement
from drayman.scheduler.options import SchedulerOptions
from drayman.scheduler.running import Scheduler
from patience import PATIENCE_S
from scheduler.behaviour.beside import scheduling, served
from scheduler.behaviour.stage import conditional

NODE: JsonObject = {
    "metadata": {"name": "n"},
    "status": {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "1"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
POD: JsonObject = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


class BreaksOnce(InProcessClient):
    """Raises what no client should, the first time that something is bound."""

    broken = False

    async def write_many(self, writes: Sequence[Write]) -> tuple[object, ...]:
        if not self.broken and any(isinstance(write, BindWrite) for write in writes):
            self.broken = True
            raise KeyError("a bug")
        return await super().write_many(writes)


@pytest.mark.parametrize("leap_s", [0, -86_400, 86_400])
async def test_a_pod_survives_a_bug_in_its_round(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, leap_s: int
) -> None:
    """The decision is taken back, the only place on the node is free again, and the pod is bound at the next attempt.

    When that comes does not depend on the time of day: a clock that is set back does not make the pod wait for as long.
    """
    instance = await start(Options(Folder(tmp_path), durable=False, control_plane=None))
    client = BreaksOnce(ServerBackend(instance.server.core))
    informers = Informers(client)
    options = SchedulerOptions(first_backoff_s=0.01)

    def wall_clock() -> float:
        return time.time() + (leap_s if client.broken else 0)

    made = Scheduler(client, informers, options, wall_clock=wall_clock)
    scheduler = asyncio.create_task(made.run())
    try:
        with caplog.at_level(logging.CRITICAL):
            await client.create(NODES.as_values(), NODE)
            # No controller is there to take off the taint that every new node has.
            await client.patch(NODES, "n", merge_patch({"spec": {"taints": None}}))
            await client.create(PODS.as_values(), POD)
            async with asyncio.timeout(PATIENCE_S):
                while not (await client.get(PODS, "p", "default")).spec.node_name:
                    await asyncio.sleep(0.02)
        assert client.broken
    finally:
        scheduler.cancel()
        await asyncio.gather(scheduler, return_exceptions=True)
        await informers.stop()
        await instance.stop()


class CannotReport(InProcessClient):
    """Raises what no client should when the scheduler writes why a pod waits."""

    async def write_all(self, writes: Sequence[Write]) -> None:
        if any(isinstance(write, PatchWrite) for write in writes):
            raise KeyError("a bug")
        await super().write_all(writes)


async def test_a_bug_that_ends_reporting_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """When it does, and pods are still bound."""
    instance = await start(Options(Folder(tmp_path), durable=False, control_plane=None))
    client = CannotReport(ServerBackend(instance.server.core))
    informers = Informers(client)
    scheduler = asyncio.create_task(Scheduler(client, informers, SchedulerOptions()).run())
    try:
        await client.create(PODS.as_values(), POD)
        async with asyncio.timeout(PATIENCE_S):
            while not caplog.records:
                await asyncio.sleep(0.02)
            await client.create(NODES.as_values(), NODE)
            await client.patch(NODES, "n", merge_patch({"spec": {"taints": None}}))
            while not (await client.get(PODS, "p", "default")).spec.node_name:
                await asyncio.sleep(0.02)
        (record,) = caplog.records
        assert record.getMessage() == "the reporting of the scheduler has failed"
    finally:
        scheduler.cancel()
        await asyncio.gather(scheduler, return_exceptions=True)
        await informers.stop()
        await instance.stop()


class BreaksOnceFor(HttpClient):
    """As above, for one pod; meanwhile the others have not been answered."""

    victim = "bad"
    broken = 0

    async def write_many(self, writes: Sequence[Write]) -> tuple[object, ...]:
        bound = [write.name for write in writes if isinstance(write, BindWrite)]
        if self.victim in bound and not self.broken:
            self.broken += 1
            raise KeyError("a bug")
        while bound and not self.broken:
            await asyncio.sleep(0.001)
        if bound:
            await asyncio.sleep(0.05)
        return await super().write_many(writes)


async def test_a_bug_concerns_no_other_pod_of_its_round(tmp_path: Path) -> None:
    """Where each pod is bound by itself, the decisions about the others stand."""
    names = ["good-1", "bad", "good-2"]
    async with served(tmp_path, guard=True) as (stage, connect):
        await stage.node("node-a")
        await asyncio.gather(*(stage.start_pod(name) for name in names))
        client = connect()
        client.__class__ = BreaksOnceFor
        async with scheduling(client, "default-scheduler") as made:
            failed: list[str] = []
            before = made.failed

            def note(placement: Placement, why: str, *, overtaken: bool = False) -> None:
                failed.append(placement.pod.metadata.name)
                before(placement, why, overtaken=overtaken)

            made.failed = note  # type: ignore[method-assign]
            for name in names:
                await stage.bound(name)
            assert failed == ["bad"]


async def test_a_bug_after_devices_were_awaited_costs_an_attempt(tmp_path: Path) -> None:
    """The pod is bound by the next one."""
    async with served(tmp_path, guard=True) as (stage, connect):
        await stage.device_class()
        await stage.node("node-a", conditional("gpu-0"))
        await stage.make_claim("c")
        await stage.start_pod("bad", "c")
        client = connect()
        client.__class__ = BreaksOnceFor
        async with scheduling(client, "default-scheduler"):
            await stage.allocated("c")
            await stage.report("c", "gpu-0", "node-a", Ready="True")
            assert await stage.bound("bad") == "node-a"
        assert client.broken == 1  # type: ignore[attr-defined]
