"""How long quota is held, and by what: pods that still end, checks that groups wait for, limits of namespaces, time over several starts."""

from __future__ import annotations

from typing import Any

from controllers.quota.test_lives import check, checked_queue
from controllers.quota.test_pods import end, free, member
from controllers.quota.waiting_room import (
    CLASS,
    CLASSES,
    CLUSTER_QUEUES,
    Room,
    admitted,
    has,
    pod,
    waiting,
    waiting_room,
)
from controllers.workloads.stage import NAMESPACE
from drayman.cluster.resources import PODS, generic

LIMIT_RANGES = generic("v1", "limitranges", "LimitRange")


async def bind(room: Room, name: str) -> None:
    """The pod runs on a node from now on."""
    await room.place.client.bind(name, NAMESPACE, "n")
    await room.place.run_pod(await room.place.get(PODS, name))


async def test_a_pod_that_is_driven_out_holds_its_quota_until_it_has_ended() -> None:
    """It is told to go and has its time; whoever drove it out starts after that."""
    async with waiting_room() as room:
        await room.place.create(CLASSES, {"metadata": {"name": "high"}, "value": 10})
        await room.queue(cpu=1, preemption={"withinClusterQueue": "LowerPriority"})
        await room.place.create(PODS, pod("low"))
        await room.place.until_one(PODS, "low", free)
        await bind(room, "low")
        await room.place.create(PODS, pod("high", labels={CLASS: "high"}))
        leaving = await room.place.until_one(
            PODS, "low", lambda found: found.metadata.deletion_timestamp is not None
        )
        found = await room.workload(has("Evicted", "True", "Preempted"), "low")
        assert found.status.is_true("QuotaReserved")
        await room.workload(waiting("WaitingForPreemptedWorkloads"), "high")
        assert not free(await room.place.get(PODS, "high"))
        await room.place.set_phase(leaving, "Failed")
        await room.place.until_one(PODS, "high", free)
        await room.no_workload("low")


async def test_a_group_waits_for_a_check_with_its_quota() -> None:
    """And starts when it is ready."""
    async with waiting_room() as room:
        await checked_queue(room)
        for name in ("a", "b"):
            await member(room, name, cpu="500m")
        await room.workload(has("Admitted", "False", "UnsatisfiedAdmissionChecks"), "group")
        await room.restart()
        found = await room.workload(lambda each: bool(each.status.admission_checks), "group")
        assert found.status.is_true("QuotaReserved")
        await check(room, "group", state="Ready")
        await room.place.until(PODS, lambda pods: len(pods) == 2 and all(map(free, pods)))


async def test_a_group_that_serves_does_not_end() -> None:
    """One of its pods fails for good, and another one takes its place."""
    async with waiting_room() as room:
        await room.queue(cpu=1)
        serving = {
            "kueue.x-k8s.io/pod-group-serving": "true",
            "kueue.x-k8s.io/retriable-in-group": "false",
        }
        await member(room, "a", total=1, annotations=serving)
        await room.place.until_one(PODS, "a", free)
        await end(room, "a", "Failed")
        await room.workload(has("WaitingForReplacementPods", "True", "PodsFailed"), "group")
        await member(room, "b", total=1, annotations=serving)
        await room.place.until_one(PODS, "b", free)
        found = await room.workload(
            has("WaitingForReplacementPods", "False", "PodsAvailable"), "group"
        )
        assert found.status.condition("Finished") is None


async def test_limits_of_the_namespace_count() -> None:
    """A job that asks for more than a container may have waits until that is allowed."""
    async with waiting_room() as room:
        limits = {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}
        body = {"metadata": {"name": "small"}, "spec": limits}
        await room.place.client.create(LIMIT_RANGES, body, NAMESPACE)
        await room.queue(cpu=4)
        await room.job("first", cpu=2)
        found = await room.workload(waiting("Misconfigured"), "first")
        assert "cpu" in found.status.condition("QuotaReserved").message
        await room.place.client.delete(LIMIT_RANGES, "small", NAMESPACE)
        await room.workload(admitted, "first")


async def test_time_counts_over_several_starts() -> None:
    """Sixty seconds before it was stopped, and forty after: that is all that it may take."""

    def ran(found: Any) -> bool:
        return (found.status.accumulated_past_execution_time_seconds or 0) >= 60

    async with waiting_room() as room:
        await room.queue(cpu=1)
        await room.job("first", labels={"kueue.x-k8s.io/max-exec-time-seconds": "100"})
        found = await room.workload(admitted, "first")
        await room.pass_time(60, found)
        await room.place.patch(CLUSTER_QUEUES, "q", {"spec": {"stopPolicy": "HoldAndDrain"}})
        await room.workload(ran, "first")
        await room.place.patch(CLUSTER_QUEUES, "q", {"spec": {"stopPolicy": "None"}})
        found = await room.workload(admitted, "first")
        await room.pass_time(45, found)
        found = await room.workload(has("Requeued", "False", "Deactivated"), "first")
        assert has("DeactivationTarget", "True", "MaximumExecutionTimeExceeded")(found)
