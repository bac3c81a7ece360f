"""Pods that name a scheduler which nobody here is."""

from __future__ import annotations

import asyncio
from pathlib import Path

from controllers.world import NAMESPACE, POD_VALUES, eventually
from drayman.apiserver.instance import Folder, Options, start
from drayman.cluster import HttpClient, Informers
from drayman.cluster.resources import EVENTS, JsonObject
from drayman.scheduler.options import SchedulerOptions
from drayman.scheduler.running import Scheduler
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import Stage

SAID = (
    'OtherScheduler (held): The pod is left to the scheduler "volcano"; '
    'Drayman serves "default-scheduler", "drayman" and "kai-scheduler".'
)


AT_ONCE = SchedulerOptions(unserved_after_s=0.0)
"""Nobody is waited for: no other scheduler runs beside."""


async def events_of(stage: Stage, name: str) -> list[JsonObject]:
    listed = (await stage.client.list(EVENTS, NAMESPACE)).items
    return [event for event in listed if event["regarding"]["name"] == name]


async def test_a_pod_of_another_scheduler_is_told_once_who_schedules_here(cluster: Cluster) -> None:
    """Where no other scheduler is known, one event names those that are served; changes of the pod bring no other."""
    async with cluster(unserved_after_s=AT_ONCE.unserved_after_s) as stage:
        await stage.node("node-a")
        await stage.start_pod("p", schedulerName="volcano")
        event = await stage.event("p", "FailedScheduling")
        assert (event["type"], event["note"]) == ("Warning", SAID)
        await stage.patch(POD_VALUES, "p", {"metadata": {"labels": {"team": "a"}}})
        await stage.start_pod("other", schedulerName="volcano")
        await stage.event("other", "FailedScheduling")
        found = await events_of(stage, "p")
        assert [(e["note"], (e.get("series") or {}).get("count", 1)) for e in found] == [(SAID, 1)]


async def test_a_gated_pod_is_told_when_its_gates_are_gone(cluster: Cluster) -> None:
    """Before that, no scheduler is to look at it, whatever its name."""
    async with cluster(unserved_after_s=AT_ONCE.unserved_after_s) as stage:
        gates = [{"name": "example.com/wait"}]
        await stage.start_pod("gated", schedulerName="volcano", schedulingGates=gates)
        await stage.start_pod("p", schedulerName="volcano")
        await stage.event("p", "FailedScheduling")
        assert await events_of(stage, "gated") == []
        await stage.patch(POD_VALUES, "gated", {"spec": {"schedulingGates": None}})
        assert (await stage.event("gated", "FailedScheduling"))["note"] == SAID


async def test_a_scheduler_beside_others_says_nothing_about_their_pods(tmp_path: Path) -> None:
    """On a cluster of somebody else, another scheduler may serve the name."""
    options = Options(Folder(tmp_path / "drayman"), durable=False, control_plane=None)
    instance = await start(options)
    try:
        async with HttpClient.from_environment(instance.kubeconfig) as client:
            stage = Stage(client, ())
            informers = Informers(client)
            scheduler = Scheduler(client, informers, AT_ONCE)
            running = asyncio.create_task(scheduler.run())
            await stage.start_pod("theirs", schedulerName="volcano")
            await stage.start_pod("ours")

            async def told() -> list[JsonObject]:
                return await events_of(stage, "ours")

            await eventually(told, bool)
            assert await events_of(stage, "theirs") == []
            running.cancel()
            await asyncio.wait((running,))
            await informers.stop()
    finally:
        await instance.stop()
