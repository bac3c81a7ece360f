"""How long quota is held, and by what: pods that still end, checks that groups wait for, limits of namespaces, time over several starts."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.quota.test_lives import check, checked_queue
from controllers.quota.test_pods import end, free, member
from controllers.quota.waiting_room import (
    CLASS,
    CLASSES,
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    Room,
    admitted,
    has,
    pod,
    waiting,
    waiting_room,
)
from controllers.workloads.stage import NAMESPACE
from drayman.api.kueue import Cohort, LocalQueueStatus, status_of
from drayman.cluster.errors import InvalidError
from drayman.cluster.resources import PODS, generic, typed

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


async def test_queues_in_a_circle_of_cohorts_are_inactive_until_it_is_broken() -> None:
    """The local queue says so as the cluster queue does, and the workload names the cohort."""

    def told(reason: str) -> Any:
        def holds(queue: Any) -> bool:
            return [each.reason for each in status_of(LocalQueueStatus, queue).conditions] == [reason]  # fmt: skip

        return holds

    cohorts = typed(Cohort)
    async with waiting_room() as room:
        await room.queue(cohortName="x")
        await room.place.until_one(LOCAL_QUEUES, "q", told("Ready"))
        for name, parent in (("x", "y"), ("y", "x")):
            body = {"metadata": {"name": name}, "spec": {"parentName": parent}}
            await room.place.create(cohorts, body)
        await room.place.until_one(LOCAL_QUEUES, "q", told("ClusterQueueIsInactive"))
        await room.job("j")
        found = await room.workload(waiting("PendingEvaluation"))
        condition = found.status.condition("QuotaReserved")
        assert condition is not None
        assert condition.message == (
            "ClusterQueue q is inactive: its cohorts form a circle, beginning with x"
        )
        await room.place.patch(cohorts, "y", {"spec": {"parentName": None}})
        await room.workload(admitted)
        await room.place.until_one(LOCAL_QUEUES, "q", told("Ready"))


async def test_what_work_says_about_its_time_in_a_queue_is_understood_or_refused() -> None:
    """With the field; work that is in no queue may say what it likes."""
    annotations = {"kueue.x-k8s.io/job-min-parallelism": "x"}
    async with waiting_room() as room:
        await room.queue()
        with pytest.raises(
            InvalidError, match=r"annotations\[kueue.x-k8s.io/job-min-parallelism\]"
        ):
            await room.job("j", annotations=annotations)
        await room.job("outside", queue="", annotations=annotations)
