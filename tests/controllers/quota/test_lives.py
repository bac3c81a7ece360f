"""Checks, readiness, time limits and stopped queues (cases G13 to G16 and G18 of the specification)."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.quota.waiting_room import (
    CHECKS,
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    QUEUE,
    WORKLOADS,
    Room,
    admitted,
    has,
    waiting,
    waiting_room,
)
from drayman.api.times import seconds_of
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import JOBS

QUICK = {
    "timeout": "5m",
    "requeuingStrategy": {"backoffBaseSeconds": 60, "backoffLimitCount": 1},
}


async def check(room: Room, name: str, **state: Any) -> None:
    """What the controller of an admission check writes."""
    found = await room.workload(lambda each: bool(each.status.admission_checks), name)
    states = [
        {"name": each.name, "state": "Pending", "message": "", **state}
        for each in found.status.admission_checks
    ]
    change = {"status": {"admissionChecks": states}}
    await room.place.patch(WORKLOADS, found.name, change, subresource="status")


async def checked_queue(room: Room) -> None:
    body = {"metadata": {"name": "budget"}, "spec": {"controllerName": "example.com/budget"}}
    await room.place.create(CHECKS, body)
    active = {
        "type": "Active",
        "status": "True",
        "reason": "Active",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    change = {"status": {"conditions": [active]}}
    await room.place.patch(CHECKS, "budget", change, subresource="status")
    await room.queue(
        cpu=1, admissionChecksStrategy={"admissionChecks": [{"name": "budget", "onFlavors": []}]}
    )


async def test_a_check_of_others_is_waited_for_and_its_updates_reach_the_pods() -> None:
    """Quota is reserved, the job waits; when the check is ready, it starts with what the check adds."""
    async with waiting_room() as room:
        await checked_queue(room)
        await room.job("first")
        found = await room.workload(has("Admitted", "False", "UnsatisfiedAdmissionChecks"), "first")
        assert found.status.is_true("QuotaReserved")
        assert (await room.place.get(JOBS, "first")).spec.suspend
        updates = [{"name": "main", "nodeSelector": {"pool": "new"}}]
        await check(room, "first", state="Ready", podSetUpdates=updates)
        await room.workload(admitted, "first")
        running = await room.place.until_one(JOBS, "first", lambda each: not each.spec.suspend)
        assert running.spec.template["spec"]["nodeSelector"] == {"pool": "new"}


async def test_nobody_is_admitted_by_a_queue_that_is_gone() -> None:
    """Which checks it had is not known any more. Who waits for one goes on waiting."""
    async with waiting_room() as room:
        await checked_queue(room)
        await room.job("first")
        await room.workload(has("Admitted", "False", "UnsatisfiedAdmissionChecks"), "first")
        await room.place.patch(CLUSTER_QUEUES, "q", {"metadata": {"finalizers": None}})
        await room.place.client.delete(CLUSTER_QUEUES, "q", None)
        await room.place.until(CLUSTER_QUEUES, lambda queues: not queues)
        # Those that the change is about are looked at before whoever comes later.
        await room.job("second")
        await room.workload(waiting("Misconfigured"), "second")
        found = await room.workload(lambda each: each.status.is_true("QuotaReserved"), "first")
        assert not admitted(found)
        assert [each.name for each in found.status.admission_checks] == ["budget"]


async def test_a_check_that_asks_for_another_try_gets_one_later() -> None:
    """Evicted, not before the time that it asks for, and then reserved again with the check pending."""
    async with waiting_room() as room:
        await checked_queue(room)
        await room.job("first")
        await check(room, "first", state="Retry", requeueAfterSeconds=600)
        found = await room.workload(has("Requeued", "False", "AdmissionCheck"), "first")
        assert found.status.admission is None
        left = seconds_of(found.status.requeue_state.requeue_at) - room.place.clock()
        assert 590 < left <= 600
        await room.pass_time(601, found)
        again = await room.workload(lambda each: each.status.is_true("QuotaReserved"), "first")
        assert [each.state for each in again.status.admission_checks] == ["Pending"]


async def test_a_check_that_rejects_deactivates() -> None:
    """With the reason, and the quota is free."""
    async with waiting_room() as room:
        await checked_queue(room)
        await room.job("first")
        await check(room, "first", state="Rejected", message="no money")
        found = await room.workload(has("Requeued", "False", "Deactivated"), "first")
        assert not found.spec.active
        evicted = found.status.condition("Evicted")
        assert "no money" in evicted.message
        await room.place.told("AdmissionCheckRejected")


async def test_g13_g14_pods_that_do_not_become_ready() -> None:
    """Evicted with a back-off of a minute, started again, and deactivated when that was once too often; then made active again."""
    async with waiting_room(waitForPodsReady=QUICK) as room:
        await room.queue(cpu=1)
        await room.job("first")
        found = await room.workload(has("PodsReady", "False", "WaitForStart"), "first")
        await room.pass_time(301, found)
        found = await room.workload(has("Requeued", "False", "PodsReadyTimeout"), "first")
        assert found.status.requeue_state.count == 1
        left = seconds_of(found.status.requeue_state.requeue_at) - room.place.clock()
        assert 55 < left <= 61
        (counted,) = found.status.scheduling_stats.evictions
        assert (counted.reason, counted.underlying_cause) == ("PodsReadyTimeout", "WaitForStart")
        assert (await room.place.get(JOBS, "first")).spec.suspend
        await room.pass_time(62, found)
        found = await room.workload(has("PodsReady", "False", "WaitForStart"), "first")
        assert has("Requeued", "True", "BackoffFinished")(found)
        await room.pass_time(301, found)
        found = await room.workload(has("Requeued", "False", "Deactivated"), "first")
        assert has("DeactivationTarget", "True", "RequeuingLimitExceeded")(found)
        assert not found.spec.active
        await room.place.patch(WORKLOADS, found.name, {"spec": {"active": True}})
        found = await room.workload(admitted, "first")
        assert found.status.requeue_state is None


async def test_g13_pods_that_are_lost_have_time_to_recover() -> None:
    """Counted from when they were lost; a time of zero is for ever."""
    for recovery, evicts in (("1m", True), ("0s", False)):
        settings = {**QUICK, "recoveryTimeout": recovery}
        async with waiting_room(waitForPodsReady=settings) as room:
            await room.queue(cpu=1)
            await room.job("first")
            (pod,) = await room.pods(1)
            await room.place.run_pod(pod)
            await room.workload(has("PodsReady", "True", "Started"), "first")
            await room.place.run_pod(pod, ready=False)
            found = await room.workload(has("PodsReady", "False", "WaitForRecovery"), "first")
            await room.pass_time(100, found)
            if evicts:
                await room.workload(has("Requeued", "False", "PodsReadyTimeout"), "first")
            else:
                await room.job("witness", cpu=2)
                await room.workload(waiting("ExceedsMaxQuota"), "witness")
                still = await room.workload(lambda each: True, "first")
                assert admitted(still)


async def test_g15_with_block_admission_one_is_admitted_at_a_time() -> None:
    """The second job waits until the pods of the first are ready, though there is quota for both; without it, both start."""
    async with waiting_room(waitForPodsReady={"blockAdmission": True}) as room:
        await room.queue(cpu=2)
        await room.job("first")
        await room.workload(admitted, "first")
        await room.job("second")
        await room.workload(waiting("WaitingForPodsReady"), "second")
        (pod,) = await room.pods(1)
        await room.place.run_pod(pod)
        await room.workload(admitted, "second")
    async with waiting_room() as room:
        await room.queue(cpu=2)
        await room.job("first")
        await room.job("second")
        await room.workload(admitted, "first")
        await room.workload(admitted, "second")


async def test_the_time_that_a_workload_may_take() -> None:
    """Over all its admissions; then it is deactivated."""
    async with waiting_room() as room:
        await room.queue(cpu=1)
        await room.job("first", labels={"kueue.x-k8s.io/max-exec-time-seconds": "100"})
        found = await room.workload(admitted, "first")
        assert found.spec.maximum_execution_time_seconds == 100
        await room.pass_time(101, found)
        found = await room.workload(has("Requeued", "False", "Deactivated"), "first")
        assert has("DeactivationTarget", "True", "MaximumExecutionTimeExceeded")(found)


@pytest.mark.parametrize(
    ("resource", "reason", "again"),
    [
        (CLUSTER_QUEUES, "ClusterQueueStopped", "ClusterQueueRestarted"),
        (LOCAL_QUEUES, "LocalQueueStopped", "LocalQueueRestarted"),
    ],
    ids=["cluster queue", "local queue"],
)
async def test_g18_a_queue_that_is_stopped(resource: Any, reason: str, again: str) -> None:
    """Hold: what runs goes on, what waits stays. HoldAndDrain: evicted. None: back in the queue and running."""
    async with waiting_room() as room:
        await room.queue(cpu=2)
        await room.job("first")
        await room.pods(1)
        await room.place.patch(resource, "q", {"spec": {"stopPolicy": "Hold"}})
        await room.job("second")
        await room.workload(waiting("Suspended"), "second")
        assert admitted(await room.workload(lambda each: True, "first"))
        await room.place.patch(resource, "q", {"spec": {"stopPolicy": "HoldAndDrain"}})
        drained = await room.workload(has("Requeued", "False", reason), "first")
        assert has("Evicted", "True", reason)(drained)
        await room.pods(0)
        await room.place.patch(resource, "q", {"spec": {"stopPolicy": "None"}})
        found = await room.workload(admitted, "first")
        assert has("Requeued", "True", again)(found)
        await room.workload(admitted, "second")


async def test_why_a_queue_is_not_active_and_what_is_in_it() -> None:
    """Conditions and numbers of cluster queues and local queues."""
    async with waiting_room() as room:
        await room.queue(cpu=3, name="q", cohortName="all")
        await room.job("first", pods=2)
        await room.job("second", pods=2)
        await room.workload(waiting("WaitingForQuota"), "second")

        def counted(found: Any) -> bool:
            status = found.status or {}
            return (status.get("pendingWorkloads"), status.get("admittedWorkloads")) == (1, 1)

        cluster = await room.place.until_one(CLUSTER_QUEUES, "q", counted)
        usage = cluster.status["flavorsUsage"]
        assert usage == [
            {"name": "standard", "resources": [{"name": "cpu", "total": "2", "borrowed": "0"}]}
        ]
        local = await room.place.until_one(LOCAL_QUEUES, "q", counted)
        assert local.status["conditions"][0]["reason"] == "Ready"
        await room.queue(name="other", resourceGroups=[_of_flavor("missing")])
        cluster = await room.place.until_one(
            CLUSTER_QUEUES, "other", lambda found: bool((found.status or {}).get("conditions"))
        )
        condition = cluster.status["conditions"][0]
        assert (condition["status"], condition["reason"]) == ("False", "FlavorNotFound")
        assert condition["message"].endswith("ResourceFlavor(s): missing")


def _of_flavor(name: str) -> dict[str, Any]:
    quota = {"name": "cpu", "nominalQuota": 1}
    return {"coveredResources": ["cpu"], "flavors": [{"name": name, "resources": [quota]}]}


async def test_finished_workloads_are_kept_as_long_as_configured() -> None:
    """Then they are deleted, and the job stays."""
    retention = {"workloads": {"afterFinished": "1h"}}
    async with waiting_room(objectRetentionPolicies=retention) as room:
        await room.queue(cpu=1)
        await room.job("first")
        await room.pods(1)
        await room.finish("first")
        found = await room.workload(has("Finished", "True", "Succeeded"), "first")
        await room.pass_time(3601, found)
        await room.no_workload("first")
        await room.place.get(JOBS, "first")


async def test_a_workload_that_nobody_owns_is_admitted_and_evicted_too() -> None:
    """Quota can be tried out without anything that runs."""
    async with waiting_room() as room:
        await room.queue(cpu=1)
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": 1}}}
        template = {"spec": {"containers": [container]}}
        spec = {"queueName": "q", "podSets": [{"name": "main", "count": 1, "template": template}]}
        await room.place.create(WORKLOADS, {"metadata": {"name": "w"}, "spec": spec})
        await room.workload(admitted, "w")
        await room.place.patch(WORKLOADS, "w", {"spec": {"active": False}})
        found = await room.workload(has("Requeued", "False", "Deactivated"), "w")
        assert found.status.admission is None
        assert QUEUE not in found.workload.metadata.labels


async def test_what_a_local_queue_used_is_remembered() -> None:
    """In its status, from where the next process goes on: who used less comes first."""
    sharing = {"usageHalfLifeTime": "10s", "usageSamplingInterval": "1s"}
    mode = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    async with waiting_room(admissionFairSharing=sharing) as room:
        await room.queue(cpu=2, admissionScope=mode)
        local = {"metadata": {"name": "other"}, "spec": {"clusterQueue": "q"}}
        await room.place.create(LOCAL_QUEUES, local)
        await room.job("first", cpu=2)
        found = await room.workload(admitted, "first")
        room.place.clock.ahead += 60
        await room.touch(found)

        def used(queue: Any) -> bool:
            sharing = (queue.status or {}).get("fairSharing") or {}
            past = sharing.get("admissionFairSharingStatus") or {}
            return bool((past.get("consumedResources") or {}).get("cpu", "0") != "0")

        await room.place.until_one(LOCAL_QUEUES, "q", used)
        await room.job("of-q", cpu=2)
        await room.workload(waiting("WaitingForQuota"), "of-q")
        await room.job("of-other", cpu=2, queue="other")
        await room.workload(waiting("WaitingForQuota"), "of-other")
        await room.restart()
        await room.pods(1)
        await room.finish("first")
        await room.workload(admitted, "of-other")


async def test_a_deleted_workload_keeps_its_quota_until_its_pods_have_ended() -> None:
    """Its Job is gone before them, and they may take as long to end as they like."""
    async with waiting_room() as room:
        await room.queue(cpu=1)
        await room.job("first")
        found = await room.workload(admitted, "first")
        (pod,) = await room.pods(1)
        await room.place.client.bind(pod.metadata.name, "default", "somewhere")
        options = DeleteOptions(propagation="Background")
        await room.place.client.delete(JOBS, "first", "default", options=options)
        await room.place.client.delete(WORKLOADS, found.name, "default")
        await room.job("second")
        await room.workload(waiting("WaitingForQuota"), "second")
        assert (await room.workload(lambda _: True, found.name)).is_leaving
        await room.place.set_phase(pod, "Succeeded")
        await room.workload(admitted, "second")
