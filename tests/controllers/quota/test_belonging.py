"""Whose a Workload is: those left behind, doubled, or made beforehand; and jobs that are part of something that waits."""

from __future__ import annotations

from typing import Any

from controllers.quota.test_other_kinds import DEFINITION, DEFINITIONS, JOB_SETS, job_set
from controllers.quota.waiting_room import (
    CLASS,
    CLASSES,
    QUEUE,
    WORKLOADS,
    Room,
    admitted,
    has,
    job,
    pod,
    waiting,
    waiting_room,
)
from controllers.workloads.stage import NAMESPACE
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import JOBS, PODS, Resource
from drayman.controllers.quota.book import Known

PREBUILT = "kueue.x-k8s.io/prebuilt-workload-name"
GROUP = "kueue.x-k8s.io/pod-group-name"
TOTAL = "kueue.x-k8s.io/pod-group-total-count"


async def leave_behind(room: Room, resource: Resource[object], name: str) -> None:
    options = DeleteOptions(propagation="Orphan")
    await room.place.client.delete(resource, name, NAMESPACE, options=options)


async def test_a_workload_that_its_job_leaves_behind_ends_and_frees_its_quota() -> None:
    """Whether it has quota or waits; a job of the same name that comes later has its own."""
    async with waiting_room() as room:
        await room.queue(cpu=1)
        await room.job("first")
        old = await room.workload(admitted, "first")
        await room.job("second")
        late = await room.workload(waiting("WaitingForQuota"), "second")
        await leave_behind(room, JOBS, "second")
        await room.workload(has("Finished", "True", "OwnerNotFound"), late.name)
        await leave_behind(room, JOBS, "first")
        await room.workload(has("Finished", "True", "OwnerNotFound"), old.name)
        await room.place.until(JOBS, lambda jobs: not jobs)  # it is let go after what it owned
        await room.job("first")
        new = await room.workload(admitted, "first")
        assert new.name != old.name


async def test_a_workload_that_its_pods_leave_behind_ends() -> None:
    """Of a group, when the last of them is gone."""
    async with waiting_room() as room:
        await room.queue(cpu=2)
        for name in ("a", "b"):
            body = pod(name, labels={GROUP: "g"}, annotations={TOTAL: "2"})
            await room.place.create(PODS, body)
        await room.workload(admitted, "g")
        for name in ("a", "b"):
            await leave_behind(room, PODS, name)
        await room.workload(has("Finished", "True", "OwnerNotFound"), "g")


async def test_a_second_workload_of_a_job_is_deleted() -> None:
    """The one with quota stays."""
    async with waiting_room() as room:
        await room.queue(cpu=1)
        await room.job("first")
        kept = await room.workload(admitted, "first")
        value = await room.place.client.get(WORKLOADS.as_values(), kept.name, NAMESPACE)
        owners = value["metadata"]["ownerReferences"]
        body = {
            "metadata": {"name": "double", "ownerReferences": owners},
            "spec": value["spec"],
        }
        await room.place.create(WORKLOADS, body)
        await room.no_workload("double")
        assert (await room.workload(admitted, "first")).name == kept.name


async def test_a_prebuilt_workload_that_is_not_what_its_job_describes_ends() -> None:
    """It is not changed: somebody else has made it."""
    async with waiting_room() as room:
        await room.queue(cpu=4)
        await room.job("model", pods=2, queue="nowhere")
        model = await room.workload(lambda _: True, "model")
        value = await room.place.client.get(WORKLOADS.as_values(), model.name, NAMESPACE)
        body = {"metadata": {"name": "made"}, "spec": {**value["spec"], "queueName": "q"}}
        await room.place.create(WORKLOADS, body)
        await room.job("first", pods=3, labels={PREBUILT: "made"})
        found = await room.workload(has("Finished", "True", "OutOfSync"), "made")
        assert found.spec.pod_sets[0].count == 2
        assert (await room.place.get(JOBS, "first")).spec.suspend


async def test_a_job_that_is_part_of_something_that_waits_is_suspended_and_not_queued() -> None:
    """It gets no Workload. What it is part of has quota for it, so it may run when that may."""
    async with waiting_room() as room:
        client = room.place.client
        await client.create(DEFINITIONS, DEFINITION)
        await room.restart()
        await room.queue(cpu=0)
        made = await client.create(JOB_SETS, job_set("set", 1), NAMESPACE)
        await room.workload(waiting("ExceedsMaxQuota"), "set")
        owner = {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "name": "set",
            "uid": made["metadata"]["uid"],
            "controller": True,
        }
        body = job("part", queue="")
        body["metadata"]["ownerReferences"] = [owner]
        await room.place.create(JOBS, body)
        await room.place.until_one(JOBS, "part", lambda found: found.spec.suspend)
        assert len((await client.list(WORKLOADS)).items) == 1


async def test_what_is_deactivated_here_is_deleted_with_its_job_as_configured() -> None:
    """Not what its owner has deactivated."""
    retention = {"workloads": {"afterDeactivatedByKueue": "1h"}}
    limit = {"timeout": "5m", "requeuingStrategy": {"backoffLimitCount": 0}}
    async with waiting_room(objectRetentionPolicies=retention, waitForPodsReady=limit) as room:
        await room.queue(cpu=2)
        await room.job("first")
        await room.job("second")
        second = await room.workload(admitted, "second")
        await room.place.patch(WORKLOADS, second.name, {"spec": {"active": False}})
        await room.workload(has("Requeued", "False", "Deactivated"), "second")
        found = await room.workload(has("PodsReady", "False", "WaitForStart"), "first")
        await room.pass_time(301, found)
        found = await room.workload(has("Requeued", "False", "Deactivated"), "first")
        await room.pass_time(3601, found)
        await room.no_workload("first")
        await room.place.until(JOBS, lambda jobs: [j.metadata.name for j in jobs] == ["second"])
        await room.touch(second)
        await room.workload(has("Requeued", "False", "Deactivated"), "second")


async def test_the_class_of_a_job_with_quota_may_change() -> None:
    """Its Workload follows, and the job runs on."""

    def is_high(found: Known) -> bool:
        return found.spec.priority == 10 and admitted(found)

    async with waiting_room() as room:
        await room.place.create(CLASSES, {"metadata": {"name": "high"}, "value": 10})
        await room.queue(cpu=1)
        await room.job("first")
        await room.pods(1)
        await room.place.patch(JOBS, "first", {"metadata": {"labels": {CLASS: "high"}}})
        await room.workload(is_high, "first")
        assert not (await room.place.get(JOBS, "first")).spec.suspend


async def test_what_is_made_by_something_without_a_queue_waits_by_itself() -> None:
    """A job that names no queue, whose pods do: each of them waits alone, as it would without the job."""
    async with waiting_room() as room:
        await room.queue(cpu=1)
        body = job("loose", pods=2, queue="", labels={"a": "b"})
        body["spec"]["template"]["metadata"] = {"labels": {QUEUE: "q"}}
        await room.place.create(JOBS, body)

        def one_is_free(pods: list[Any]) -> bool:
            return sorted(bool(each.spec.scheduling_gates) for each in pods) == [False, True]

        await room.place.until(PODS, one_is_free)
        assert not (await room.place.get(JOBS, "loose")).spec.suspend
