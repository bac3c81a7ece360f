"""spec/dra.md 5.7 and 5.8: from the decision to the binding."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import pytest

from controllers.world import CLAIM_VALUES, FINALIZER, POD_VALUES
from drayman.apiserver.instance import control_plane
from drayman.scheduler.running import Scheduler
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import (
    NODE_VALUES,
    Stage,
    conditional,
    device,
    devices_of,
    message_of,
    users_of,
)


async def _slow_device(stage: Stage, *names: str) -> None:
    """A node whose devices have to be made ready."""
    await stage.device_class()
    await stage.node("node-a", *(conditional(name) for name in names or ("gpu-0",)))
    await stage.make_claim("c")


async def test_no_device_is_given_twice(cluster: Cluster) -> None:
    """5.7: pods that are decided about at the same time never get the same device."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", *(f"gpu-{n}" for n in range(4)))
        names = [f"c{n}" for n in range(6)]
        for name in names:
            await stage.make_claim(name)
        await asyncio.gather(*(stage.start_pod(f"pod-{name}", name) for name in names))
        await stage.until_claims(lambda cs: sum(bool(devices_of(c)) for c in cs) == 4)
        held = [found for claim in await stage.claims() for found in devices_of(claim)]
        assert sorted(held) == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]


async def test_everything_is_written_before_the_binding(cluster: Cluster) -> None:
    """5.8: a pod that has a node has claims with protection, devices, a time, and the pod among the users."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await stage.make_claim("c")
        pod = await stage.start_pod("p", "c")
        await stage.bound("p")
        claim = await stage.get_claim("c")
        assert claim is not None
        assert claim.metadata.finalizers == (FINALIZER,)
        assert claim.status.allocation is not None
        assert claim.status.allocation.allocation_timestamp
        assert claim.status.allocation.node_selector is not None
        (user,) = claim.status.reserved_for
        assert (user.api_group, user.resource, user.name) == ("", "pods", "p")
        assert user.uid == pod.metadata.uid


async def test_a_scheduled_pod_is_told(cluster: Cluster) -> None:
    """5.8: the event names the pod and its node."""
    async with cluster() as stage:
        await stage.node("node-a")
        await stage.start_pod("p")
        await stage.bound("p")
        event = await stage.event("p", "Scheduled")
        assert "default/p" in event["note"]
        assert "node-a" in event["note"]


async def test_an_allocation_without_a_time_can_be_joined(cluster: Cluster) -> None:
    """5.8: a claim that another scheduler allocated without a time takes users; its allocation is left as it is."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await stage.make_claim("c")
        await stage.allocate_by_hand("c", "gpu-0", "node-a")
        before = (await stage.allocated("c")).status.allocation
        await stage.start_pod("p", "c")
        assert await stage.bound("p") == "node-a"
        claim = await stage.allocated("c")
        assert users_of(claim) == ["p"]
        assert claim.status.allocation == before


async def test_devices_are_made_ready_first(cluster: Cluster) -> None:
    """5.8: the claim is written, the pod is told that it waits, and it is bound when the driver says so."""
    async with cluster() as stage:
        await _slow_device(stage)
        await stage.start_pod("p", "c")
        assert users_of(await stage.allocated("c")) == ["p"]
        event = await stage.event("p", "BindingConditionsPending")
        assert event["type"] == "Normal"
        await stage.keeps_waiting("p")
        await stage.report("c", "gpu-0", "node-a", Ready="True")
        assert await stage.bound("p") == "node-a"


async def test_all_conditions_must_be_true(cluster: Cluster) -> None:
    """5.8: a condition that is False, or a report about another device, is not enough."""
    async with cluster() as stage:
        await _slow_device(stage)
        await stage.start_pod("p", "c")
        await stage.allocated("c")
        await stage.report("c", "gpu-0", "node-a", Ready="False")
        await stage.keeps_waiting("p")
        await stage.report("c", "gpu-0", "node-a", Ready="True")
        await stage.bound("p")


class _StoppedClock:
    """Stands still until `go_on`: meanwhile no pod that is held back is tried again."""

    def __init__(self) -> None:
        self._stopped_at: float | None = time.time()

    def __call__(self) -> float:
        return time.time() if self._stopped_at is None else self._stopped_at

    def go_on(self) -> None:
        self._stopped_at = None


async def test_a_driver_that_fails(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """5.8: the pod learns what the driver says, loses its reservation, and gets the device of another node."""
    clock = _StoppedClock()
    monkeypatch.setattr(control_plane, "Scheduler", partial(Scheduler, clock=clock))
    async with cluster() as stage:
        await _slow_device(stage)
        await stage.start_pod("p", "c")
        await stage.allocated("c")
        await stage.report("c", "gpu-0", "node-a", Failed="True")
        await stage.until_pod("p", lambda pod: "Failed is True" in message_of(pod))
        await stage.patch(NODE_VALUES, "node-a", {"spec": {"unschedulable": True}})
        await stage.node("node-b", "gpu-0")
        clock.go_on()
        assert await stage.bound("p") == "node-b"
        claim = await stage.allocated("c")
        assert users_of(claim) == ["p"]
        assert not claim.status.devices


async def test_a_driver_that_says_nothing(cluster: Cluster) -> None:
    """5.8: after the time for binding the claim loses its devices and is allocated anew."""
    async with cluster(binding_timeout_s=1.0) as stage:
        await _slow_device(stage)
        await stage.start_pod("p", "c")
        first = (await stage.allocated("c")).status.allocation
        assert first is not None
        await stage.until_claim("c", lambda c: not users_of(c) or c.status.allocation != first)
        await stage.patch(NODE_VALUES, "node-a", {"spec": {"unschedulable": True}})
        await stage.node("node-b", "gpu-0")
        assert await stage.bound("p") == "node-b"


async def test_a_pod_that_goes_while_devices_are_made_ready(cluster: Cluster) -> None:
    """5.7: nobody is bound, and the claim is free for others."""
    async with cluster() as stage:
        await _slow_device(stage)
        await stage.start_pod("p", "c")
        await stage.allocated("c")
        await stage.remove(POD_VALUES, "p")
        await stage.free("c")
        await stage.start_pod("q", "c")
        await stage.until_claim("c", lambda claim: users_of(claim) == ["q"])
        await stage.report("c", "gpu-0", "node-a", Ready="True")
        assert await stage.bound("q") == "node-a"


async def test_a_claim_that_goes_before_it_is_written(cluster: Cluster) -> None:
    """5.8: a pod whose claim is deleted and made again under the same name is bound with the new one."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a")
        await stage.make_claim("c")
        await stage.start_pod("p", "c")
        await stage.refused("p", "Claim c")
        await stage.delete(CLAIM_VALUES, "c")
        await stage.make_claim("c")
        await stage.slice("node-a", device("gpu-0"), nodeName="node-a")
        assert await stage.bound("p") == "node-a"
        assert users_of(await stage.allocated("c")) == ["p"]


async def test_a_pod_that_goes_before_it_is_bound_leaves_nothing(cluster: Cluster) -> None:
    """5.7: deleted at once, a pod holds no device in the end."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await stage.make_claim("c")
        await stage.start_pod("p", "c")
        await stage.remove(POD_VALUES, "p")
        await stage.free("c")
        await stage.make_claim("d")
        await stage.start_pod("q", "d")
        assert await stage.bound("q") == "node-a"
