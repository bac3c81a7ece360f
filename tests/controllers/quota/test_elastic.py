"""Jobs whose number of pods changes while they run: only the difference needs quota, and pods without quota are held."""

from __future__ import annotations

from typing import Any

from controllers.quota.waiting_room import (
    CLUSTER_QUEUES,
    WORKLOADS,
    Room,
    admitted,
    waiting,
    waiting_room,
)
from drayman.cluster.resources import JOBS, PODS
from drayman.controllers.quota.book import Known, known

ELASTIC = "kueue.x-k8s.io/elastic-job"
REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"


async def elastic(room: Room, pods: int) -> Known:
    """A job that runs with so many pods, and its Workload."""
    await room.job("first", pods=pods, completions=50, annotations={ELASTIC: "true"})
    found = await room.workload(admitted, "first")
    await free(room, pods)
    return found


async def scale(room: Room, pods: int) -> None:
    await room.place.patch(JOBS, "first", {"spec": {"parallelism": pods}})


async def free(room: Room, number: int, held: int = 0) -> None:
    """So many pods may run, and so many are held by the gate."""

    def holds(pods: list[Any]) -> bool:
        active = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
        gated = [pod for pod in active if pod.spec.scheduling_gates]
        return (len(active) - len(gated), len(gated)) == (number, held)

    await room.place.until(PODS, holds)


def counts(size: int, state: str) -> Any:
    """Whether a Workload of that size is admitted, waits, or was replaced."""

    def holds(found: Known) -> bool:
        finished = found.status.condition("Finished")
        is_so = {
            "admitted": admitted(found) and finished is None,
            "replaced": finished is not None and finished.reason == "WorkloadSliceReplaced",
        }
        return found.spec.pod_sets[0].count == size and is_so[state]

    return holds


async def used(room: Room, cpu: str) -> None:
    def holds(queue: Any) -> bool:
        usage = (queue.status or {}).get("flavorsReservation") or [{}]
        return bool((usage[0].get("resources") or [{}])[0].get("total") == cpu)

    await room.place.until_one(CLUSTER_QUEUES, "q", holds)


async def test_a_job_grows_with_quota_for_the_difference() -> None:
    """A larger slice takes the place of the smaller one, which is finished; the pods that were there run on."""
    async with waiting_room() as room:
        await room.queue(cpu=4)
        old = await elastic(room, 2)
        before = {pod.metadata.uid for pod in await room.place.pods()}
        await scale(room, 4)
        new = await room.workload(counts(4, "admitted"))
        assert new.workload.metadata.annotations[REPLACES] == f"default/{old.name}"
        await room.workload(counts(2, "replaced"), old.name)
        await free(room, 4)
        assert before <= {pod.metadata.uid for pod in await room.place.pods()}
        await used(room, "4")
        await scale(room, 3)
        smaller = await room.workload(counts(3, "admitted"))
        assert smaller.name == new.name
        await used(room, "3")
        assert not (await room.place.get(JOBS, "first")).spec.suspend


async def test_pods_without_quota_are_held_until_there_is_some_or_the_job_shrinks() -> None:
    """The job runs on with what it has. The larger slice follows the job, and goes when it is not wanted any more."""
    async with waiting_room() as room:
        await room.queue(cpu=3)
        old = await elastic(room, 2)
        await scale(room, 5)
        growing = await room.workload(waiting("ExceedsMaxQuota"))
        await free(room, 2, held=3)
        assert not (await room.place.get(JOBS, "first")).spec.suspend
        await scale(room, 4)
        await room.workload(lambda each: each.spec.pod_sets[0].count == 4, growing.name)
        await room.restart()
        await scale(room, 2)
        await room.no_workload(growing.name)
        await free(room, 2)
        await scale(room, 3)
        await room.workload(counts(3, "admitted"))
        await room.workload(counts(2, "replaced"), old.name)
        await used(room, "3")


async def test_an_evicted_elastic_job_waits_with_all_of_its_pods() -> None:
    """What it would have grown to goes: there is one Workload, of the size that it has now."""
    async with waiting_room() as room:
        await room.queue(cpu=3)
        await elastic(room, 2)
        await scale(room, 5)
        await room.workload(waiting("ExceedsMaxQuota"))
        stop = {"spec": {"stopPolicy": "HoldAndDrain"}}
        await room.place.patch(CLUSTER_QUEUES, "q", stop)

        def is_one(values: list[Any]) -> bool:
            sizes = [known(value).spec.pod_sets[0].count for value in values]
            return sizes == [5]

        await room.place.until(WORKLOADS, is_one)
        job = await room.place.until_one(JOBS, "first", lambda each: each.spec.suspend)
        await free(room, 0)
        job = await room.place.until_one(
            JOBS,
            "first",
            lambda each: "schedulingGates" not in each.spec.template["spec"],
        )
        assert job.spec.parallelism == 5
