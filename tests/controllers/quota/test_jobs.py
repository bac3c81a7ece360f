"""Jobs in queues, through the API, with pods moved through their phases as a kubelet would."""

from __future__ import annotations

from controllers.quota.waiting_room import (
    CLASS,
    CLASSES,
    FLAVORS,
    QUEUE,
    WORKLOADS,
    admitted,
    has,
    waiting,
    waiting_room,
)
from controllers.workloads.stage import NAMESPACE
from drayman.cluster.resources import JOBS
from drayman.workloads.queued.names import workload_name

POD_SET = "kueue.x-k8s.io/podset"


def is_suspended(found):
    return found.spec.suspend


async def test_g17_a_job_is_held_started_with_its_flavor_and_its_quota_is_free_in_the_end() -> None:
    """One job runs with the labels of the flavor while another waits; when it has ended, the other one runs."""
    async with waiting_room() as room:
        await room.place.patch(FLAVORS, "standard", {"spec": {"nodeLabels": {"kind": "std"}}})
        await room.queue(cpu=2)
        await room.job("first", pods=2)
        first = await room.workload(admitted, "first")
        uid = (await room.place.get(JOBS, "first")).metadata.uid
        assert first.name == workload_name("batch", "Job", "first", uid)
        assert first.workload.metadata.finalizers == ("kueue.x-k8s.io/resource-in-use",)
        running = await room.place.until_one(JOBS, "first", lambda found: not found.spec.suspend)
        assert running.spec.template["spec"]["nodeSelector"] == {"kind": "std"}
        await room.job("second", pods=1)
        await room.workload(waiting("WaitingForQuota"), "second")
        assert (await room.place.get(JOBS, "second")).spec.suspend
        await room.pods(2)
        await room.finish("first")
        done = await room.workload(has("Finished", "True", "Succeeded"), "first")
        await room.workload(admitted, "second")
        await room.place.until_one(JOBS, "second", lambda found: not found.spec.suspend)
        kept = await room.place.until_one(
            WORKLOADS, done.name, lambda found: not found.metadata.finalizers
        )
        assert kept.metadata.deletion_timestamp is None
        await room.place.told(
            "CreatedWorkload", "Started", "FinishedWorkload", "QuotaReserved", "Admitted"
        )


async def test_g17_an_evicted_job_is_suspended_and_has_its_template_back() -> None:
    """A more important job takes its place; when that has ended, it runs again."""
    async with waiting_room() as room:
        await room.place.patch(FLAVORS, "standard", {"spec": {"nodeLabels": {"kind": "std"}}})
        await room.place.create(CLASSES, {"metadata": {"name": "high"}, "value": 10})
        await room.queue(cpu=2, preemption={"withinClusterQueue": "LowerPriority"})
        await room.job("low", pods=2)
        await room.pods(2)
        before = await room.workload(admitted, "low")
        await room.job("high", pods=2, labels={CLASS: "high"})
        evicted = await room.workload(has("Requeued", "True", "Preempted"), "low")
        assert evicted.status.is_true("Evicted")
        assert evicted.status.admission is None
        restored = await room.place.until_one(
            JOBS, "low", lambda found: POD_SET not in found.spec.template["metadata"]["labels"]
        )
        assert restored.spec.suspend
        assert "nodeSelector" not in restored.spec.template["spec"]
        (original,) = before.spec.pod_sets
        assert restored.spec.template["spec"] == original.template["spec"]
        high = await room.workload(admitted, "high")
        assert high.spec.priority == 10
        await room.pods(2, {"job-name": "high"})
        await room.finish("high")
        await room.workload(admitted, "low")
        await room.pods(2, {"job-name": "low"})


async def test_a_deactivated_workload_stops_its_job_and_gives_back_its_quota() -> None:
    """Until it is made active again."""
    async with waiting_room() as room:
        await room.queue(cpu=1)
        await room.job("first")
        found = await room.workload(admitted, "first")
        await room.pods(1)
        await room.place.patch(WORKLOADS, found.name, {"spec": {"active": False}})
        released = await room.workload(has("Requeued", "False", "Deactivated"), "first")
        assert released.status.admission is None
        assert (await room.place.get(JOBS, "first")).spec.suspend
        await room.place.patch(WORKLOADS, found.name, {"spec": {"active": True}})
        again = await room.workload(admitted, "first")
        assert has("Requeued", "True", "Reactivated")(again)
        await room.pods(1)


async def test_a_job_that_somebody_resumes_is_suspended_again() -> None:
    """It has no quota, so it may not run."""
    async with waiting_room() as room:
        await room.queue(cpu=0)
        await room.job("first")
        await room.workload(waiting("ExceedsMaxQuota"), "first")
        await room.place.patch(JOBS, "first", {"spec": {"suspend": False}})
        await room.place.until_one(JOBS, "first", is_suspended)
        await room.workload(waiting("ExceedsMaxQuota"), "first")


async def test_a_workload_follows_its_job_while_it_waits() -> None:
    """Its size, its queue and its class; with quota for it, the changed job runs."""
    async with waiting_room() as room:
        await room.place.create(CLASSES, {"metadata": {"name": "high"}, "value": 10})
        await room.queue(cpu=0)
        await room.queue(cpu=5, name="other")
        await room.job("first", pods=2)
        await room.workload(waiting("ExceedsMaxQuota"), "first")
        labels = {QUEUE: "other", CLASS: "high"}
        change = {"metadata": {"labels": labels}, "spec": {"parallelism": 1}}
        await room.place.patch(JOBS, "first", change)
        found = await room.workload(admitted, "first")
        assert (found.spec.queue_name, found.spec.priority) == ("other", 10)
        assert found.spec.pod_sets[0].count == 1


async def test_a_running_job_that_somebody_changes_waits_anew() -> None:
    """What was admitted is not what would run: it is stopped, and gets another Workload."""
    async with waiting_room() as room:
        await room.queue(cpu=2)
        await room.job("first", pods=2, completions=9)
        old = await room.workload(admitted, "first")
        await room.pods(2)
        await room.place.patch(JOBS, "first", {"spec": {"parallelism": 5}})
        new = await room.workload(
            lambda each: each.workload.metadata.uid != old.workload.metadata.uid, "first"
        )
        assert new.spec.pod_sets[0].count == 5
        await room.workload(waiting("ExceedsMaxQuota"), "first")
        assert (await room.place.get(JOBS, "first")).spec.suspend


async def test_a_job_that_is_content_with_less_gets_less() -> None:
    """Partial admission sets how many pods run at a time; what it wanted is kept."""
    async with waiting_room() as room:
        await room.queue(cpu=3)
        await room.job("first", pods=5, annotations={"kueue.x-k8s.io/job-min-parallelism": "2"})
        found = await room.workload(admitted, "first")
        assert found.status.admission.pod_set_assignments[0].count == 3
        assert found.spec.pod_sets[0].count == 5
        running = await room.place.until_one(JOBS, "first", lambda j: not j.spec.suspend)
        assert running.spec.parallelism == 3
        await room.pods(3)


async def test_g6_pods_that_have_ended_free_their_quota() -> None:
    """Two of three are done and none is left to start: another job of two gets in."""
    async with waiting_room() as room:
        await room.queue(cpu=3)
        await room.job("first", pods=3)
        pods = await room.pods(3)
        for each in pods[:2]:
            await room.place.set_phase(each, "Succeeded")
        found = await room.workload(lambda each: bool(each.status.reclaimable_pods), "first")
        await room.workload(
            lambda each: [p.count for p in each.status.reclaimable_pods] == [2], "first"
        )
        assert admitted(found)
        await room.job("second", pods=2)
        await room.workload(admitted, "second")


async def test_a_workload_that_somebody_deletes_is_made_again() -> None:
    """The job is stopped and restored first."""
    async with waiting_room() as room:
        await room.queue(cpu=2)
        await room.job("first")
        old = await room.workload(admitted, "first")
        await room.pods(1)
        await room.place.client.delete(WORKLOADS, old.name, NAMESPACE)
        new = await room.workload(
            lambda each: each.workload.metadata.uid != old.workload.metadata.uid and admitted(each),
            "first",
        )
        assert POD_SET not in new.spec.pod_sets[0].template["metadata"]["labels"]


async def test_a_restart_at_any_point_loses_and_doubles_nothing() -> None:
    """Before admission, while it runs, while it is being stopped: the next process goes on from the objects."""
    async with waiting_room() as room:
        await room.queue(cpu=2)
        await room.job("first", pods=2)
        await room.place.crash()
        await room.job("second", pods=2)
        await room.start()
        await room.workload(admitted, "first")
        await room.workload(waiting("WaitingForQuota"), "second")
        await room.restart()
        await room.pods(2)
        await room.place.crash()
        for pod in await room.place.pods():
            await room.place.set_phase(pod, "Succeeded")
        await room.start()
        await room.workload(has("Finished", "True", "Succeeded"), "first")
        second = await room.workload(admitted, "second")
        await room.place.crash()
        await room.place.patch(WORKLOADS, second.name, {"spec": {"active": False}})
        await room.start()
        await room.workload(has("Requeued", "False", "Deactivated"), "second")
        workloads = await room.place.until(WORKLOADS, lambda found: True)
        assert len(workloads) == 2


async def test_jobs_without_a_queue_are_left_alone() -> None:
    """Unless everything is to wait, or the namespace has a queue for them."""
    async with waiting_room() as room:
        await room.queue(cpu=5)
        await room.job("free", queue="")
        await room.pods(1)
        await room.queue(cpu=1, name="default")
        await room.job("taken", queue="")
        found = await room.workload(admitted, "taken")
        assert found.spec.queue_name == "default"
    async with waiting_room(manageJobsWithoutQueueName=True) as room:
        await room.queue(cpu=5)
        await room.job("held", queue="")
        await room.workload(waiting("Misconfigured"), "held")
        await room.place.patch(JOBS, "held", {"metadata": {"labels": {QUEUE: "q"}}})
        await room.workload(admitted, "held")


async def test_only_configured_kinds_wait() -> None:
    """And only in namespaces that are managed."""
    async with waiting_room(integrations={"frameworks": ["pod"]}) as room:
        await room.queue(cpu=0)
        await room.job("free")
        await room.pods(1)
    selector = {"matchLabels": {"team": "a"}}
    async with waiting_room(managedJobsNamespaceSelector=selector) as room:
        await room.queue(cpu=0)
        await room.job("free")
        await room.pods(1)
