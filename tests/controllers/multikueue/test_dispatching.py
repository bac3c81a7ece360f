"""Work that is handed to other clusters, from the job to its end."""

from __future__ import annotations

from pathlib import Path

from controllers.multikueue.clusters import (
    CHECKS,
    GPU,
    WORKLOADS,
    active,
    check,
    clusters,
    runs_in,
)
from drayman.cluster.resources import JOBS, PODS, RESOURCE_CLAIM_TEMPLATES


async def test_d79_a_job_runs_on_a_worker_and_its_end_comes_back(tmp_path: Path) -> None:
    """The check names the worker, the other worker has nothing any more, and what is left in the end is the job on the manager."""
    async with clusters(tmp_path, {"one": "cpu=1", "two": "cpu=1"}) as place:
        await place.join("one", "two")
        await place.manager.until_one(
            CHECKS, "elsewhere", lambda c: active(c) == ("True", "Active")
        )
        await place.manager.job("train", run_for="300ms")
        found = await place.manager.workload(lambda w: w.status.cluster_name is not None)
        (state,) = found.status.admission_checks
        assert state.state == "Ready"
        assert f'"{found.status.cluster_name}"' in state.message
        done = await place.manager.workload(lambda w: w.status.is_true("Finished"))
        assert done.status.condition("Finished").reason == "Succeeded"
        job = await place.manager.until_one(JOBS, "train", lambda j: j.status.succeeded == 1)
        assert job.spec.managed_by == "kueue.x-k8s.io/multikueue"
        await place.manager.none(PODS)
        for worker in place.workers.values():
            await worker.none(JOBS)
            await worker.none(WORKLOADS)


async def test_d80_a_template_of_the_manager_alone_is_copied_and_the_job_runs(
    tmp_path: Path,
) -> None:
    """Kueue leaves such a job without a cluster. Here the template goes along, and goes when the job is over."""
    async with clusters(tmp_path, {"one": "example=1", "two": "example=1"}) as place:
        await place.manager.device_class()
        await place.manager.template()
        await place.join("one", "two")
        await place.manager.job("train", gpu="one-gpu", run_for="300ms")
        await place.manager.workload(lambda w: w.status.is_true("Finished"))
        for each in place.workers.values():
            await each.none(JOBS)
            await each.none(RESOURCE_CLAIM_TEMPLATES)


async def test_a_selector_is_charged_by_class_where_only_workers_have_devices(
    tmp_path: Path,
) -> None:
    """The manager has no device that the selector could match, and charges one device of the class."""
    async with clusters(tmp_path, {"one": "example=1"}) as place:
        await place.manager.device_class()
        await place.manager.template(select='device.driver == "gpu.example.com"')
        await place.join("one")
        await place.manager.job("train", gpu="one-gpu")
        found = await place.manager.workload(runs_in("one"))
        (assigned,) = found.status.admission.pod_set_assignments
        assert str(assigned.resource_usage[GPU]) == "1"
        await place.workers["one"].running_pod()


async def test_a_worker_without_the_devices_is_not_asked(tmp_path: Path) -> None:
    """Both have quota, and only the second one has devices."""
    async with clusters(tmp_path, {"one": "cpu=1", "two": "example=1"}) as place:
        await place.manager.device_class()
        await place.manager.template()
        await place.join("one", "two")
        await place.manager.job("train", gpu="one-gpu")
        found = await place.manager.workload(runs_in("two"))
        assert check(found)[0] == "Ready"
        await place.workers["two"].running_pod()
        assert not (await place.workers["one"].client.list(WORKLOADS)).items
        shown = await place.manager.until_one(JOBS, "train", lambda j: j.status.ready == 1)
        assert not shown.spec.suspend
        await place.manager.workload(lambda w: w.status.is_true("PodsReady"))
