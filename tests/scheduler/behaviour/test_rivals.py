"""Two schedulers that give away the same devices: no pod runs with one that another has."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controllers.world import CLAIM_VALUES, POD_VALUES, eventually
from drayman.apiserver.instance import Folder, Options, start
from drayman.apiserver.instance.scheduler_metrics import SchedulerMetrics
from drayman.cluster import HttpClient
from drayman.cluster.errors import NotFoundError
from drayman.cluster.resources import DEVICE_TAINT_RULES, RESOURCE_CLAIMS
from drayman.scheduler.tally import Tally
from scheduler.behaviour.beside import holders, scheduling, served
from scheduler.behaviour.kube_scheduler import NAME, kube_scheduler
from scheduler.behaviour.stage import Stage, devices_of, from_template

HOUR = {"first_backoff_s": 3600.0, "longest_backoff_s": 3600.0}
"""A pod that is held back is not seen again in a test."""


class Hasty(HttpClient):
    """A client that lets others write a claim just before it allocates one itself."""

    before: Callable[[], Awaitable[None]] | None = None

    async def patch(self, resource: Any, name: str, *args: Any, **options: Any) -> Any:
        if resource is RESOURCE_CLAIMS and options.get("subresource") == "status":
            before, self.before = self.before, None
            if before is not None:
                await before()
        return await super().patch(resource, name, *args, **options)


def hasty(client: HttpClient, before: Callable[[], Awaitable[None]]) -> Hasty:
    made = Hasty(client.connection)
    made.before = before
    return made


async def two_devices(stage: Stage) -> None:
    await stage.device_class()
    await stage.node("node-a", "gpu-0", "gpu-1")
    for name in ("ours", "theirs"):
        await stage.make_claim(name)


async def test_a_pod_whose_device_was_taken_gets_another_at_once(tmp_path: Path) -> None:
    """The server refuses the allocation and names the holder: the next decision is made on that, not after a pause."""
    async with served(tmp_path, guard=True) as (stage, connect):
        await two_devices(stage)

        async def be_first() -> None:
            await stage.allocate_by_hand("theirs", "gpu-0", "node-a")

        async with scheduling(hasty(connect(), be_first), "default-scheduler", **HOUR):
            await stage.start_pod("p", "ours")
            await stage.bound("p")
        assert devices_of(await stage.allocated("theirs")) == ["gpu-0"]
        assert devices_of(await stage.allocated("ours")) == ["gpu-1"]


async def test_a_pod_whose_device_was_taken_waits_for_one(tmp_path: Path) -> None:
    """Where there is no other, it is refused like any pod, and explained by what is in use."""
    async with served(tmp_path, guard=True) as (stage, connect):
        await two_devices(stage)
        await stage.make_claim("third")
        await stage.allocate_by_hand("third", "gpu-1", "node-a")

        async def be_first() -> None:
            await stage.allocate_by_hand("theirs", "gpu-0", "node-a")

        async with scheduling(hasty(connect(), be_first), "default-scheduler", **HOUR):
            await stage.start_pod("p", "ours")
            await stage.refused("p", "DevicesInUse", "both that match are in use")
            await stage.patch(CLAIM_VALUES, "theirs", {"status": {"allocation": None}}, "status")
            await stage.bound("p")
        assert devices_of(await stage.allocated("ours")) == ["gpu-0"]


async def test_an_allocation_that_came_second_is_taken_back(tmp_path: Path) -> None:
    """Where the server accepts both, the pod is not bound with a device that another claim had first."""
    async with served(tmp_path, guard=False) as (stage, connect):
        await two_devices(stage)

        async def be_first() -> None:
            await stage.allocate_by_hand("theirs", "gpu-0", "node-a")

        async with scheduling(hasty(connect(), be_first), "default-scheduler", **HOUR) as ours:
            await stage.start_pod("p", "ours")
            await stage.bound("p")
            event = await stage.event("p", "DeviceTakenBack")
            assert "gpu-0 is held by claim default/theirs too, which was first" in event["note"]
            await stage.event("ours", "DeviceTakenBack")
            assert ours.tally.taken_back == 1
        assert devices_of(await stage.allocated("theirs")) == ["gpu-0"]
        assert devices_of(await stage.allocated("ours")) == ["gpu-1"]


async def test_an_allocation_that_came_first_is_kept(tmp_path: Path) -> None:
    """The other scheduler has to give way: if both did, neither pod would run."""
    async with served(tmp_path, guard=False) as (stage, connect):
        await two_devices(stage)
        client = connect()

        class Late(HttpClient):
            """Lets others allocate the same device right after it did."""

            async def patch(self, resource: Any, name: str, *args: Any, **options: Any) -> Any:
                written = await super().patch(resource, name, *args, **options)
                if resource is RESOURCE_CLAIMS and options.get("subresource") == "status":
                    await stage.allocate_by_hand("theirs", *devices_of(written), "node-a")
                return written

        async with scheduling(Late(client.connection), "default-scheduler", **HOUR) as ours:
            await stage.start_pod("p", "ours")
            await stage.bound("p")
            await stage.event("theirs", "DeviceHeldTwice")
            assert (ours.tally.taken_back, ours.tally.held_twice > 0) == (0, True)
        assert devices_of(await stage.allocated("ours")) == ["gpu-0"]


async def test_what_pods_on_nodes_hold_twice_is_reported_and_left(tmp_path: Path) -> None:
    """Nothing is taken from a pod that runs."""
    async with served(tmp_path, guard=False) as (stage, connect):
        await two_devices(stage)
        async with scheduling(connect(), "default-scheduler") as ours:
            await stage.start_pod("p", "ours")
            await stage.bound("p")
            other = await stage.start_pod("q", schedulerName="other", nodeName="node-a")
            user = {"resource": "pods", "name": "q", "uid": other.metadata.uid}
            await stage.allocate_by_hand("theirs", "gpu-0", "node-a", reservedFor=[user])
            event = await stage.event("q", "DeviceHeldTwice")
            assert (
                "gpu-0 is held by claim default/theirs and by claim default/ours" in event["note"]
            )
            assert ours.tally.taken_back == 0
        assert await holders(stage) == {"node-a/gpu-0": ["ours", "theirs"]}


async def test_a_server_without_the_guard_counts_what_is_held_twice(tmp_path: Path) -> None:
    """Its own scheduler notices what others write, and says so in the metrics."""
    instance = await start(Options(Folder(tmp_path / "d"), durable=False, guard_devices=False))
    try:
        async with HttpClient.from_environment(instance.kubeconfig) as client:
            stage = Stage(client, ())
            await two_devices(stage)
            await stage.start_pod("p", "ours")
            await stage.bound("p")
            (taken,) = devices_of(await stage.allocated("ours"))
            await stage.allocate_by_hand("theirs", taken, "node-a")
            await stage.event("theirs", "DeviceHeldTwice")
            name = "drayman_scheduler_devices_held_twice_total"
            assert instance.server.metrics.registry.get_sample_value(name) == 1.0
    finally:
        await instance.stop()


async def test_the_scheduler_inside_the_server_and_one_beside_it(tmp_path: Path) -> None:
    """They serve different names and decide about the same devices: the server lets each be given away once."""
    options = Options(Folder(tmp_path / "drayman"), durable=False)
    instance = await start(options)
    try:
        async with HttpClient.from_environment(instance.kubeconfig) as client:
            stage = Stage(client, ())
            await stage.device_class()
            await stage.make_template("t")
            await stage.node("node-a", *(f"gpu-{number}" for number in range(12)))
            beside = HttpClient.from_environment(instance.kubeconfig)
            async with scheduling(beside, "other", **HOUR):
                names = {f"p-{n}": ("other", "default-scheduler")[n % 2] for n in range(12)}
                for name, owner in names.items():
                    await stage.start_pod(name, from_template(), schedulerName=owner)
                await asyncio.gather(*(stage.bound(name) for name in names))
            found = await holders(stage)
            assert sorted(map(len, found.values())) == [1] * 12
    finally:
        await instance.stop()


@pytest.mark.parametrize("guard", [True, False], ids=["guarded", "unguarded"])
async def test_after_a_storm_no_device_has_two_holders(tmp_path: Path, guard: bool) -> None:
    """As many pods as devices, from two schedulers that begin at the same moment: all of them run, each with its own."""
    async with served(tmp_path, guard=guard) as (stage, connect):
        await stage.device_class()
        await stage.make_template("t")
        for node in ("node-a", "node-b"):
            await stage.node(node, *(f"gpu-{number}" for number in range(8)))
        names = [f"{owner}-{number}" for number in range(8) for owner in ("one", "two")]
        for name in names:
            await stage.start_pod(name, from_template(), schedulerName=name.partition("-")[0])
        for name in names:
            await stage.generated(name)
        async with scheduling(connect(), "one"), scheduling(connect(), "two"):
            await asyncio.gather(*(stage.bound(name) for name in names))
            found = await holders(stage)
            assert len(found) == len(names)
            assert all(len(claims) == 1 for claims in found.values())


def test_allocations_that_were_taken_back_are_in_the_metrics() -> None:
    """An operator sees from them that two schedulers compete."""
    registry = CollectorRegistry()
    registry.register(SchedulerMetrics(Tally(taken_back=2), dict))
    name = "drayman_scheduler_allocations_taken_back_total"
    assert registry.get_sample_value(name) == 2.0


async def rules(stage: Stage) -> list[str]:
    """The devices that are shielded."""
    found = (await stage.client.list(DEVICE_TAINT_RULES)).items
    selectors = [rule.spec.device_selector for rule in found]
    return sorted(each.device or "" for each in selectors if each is not None)


async def test_a_device_of_two_claims_is_shielded_until_no_claim_holds_it(tmp_path: Path) -> None:
    """A taint keeps other schedulers from a device that kube-scheduler forgets when one of two claims is deallocated."""
    async with served(tmp_path, guard=False) as (stage, connect):
        await two_devices(stage)

        async def be_first() -> None:
            await stage.allocate_by_hand("theirs", "gpu-0", "node-a")

        async with scheduling(hasty(connect(), be_first), "default-scheduler", **HOUR):
            await stage.start_pod("p", "ours")
            await stage.bound("p")
            assert await rules(stage) == ["gpu-0"]
            await stage.patch(CLAIM_VALUES, "theirs", {"status": {"allocation": None}}, "status")
            await eventually(lambda: rules(stage), lambda found: not found)


async def test_without_taint_rules_a_claim_keeps_a_device_that_another_holds(
    tmp_path: Path,
) -> None:
    """Its pod waits, with that reason, until the other claim has released the device; then it is allocated again."""
    async with served(tmp_path, guard=False) as (stage, connect):
        await two_devices(stage)

        async def be_first() -> None:
            await stage.allocate_by_hand("theirs", "gpu-0", "node-a")

        class Old(Hasty):
            """Lets nobody write taint rules."""

            async def create(self, resource: Any, *args: Any, **options: Any) -> Any:
                if resource.kind == "DeviceTaintRule":
                    raise NotFoundError("the server could not find the requested resource")
                return await super().create(resource, *args, **options)

        client = Old(connect().connection)
        client.before = be_first
        async with scheduling(client, "default-scheduler", **HOUR):
            await stage.start_pod("p", "ours")
            await stage.refused("p", "DevicesInUse", "gpu-0 is held by claim default/theirs too")
            assert devices_of(await stage.allocated("ours")) == ["gpu-0"]
            await stage.patch(CLAIM_VALUES, "theirs", {"status": {"allocation": None}}, "status")
            await stage.event("ours", "DeviceTakenBack")
            await stage.bound("p")


@pytest.mark.parametrize("seed", range(3))
async def test_no_conflict_makes_kube_scheduler_forget_a_device(tmp_path: Path, seed: int) -> None:
    """With kube-scheduler beside it, ours never frees a device in kube-scheduler's memory that a claim still holds."""
    rng = random.Random(seed)
    async with served(tmp_path, guard=False) as (stage, connect):
        await stage.device_class()
        await stage.make_template("t")
        await stage.node("node-a", *(f"gpu-{number}" for number in range(6)))
        async with (
            scheduling(connect(), "ours") as ours,
            kube_scheduler(connect(), rng) as theirs,
        ):
            names = {f"p-{n}": ("ours", NAME)[n % 2] for n in range(30)}
            for name, owner in names.items():
                await stage.start_pod(name, from_template(), schedulerName=owner)

            async def live(name: str) -> None:
                await stage.bound(name)
                (claim,) = (await stage.generated(name)).values()
                found = await stage.get_claim(claim or "")
                assert found is not None
                (device,) = devices_of(found)
                held = (await holders(stage))[f"node-a/{device}"]
                if len(held) > 1:
                    await eventually(lambda: rules(stage), lambda shielded: device in shielded)
                await stage.remove(POD_VALUES, name)

            await asyncio.gather(*map(live, names))
            assert ours.tally.taken_back > 0
            assert theirs.forgotten == []
            await eventually(lambda: rules(stage), lambda found: not found)
