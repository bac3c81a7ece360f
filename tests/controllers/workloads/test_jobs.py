"""Jobs through the API, with pods moved through their phases as a kubelet would."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

from controllers.workloads.stage import NAMESPACE, Stage, stage, template
from controllers.world import eventually
from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.jobs import Job, UncountedPods
from drayman.cluster import InProcessClient
from drayman.cluster.informers import Informers
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import JOBS, NAMESPACES, PODS, JsonObject
from drayman.controllers.workloads.jobs import JobController
from drayman.workloads.jobs.failures import BackoffTimes
from drayman.workloads.jobs.pods import FAILURES, FINALIZER, INDEX

controller = partial(JobController, backoff=BackoffTimes(first=0.0))


def job(name: str = "work", *, restart: str = "Never", **spec: object) -> JsonObject:
    body = template(app=name)
    body["spec"]["restartPolicy"] = restart
    return {"metadata": {"name": name}, "spec": {"template": body, **spec}}


def conditions(found: Job) -> list[tuple[str, str, str]]:
    return [(c.type_, c.status, c.reason) for c in found.status.conditions]


def active(pods: list[Pod]) -> list[Pod]:
    ended = ("Succeeded", "Failed")
    return [
        p for p in pods if p.status.phase not in ended and p.metadata.deletion_timestamp is None
    ]


async def end(place: Stage, pods: list[Pod], phase: str = "Succeeded", **more: int) -> None:
    for pod in pods:
        await place.set_phase(pod, phase, **more)


async def test_a_job_runs_so_many_pods_at_a_time_until_so_many_have_succeeded() -> None:
    """Three completions, two at a time: two pods, then the third, then Complete with Kubernetes' reasons and no pod left tracked."""
    async with stage(controller) as place:
        await place.create(JOBS, job(completions=3, parallelism=2))
        first = await place.until(PODS, lambda pods: len(pods) == 2)
        assert all(FINALIZER in pod.metadata.finalizers for pod in first)
        uid = (await place.get(JOBS, "work")).metadata.uid
        assert {pod.metadata.labels["batch.kubernetes.io/controller-uid"] for pod in first} == {uid}
        await end(place, first)
        pods = await place.until(PODS, lambda pods: len(pods) == 3)
        await place.until_one(
            JOBS, "work", lambda j: (j.status.active, j.status.succeeded) == (1, 2)
        )
        await end(place, active(pods))
        done = await place.until_one(JOBS, "work", lambda j: j.status.completion_time is not None)
        assert conditions(done) == [
            ("SuccessCriteriaMet", "True", "CompletionsReached"),
            ("Complete", "True", "CompletionsReached"),
        ]
        assert (done.status.succeeded, done.status.failed, done.status.active) == (3, 0, 0)
        assert done.status.uncounted_terminated_pods == UncountedPods()
        await place.until(PODS, lambda pods: not any(pod.metadata.finalizers for pod in pods))
        await place.told("Completed")
        reasons = Counter(await place.reasons())
        assert reasons["SuccessfulCreate"] == 3
        assert reasons["Completed"] == 1


async def test_an_indexed_job_gives_each_pod_its_index() -> None:
    """Index in annotation, label, host name, name and variable; the completed ones are told as intervals."""
    async with stage(controller) as place:
        await place.create(JOBS, job(completions=4, parallelism=4, completionMode="Indexed"))
        pods = await place.until(PODS, lambda pods: len(pods) == 4)
        by_index = {pod.metadata.annotations[INDEX]: pod for pod in pods}
        assert sorted(by_index) == ["0", "1", "2", "3"]
        assert by_index["2"].metadata.labels[INDEX] == "2"
        assert by_index["2"].metadata.name.startswith("work-2-")
        raw = await place.client.get(PODS.as_values(), by_index["2"].metadata.name, NAMESPACE)
        assert raw["spec"]["hostname"] == "work-2"
        source = raw["spec"]["containers"][0]["env"][0]["valueFrom"]["fieldRef"]["fieldPath"]
        assert source == f"metadata.labels['{INDEX}']"
        await end(place, [by_index["0"], by_index["2"], by_index["3"]])
        await place.until_one(JOBS, "work", lambda j: j.status.completed_indexes == "0,2,3")
        await end(place, [by_index["1"]])
        done = await place.until_one(JOBS, "work", lambda j: j.status.completion_time is not None)
        assert (done.status.completed_indexes, done.status.succeeded) == ("0-3", 4)


async def test_a_job_fails_when_more_pods_fail_than_its_limit() -> None:
    """With a limit of one the second failure ends the job, and the pod that still runs counts as failed."""
    async with stage(controller) as place:
        await place.create(JOBS, job(completions=3, parallelism=2, backoffLimit=1))
        first, second = await place.until(PODS, lambda pods: len(pods) == 2)
        await place.run_pod(second)
        await end(place, [first], "Failed")
        pods = await place.until(PODS, lambda pods: len(pods) == 3)
        third = next(p for p in active(pods) if p.metadata.name != second.metadata.name)
        await end(place, [third], "Failed")
        failed = await place.until_one(
            JOBS, "work", lambda j: ("Failed", "True", "BackoffLimitExceeded") in conditions(j)
        )
        assert conditions(failed)[0] == ("FailureTarget", "True", "BackoffLimitExceeded")
        assert (failed.status.failed, failed.status.succeeded) == (3, 0)
        await place.told("BackoffLimitExceeded")


async def test_a_job_waits_longer_after_each_failure() -> None:
    """After a failure no pod is made before the back-off has passed by the controller's clock."""
    async with stage(partial(JobController, backoff=BackoffTimes(100.0))) as place:
        await place.create(JOBS, job())
        pods = await place.until(PODS, lambda pods: len(pods) == 1)
        await end(place, pods, "Failed", exit_code=1)
        await place.until_one(JOBS, "work", lambda j: j.status.failed == 1 and not j.status.active)
        assert len(await place.pods()) == 1
        place.clock.ahead = 101.0
        await place.patch(JOBS, "work", {"metadata": {"annotations": {"look": "again"}}})
        await place.until(PODS, lambda pods: len(pods) == 2)


def whose_first_pod_fails_at_once(
    client: InProcessClient, informers: Informers, **more: Any
) -> JobController:
    """A controller that hears that its first pod has failed before it is told that the pod was made."""
    ended = False

    class Slow(InProcessClient):
        async def create(self, resource: Any, value: Any, *args: Any, **options: Any) -> Any:
            nonlocal ended
            made = await super().create(resource, value, *args, **options)
            if resource.plural == PODS.plural and not ended:
                ended = True
                place = Stage(client, None)
                await place.set_phase(convert(Pod, made), "Failed", exit_code=42)
                found = await client.get(PODS, made["metadata"]["name"], NAMESPACE)
                await informers.wait_seen({PODS.qualified: found.metadata.resource_version})
            return made

    return JobController(Slow(client._backend), informers, **more)


async def test_a_job_waits_after_a_pod_that_failed_before_its_creation_was_answered() -> None:
    """It was not there when the round was decided about, so it is for the next one."""
    controller = partial(whose_first_pod_fails_at_once, backoff=BackoffTimes(100.0))
    async with stage(controller) as place:
        await place.create(JOBS, job())
        await place.until_one(JOBS, "work", lambda j: j.status.failed == 1)
        await place.until(PODS, lambda pods: not any(pod.metadata.finalizers for pod in pods))
        assert len(await place.pods()) == 1


async def test_a_failure_policy_hears_of_a_pod_that_failed_before_its_creation_was_answered() -> (
    None
):
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
    async with stage(whose_first_pod_fails_at_once) as place:
        await place.create(JOBS, job(podFailurePolicy={"rules": rules}))
        await place.until_one(
            JOBS, "work", lambda j: ("Failed", "True", "PodFailurePolicy") in conditions(j)
        )
        assert len(await place.pods()) == 1


async def test_a_job_does_not_wait_for_a_clock_that_was_set_back() -> None:
    """A failure that lies hours ahead is no reason to wait for hours."""
    async with stage(partial(JobController, backoff=BackoffTimes(100.0))) as place:
        await place.create(JOBS, job())
        pods = await place.until(PODS, lambda pods: len(pods) == 1)
        await end(place, pods, "Failed", exit_code=1)
        await place.until_one(JOBS, "work", lambda j: j.status.failed == 1 and not j.status.active)
        assert len(await place.pods()) == 1
        place.clock.ahead = -7_200.0
        await place.patch(JOBS, "work", {"metadata": {"annotations": {"look": "again"}}})
        await place.until(PODS, lambda pods: len(pods) == 2)


async def test_failures_are_counted_by_index() -> None:
    """An index that has used up its attempts is given up, the others go on, and then the job fails for it."""
    async with stage(controller) as place:
        await place.create(
            JOBS,
            job(completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1),
        )
        pods = await place.until(PODS, lambda pods: len(pods) == 2)
        unlucky = next(p for p in pods if p.metadata.annotations[INDEX] == "1")
        lucky = next(p for p in pods if p.metadata.annotations[INDEX] == "0")
        await end(place, [unlucky], "Failed")
        pods = await place.until(PODS, lambda pods: len(pods) == 3)
        again = next(p for p in active(pods) if p.metadata.annotations[INDEX] == "1")
        assert again.metadata.annotations[FAILURES] == "1"
        await end(place, [again], "Failed")
        await place.until_one(JOBS, "work", lambda j: j.status.failed_indexes == "1")
        await end(place, [lucky])
        failed = await place.until_one(
            JOBS, "work", lambda j: ("Failed", "True", "FailedIndexes") in conditions(j)
        )
        assert (failed.status.completed_indexes, failed.status.failed) == ("0", 2)


async def test_a_failure_policy_ends_a_job_or_ignores_a_failure() -> None:
    """Exit code 42 ends the job at once; a pod that was disrupted is replaced and not counted."""
    rules = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
    ]
    async with stage(controller) as place:
        await place.create(JOBS, job(backoffLimit=0, podFailurePolicy={"rules": rules}))
        (first,) = await place.until(PODS, lambda pods: len(pods) == 1)
        disrupted = [{"type": "DisruptionTarget", "status": "True"}]
        change = {"status": {"phase": "Failed", "conditions": disrupted}}
        await place.patch(PODS, first.metadata.name, change, subresource="status")
        pods = await place.until(PODS, lambda pods: len(pods) == 2)
        assert (await place.get(JOBS, "work")).status.failed == 0
        (second,) = active(pods)
        await end(place, [second], "Failed", exit_code=42)
        failed = await place.until_one(
            JOBS, "work", lambda j: ("Failed", "True", "PodFailurePolicy") in conditions(j)
        )
        message = failed.status.conditions[-1].message
        assert message == (
            f"Container main for pod {NAMESPACE}/{second.metadata.name} failed with exit code 42 "
            "matching FailJob rule at index 1"
        )


async def test_a_success_policy_ends_a_job_early() -> None:
    """The leader's success is enough; the pods that are left are deleted and no failures."""
    policy = {"rules": [{"succeededIndexes": "0"}]}
    async with stage(controller) as place:
        await place.create(
            JOBS,
            job(completions=3, parallelism=3, completionMode="Indexed", successPolicy=policy),
        )
        pods = await place.until(PODS, lambda pods: len(pods) == 3)
        await end(place, [p for p in pods if p.metadata.annotations[INDEX] == "0"])
        done = await place.until_one(JOBS, "work", lambda j: j.status.completion_time is not None)
        assert conditions(done)[-1] == ("Complete", "True", "SuccessPolicy")
        assert (done.status.succeeded, done.status.failed) == (1, 0)
        await place.until(PODS, lambda pods: len(pods) == 1)


async def test_a_job_ends_when_it_was_active_for_too_long() -> None:
    """Past its deadline a job fails and its pods are deleted."""
    async with stage(controller) as place:
        await place.create(JOBS, job(activeDeadlineSeconds=60))
        await place.until(PODS, lambda pods: len(pods) == 1)
        await place.until_one(JOBS, "work", lambda j: j.status.start_time is not None)
        place.clock.ahead = 61.0
        await place.patch(JOBS, "work", {"metadata": {"annotations": {"look": "again"}}})
        failed = await place.until_one(
            JOBS, "work", lambda j: ("Failed", "True", "DeadlineExceeded") in conditions(j)
        )
        assert failed.status.active == 0
        await place.until(PODS, lambda pods: not pods)


async def test_a_suspended_job_has_no_pods_and_starts_anew_when_resumed() -> None:
    """Suspension deletes the pods without counting them; going on sets the start time again."""
    async with stage(controller) as place:
        await place.create(JOBS, job(parallelism=2, completions=2))
        await place.until(PODS, lambda pods: len(pods) == 2)
        await place.patch(JOBS, "work", {"spec": {"suspend": True}})
        await place.until(PODS, lambda pods: not pods)
        held = await place.until_one(
            JOBS, "work", lambda j: ("Suspended", "True", "JobSuspended") in conditions(j)
        )
        assert (held.status.start_time, held.status.failed, held.status.active) == (None, 0, 0)
        await place.patch(JOBS, "work", {"spec": {"suspend": False}})
        await place.until(PODS, lambda pods: len(pods) == 2)
        on = await place.until_one(
            JOBS, "work", lambda j: ("Suspended", "False", "JobResumed") in conditions(j)
        )
        assert on.status.start_time is not None
        await place.told("Suspended", "Resumed")


async def test_a_job_can_wait_for_pods_to_end_before_it_replaces_them() -> None:
    """With podReplacementPolicy Failed a pod on its way out is not replaced until it has failed."""
    async with stage(controller) as place:
        await place.create(JOBS, job(podReplacementPolicy="Failed"))
        (pod,) = await place.until(PODS, lambda pods: len(pods) == 1)
        await place.client.bind(pod.metadata.name, NAMESPACE, "node-1")
        await place.run_pod(pod)
        await place.client.delete(PODS, pod.metadata.name, NAMESPACE)
        waiting = await place.until_one(JOBS, "work", lambda j: j.status.terminating == 1)
        assert waiting.status.active == 0
        assert len(await place.pods()) == 1
        await place.set_phase(pod, "Failed")
        await place.until(PODS, lambda pods: len(active(pods)) == 1)
        await place.until_one(JOBS, "work", lambda j: j.status.failed == 1)


async def test_a_finished_job_is_removed_when_its_time_is_up() -> None:
    """ttlSecondsAfterFinished deletes the job and, through it, its pods."""
    async with stage(controller, collecting=True) as place:
        await place.create(JOBS, job(ttlSecondsAfterFinished=30))
        pods = await place.until(PODS, lambda pods: len(pods) == 1)
        await end(place, pods)
        await place.until_one(JOBS, "work", lambda j: j.status.completion_time is not None)
        place.clock.ahead = 31.0
        await place.patch(JOBS, "work", {"metadata": {"annotations": {"look": "again"}}})
        await place.until(JOBS, lambda jobs: not jobs)
        await place.until(PODS, lambda pods: not pods)


async def test_pods_of_a_deleted_job_are_freed() -> None:
    """Orphaned or collected, no pod keeps the finalizer of a job that is gone."""
    async with stage(controller, collecting=True) as place:
        await place.create(JOBS, job("kept", parallelism=2, completions=2))
        await place.create(JOBS, job("dropped", parallelism=2, completions=2))
        await place.until(PODS, lambda pods: len(pods) == 4)
        for name, propagation in (("kept", "Orphan"), ("dropped", "Background")):
            options = DeleteOptions(propagation=propagation)
            await place.client.delete(JOBS, name, NAMESPACE, options=options)
        left = await place.until(
            PODS, lambda pods: len(pods) == 2 and not any(p.metadata.finalizers for p in pods)
        )
        assert {pod.metadata.labels["app"] for pod in left} == {"kept"}


async def test_a_large_job_is_made_in_rounds() -> None:
    """Twelve hundred pods at once come to be, each once."""
    async with stage(controller) as place:
        await place.create(JOBS, job(parallelism=1200, completions=1200))
        await place.until_one(JOBS, "work", lambda j: j.status.active == 1200)
        assert len(await place.pods()) == 1200


async def test_a_job_managed_by_somebody_else_is_left_alone() -> None:
    """managedBy names another controller, so nothing is done for the first job, while the second one runs."""
    async with stage(controller) as place:
        await place.create(JOBS, job("theirs", managedBy="example.com/other"))
        await place.create(JOBS, job("ours"))
        (pod,) = await place.until(PODS, lambda pods: len(pods) == 1)
        assert pod.metadata.labels["app"] == "ours"


async def test_nothing_is_kept_of_jobs_that_are_gone() -> None:
    """Failures in a row, own writes and namespaces of Jobs that were deleted are forgotten, however many there were."""
    async with stage(controller) as place:
        for number in range(3):
            namespace = f"ns-{number}"
            await place.client.create(NAMESPACES.as_values(), {"metadata": {"name": namespace}})
            body = {**job(), "metadata": {"name": "work", "namespace": namespace}}
            made = await place.client.create(JOBS.as_values(), body, namespace)
            await eventually(partial(_pods_in, place, namespace), lambda pods: len(pods) == 1)
            await place.client.delete(
                JOBS,
                made["metadata"]["name"],
                namespace,
                options=DeleteOptions(propagation="Background"),
            )
        assert place.running is not None
        (jobs,) = place.running.controllers

        async def kept() -> tuple[object, ...]:
            return jobs._rows, jobs._own, jobs._by_namespace

        await eventually(kept, lambda maps: not any(maps))


async def _pods_in(place: Stage, namespace: str) -> list[Pod]:
    return list((await place.client.list(PODS, namespace)).items)
