"""Jobs whose pods start together get a Workload and a PodGroup, where that is switched on."""

from __future__ import annotations

from functools import partial
from typing import Any

from controllers.workloads.stage import NAMESPACE, Stage, stage
from controllers.workloads.test_jobs import job
from drayman.api.core import Pod
from drayman.cluster.resources import JOBS, POD_GROUPS, PODS, WORKLOADS
from drayman.controllers.workloads.jobs import JobController
from drayman.workloads.jobs.failures import BackoffTimes
from drayman.workloads.jobs.groups import body_of, group_name, workload_of

without = partial(JobController, backoff=BackoffTimes(first=0.0))
controller = partial(without, makes_groups=True)
TOGETHER: dict[str, Any] = {"completionMode": "Indexed", "parallelism": 3, "completions": 3}


def groups_of(pods: list[Pod]) -> set[str | None]:
    return {
        None if pod.spec.scheduling_group is None else pod.spec.scheduling_group.pod_group_name
        for pod in pods
    }


async def pods_of(place: Stage, number: int) -> list[Pod]:
    return await place.until(PODS, lambda pods: len(pods) == number)


async def test_a_job_gets_one_group_for_all_of_its_pods() -> None:
    """The group wants as many pods as run at a time, belongs to the job, and refers to the Workload."""
    async with stage(controller) as place:
        await place.create(JOBS, job(**TOGETHER))
        pods = await pods_of(place, 3)
        (group,) = await place.until(POD_GROUPS, lambda found: len(found) == 1)
        (workload,) = await place.until(WORKLOADS, lambda found: len(found) == 1)
        assert groups_of(pods) == {group.metadata.name}
        assert group.spec.scheduling_policy.gang.min_count == 3
        assert group.spec.disruption_mode == "Pod"
        assert group.spec.pod_group_template_ref.workload.workload_name == workload.metadata.name
        job_uid = (await place.get(JOBS, "work")).metadata.uid
        for each in (group, workload):
            assert [owner.uid for owner in each.metadata.owner_references] == [job_uid]
        await place.told("WorkloadCreated", "PodGroupCreated")


async def test_a_pod_that_is_made_again_joins_the_group() -> None:
    """Also after the controller was restarted, and without a second group."""
    async with stage(controller) as place:
        await place.create(JOBS, job(**TOGETHER, backoffLimit=9))
        pods = await pods_of(place, 3)
        await place.crash()
        await place.set_phase(pods[0], "Failed")
        await place.start(controller)
        pods = await pods_of(place, 4)
        (group,) = await place.until(POD_GROUPS, lambda found: len(found) == 1)
        assert groups_of(pods) == {group.metadata.name}


async def test_a_job_that_began_before_goes_on_without_a_group() -> None:
    """Switching it on does not split the pods of a Job."""
    async with stage(without) as place:
        await place.create(JOBS, job(**TOGETHER, backoffLimit=9))
        pods = await pods_of(place, 3)
        await place.crash()
        await place.set_phase(pods[0], "Failed")
        await place.start(controller)
        assert groups_of(await pods_of(place, 4)) == {None}
        assert not await place.until(POD_GROUPS, lambda found: not found)


async def test_a_crash_between_workload_and_group_is_made_good() -> None:
    """What exists is found, what is missing is made."""
    async with stage() as place:
        await place.create(JOBS, job(**TOGETHER))
        found = await place.get(JOBS, "work")
        await place.create(WORKLOADS, body_of(workload_of(found)))
        await place.start(controller)
        pods = await pods_of(place, 3)
        (group,) = await place.until(POD_GROUPS, lambda groups: len(groups) == 1)
        assert groups_of(pods) == {group.metadata.name}


async def test_other_jobs_and_other_clusters_have_no_groups() -> None:
    """Neither a Job whose pods run one after the other, nor any where it is not switched on."""
    async with stage(controller) as place:
        await place.create(JOBS, job(completions=3, parallelism=2, completionMode="Indexed"))
        assert groups_of(await pods_of(place, 2)) == {None}
    async with stage(without) as place:
        await place.create(JOBS, job(**TOGETHER))
        assert groups_of(await pods_of(place, 3)) == {None}
        assert not await place.until(WORKLOADS, lambda found: not found)


async def test_a_name_that_is_taken_is_reported() -> None:
    """A group that belongs to something else is left alone, and no pod is made without one."""
    async with stage() as place:
        await place.create(JOBS, job(**TOGETHER))
        name = group_name(await place.get(JOBS, "work"))
        template = {"name": "other", "schedulingPolicy": {"basic": {}}}
        taken = {"metadata": {"name": name}, "spec": {"podGroupTemplates": [template]}}
        await place.create(WORKLOADS, taken)
        await place.start(controller)
        await place.until_one(JOBS, "work", lambda found: found.status.start_time is not None)
        assert await pods_of(place, 0) == []
        await place.client.delete(WORKLOADS, name, NAMESPACE)
        assert groups_of(await pods_of(place, 3)) == {name}
        await place.told("FailedCreate")
