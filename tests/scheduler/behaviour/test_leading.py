"""Of all schedulers that serve the same name, one is at work; those of different names are not kept from it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from controllers.world import eventually
from drayman.apiserver.instance import Folder, Instance, Options, start
from drayman.apiserver.instance.control_plane import SCHEDULER, ControlPlane
from drayman.cluster import HttpClient, Informers
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import LEASES, JsonObject
from drayman.placement.schedulers import LEASE_NAMESPACE, lease_of
from drayman.scheduler.leading import Candidate
from drayman.scheduler.options import SchedulerOptions
from drayman.scheduler.running import Scheduler
from scheduler.behaviour.stage import Stage

NAMES = ("default-scheduler", "drayman")


@asynccontextmanager
async def instance_of(folder: Path, **options: object) -> AsyncIterator[tuple[Instance, Stage]]:
    instance = await start(Options(Folder(folder / "drayman"), **options))  # type: ignore[arg-type]
    try:
        async with HttpClient.from_environment(instance.kubeconfig) as client:
            yield instance, Stage(client, ())
    finally:
        await instance.stop()


async def lease(stage: Stage, name: str = "drayman") -> JsonObject:
    found = await stage.client.get(LEASES, lease_of(name), LEASE_NAMESPACE)
    return dict(found["spec"])


def master(instance: Instance, name: str = "drayman") -> float | None:
    registry = instance.server.metrics.registry
    labels = {"name": lease_of(name)}
    return registry.get_sample_value("leader_election_master_status", labels)


async def hold(stage: Stage, name: str, holder: str) -> None:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 3600}
    await stage.client.patch(LEASES, lease_of(name), merge_patch({"spec": spec}), LEASE_NAMESPACE)


async def test_an_instance_holds_the_lease_of_each_name_it_serves(tmp_path: Path) -> None:
    """From the moment it is ready; and it gives them up when it is stopped."""
    async with instance_of(tmp_path) as (instance, stage):
        assert [(await lease(stage, n))["holderIdentity"] for n in NAMES] == [SCHEDULER] * 2
        assert instance.started.scheduler == "the embedded one"
        record = instance.options.folder.running()
        assert record is not None
        assert record.scheduler == "the embedded one"
    async with instance_of(tmp_path, control_plane=None) as (_, stage):
        assert [(await lease(stage, n))["holderIdentity"] for n in NAMES] == ["", ""]


async def test_an_instance_that_was_killed_has_its_leases_back_at_once(tmp_path: Path) -> None:
    """The next one on the same data is its successor: it schedules, though the leases have long to run."""
    async with instance_of(tmp_path, control_plane=None) as (_, stage):
        for name in NAMES:
            spec = {
                "holderIdentity": SCHEDULER,
                "leaseDurationSeconds": 3600,
                "leaseTransitions": 7,
            }
            body = {"metadata": {"name": lease_of(name)}, "spec": spec}
            await stage.client.create(LEASES, body, LEASE_NAMESPACE)
    async with instance_of(tmp_path) as (_, stage):
        await stage.node("node-a")
        await stage.start_pod("p")
        await stage.bound("p")
        assert (await lease(stage))["leaseTransitions"] == 7


async def test_a_scheduler_that_lost_a_lease_stands_by_until_it_has_it_again(
    tmp_path: Path,
) -> None:
    """Meanwhile claims of its pods are still made from templates, and pods of the other name are placed."""
    async with instance_of(tmp_path, durable=False) as (instance, stage):
        await stage.node("node-a", "gpu-0", "gpu-1", "gpu-2")
        await stage.device_class()
        await stage.make_template("t")
        gpu = {"name": "gpu", "resourceClaimTemplateName": "t"}
        await stage.start_pod("first", gpu, schedulerName="drayman")
        await stage.bound("first")
        assert [master(instance, name) for name in NAMES] == [1.0, 1.0]
        await hold(stage, "drayman", "other-host_1")

        async def scheduler() -> str:
            return instance.started.scheduler

        await eventually(
            scheduler,
            lambda said: (
                said
                == "default-scheduler: the embedded one; drayman: other-host_1; kai-scheduler: the embedded one"
            ),
        )
        assert [master(instance, name) for name in NAMES] == [1.0, 0.0]
        assert instance.started.scheduler_problem() is None
        await stage.start_pod("second", gpu, schedulerName="drayman")
        claim = await stage.claim_of("second")
        assert claim.status.allocation is None
        await stage.start_pod("without-a-name", gpu)
        await stage.bound("without-a-name")
        assert not (await stage.until_pod("second", lambda _: True)).spec.node_name
        await hold(stage, "drayman", "")
        await stage.bound("second")
        assert await scheduler() == "the embedded one"
        assert (await lease(stage))["holderIdentity"] == SCHEDULER


async def test_an_instance_that_finds_a_lease_taken_serves_the_other_name(tmp_path: Path) -> None:
    """Pods without a `schedulerName` are placed though `drayman scheduler` has the lease of its own name."""
    async with instance_of(tmp_path, control_plane=None) as (_, stage):
        spec = {"holderIdentity": "host_1", "leaseDurationSeconds": 3600}
        body = {"metadata": {"name": lease_of("drayman")}, "spec": spec}
        await stage.client.create(LEASES, body, LEASE_NAMESPACE)
    async with instance_of(tmp_path) as (instance, stage):
        await stage.node("node-a")
        await stage.start_pod("p")
        await stage.bound("p")
        assert (await lease(stage))["holderIdentity"] == "host_1"
        assert instance.started.leaders == {
            "default-scheduler": SCHEDULER,
            "drayman": "host_1",
            "kai-scheduler": SCHEDULER,
        }


async def test_of_two_schedulers_of_one_name_one_is_at_work(tmp_path: Path) -> None:
    """The second, over HTTP, stands by as long as the first leads. For another name it works at the same time."""
    async with instance_of(tmp_path, durable=False) as (instance, stage):
        at_work: list[frozenset[str]] = []
        seen: list[str] = []

        async with HttpClient.from_environment(instance.kubeconfig) as client:
            informers = Informers(client)

            def make(names: frozenset[str]) -> Scheduler:
                at_work.append(names)
                return Scheduler(client, informers, SchedulerOptions(names=names))

            candidate = Candidate(
                client,
                ("drayman", "other"),
                "host_1",
                make,
                lambda leaders: seen.append(leaders["drayman"]),
            )
            running = asyncio.create_task(candidate.run())
            await stage.node("node-a")
            await stage.start_pod("theirs", schedulerName="other")
            await stage.bound("theirs")
            await stage.start_pod("ours", schedulerName="drayman")
            await stage.bound("ours")
            assert at_work == [frozenset({"other"})]
            assert seen[-1] == SCHEDULER
            running.cancel()
            await asyncio.wait((running,))
            await informers.stop()


def test_an_instance_without_a_scheduler_says_nothing_about_one(tmp_path: Path) -> None:
    """Scheduling is left to others, who hold the leases."""

    async def scenario() -> None:
        parts = ControlPlane(scheduler=None)
        async with instance_of(tmp_path, durable=False, control_plane=parts) as (instance, _):
            assert instance.started.scheduler == ""

    asyncio.run(scenario())
