"""What can be handed over, and how it looks on the manager meanwhile."""

from __future__ import annotations

from pathlib import Path

from controllers.multikueue.clusters import NAMESPACE, WORKLOADS, check, clusters, job, runs_in
from controllers.quota.test_other_kinds import DEFINITION, DEFINITIONS, JOB_SETS, job_set
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import JOBS, PODS


async def test_a_job_that_its_own_controller_runs_stays_suspended(tmp_path: Path) -> None:
    """It came before its queue handed work over, so it does not say who runs it. It runs elsewhere, and its end is shown."""
    async with clusters(tmp_path, {"one": "cpu=1"}) as place:
        manager = place.manager
        await manager.create(JOBS, job("train", run_for="1s"))
        await place.join("one")
        await manager.workload(runs_in("one"))
        await place.workers["one"].running_pod()
        shown = await manager.until_one(JOBS, "train")
        assert shown.spec.suspend
        assert shown.spec.managed_by is None
        await manager.workload(lambda w: w.status.is_true("Finished"))
        await manager.until_one(JOBS, "train", lambda j: j.status.succeeded == 1)
        assert not (await manager.client.list(PODS)).items


async def test_a_workload_without_a_job_is_rejected_by_the_check(tmp_path: Path) -> None:
    """There is nothing that could be made on a worker: the check says so, and the Workload is not active any more."""
    async with clusters(tmp_path, {"one": "cpu=1"}) as place:
        manager = place.manager
        await place.join("one")
        container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": 1}}}
        pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
        body = {"metadata": {"name": "bare"}, "spec": {"queueName": "q", "podSets": [pod_set]}}
        await manager.create(WORKLOADS, body)
        found = await manager.workload(lambda w: check(w)[0] == "Rejected")
        assert "not a Workload alone" in check(found)[1]
        await manager.until(WORKLOADS, lambda values: not values[0].spec.get("active", True))


async def test_a_job_of_the_worker_with_the_same_name_is_left_alone(tmp_path: Path) -> None:
    """The worker is not asked, and the check says why."""
    async with clusters(tmp_path, {"one": "cpu=1"}) as place:
        manager, one = place.manager, place.workers["one"]
        await one.create(JOBS, job("train", queue="other"))
        own = await one.until_one(JOBS, "train")
        await place.join("one")
        await manager.job("train")
        found = await manager.workload(lambda w: "of its own" in check(w)[1])
        assert "one: it has a Job train of its own" in check(found)[1]
        assert (await one.until_one(JOBS, "train")).metadata.uid == own.metadata.uid


async def test_a_set_of_jobs_runs_elsewhere(tmp_path: Path) -> None:
    """Its definition is on both clusters, and whoever runs such sets on the worker says how it is doing: the manager's shows that."""
    async with clusters(tmp_path, {"one": "cpu=1"}) as place:
        manager, one = place.manager, place.workers["one"]
        for cluster in (manager, one):
            await cluster.client.create(DEFINITIONS, DEFINITION)
            await cluster.stop()
            await cluster.start()
        await place.join("one")
        await manager.client.create(JOB_SETS, job_set("set", 1), NAMESPACE)
        await manager.workload(runs_in("one"))
        await one.workload(lambda w: bool(w.workload.metadata.owner_references))
        there = await one.client.get(JOB_SETS, "set", NAMESPACE)
        assert "managedBy" not in there["spec"]
        ended = {"type": "Completed", "status": "True", "reason": "Done", "message": "all done"}
        change = merge_patch({"status": {"restarts": 3, "conditions": [ended]}})
        await one.client.patch(JOB_SETS, "set", change, NAMESPACE, subresource="status")
        await manager.workload(lambda w: w.status.is_true("Finished"))
        shown = await manager.client.get(JOB_SETS, "set", NAMESPACE)
        assert (shown["status"]["restarts"], shown["spec"]["managedBy"]) == (
            3,
            "kueue.x-k8s.io/multikueue",
        )
