"""Work that must not go on: everything of it is gone from its worker before anything else happens."""

from __future__ import annotations

from pathlib import Path

from controllers.multikueue.clusters import (
    CLUSTER_QUEUES,
    WORKLOADS,
    Clusters,
    clusters,
    runs_in,
)
from drayman.cluster.resources import JOBS, PODS


async def started(place: Clusters) -> None:
    await place.join("one")
    await place.manager.job("train")
    await place.manager.workload(runs_in("one"))
    await place.workers["one"].running_pod()
    await place.manager.until_one(JOBS, "train", lambda j: j.status.ready == 1)


async def test_a_deleted_job_is_gone_from_its_worker(tmp_path: Path) -> None:
    async with clusters(tmp_path, {"one": "cpu=1"}) as place:
        await started(place)
        await place.manager.delete(JOBS, "train")
        await place.manager.none(WORKLOADS)
        for resource in (JOBS, WORKLOADS, PODS):
            await place.workers["one"].none(resource)


async def test_an_evicted_workload_gives_back_its_quota_after_it_has_stopped(
    tmp_path: Path,
) -> None:
    """The quota of the manager is free when the worker has nothing of it; then it can run again."""
    async with clusters(tmp_path, {"one": "cpu=1"}) as place:
        manager, one = place.manager, place.workers["one"]
        await started(place)
        found = await manager.workload(runs_in("one"))
        await manager.patch(WORKLOADS, found.name, {"spec": {"active": False}})
        released = await manager.workload(lambda w: w.status.admission is None)
        assert released.status.cluster_name is None
        assert not (await one.client.list(JOBS)).items
        assert not (await one.client.list(PODS)).items
        shown = await manager.until_one(JOBS, "train", lambda j: j.spec.suspend)
        assert shown.status.active == 0
        await manager.patch(WORKLOADS, found.name, {"spec": {"active": True}})
        await manager.workload(runs_in("one"))
        await one.running_pod()


async def test_what_its_worker_evicts_begins_anew(tmp_path: Path) -> None:
    """The worker stops its queue, so the workload goes to the other one."""
    async with clusters(tmp_path, {"one": "cpu=1", "two": "cpu=1"}) as place:
        manager = place.manager
        await place.join("one", "two")
        await manager.job("train")
        found = await manager.workload(lambda w: w.status.cluster_name is not None)
        name = str(found.status.cluster_name)
        (other,) = {"one", "two"} - {name}
        await place.workers[name].running_pod()
        await place.workers[name].patch(
            CLUSTER_QUEUES, "q", {"spec": {"stopPolicy": "HoldAndDrain"}}
        )
        await manager.workload(runs_in(other))
        await place.workers[other].running_pod()
        await place.workers[name].none(JOBS)


async def test_a_deleted_workload_is_made_and_handed_over_again(tmp_path: Path) -> None:
    """Somebody deletes it on the manager: its job stops everywhere, and waits again."""
    async with clusters(tmp_path, {"one": "cpu=1"}) as place:
        manager, one = place.manager, place.workers["one"]
        await started(place)
        found = await manager.workload(runs_in("one"))
        before = found.workload.metadata.uid
        await manager.delete(WORKLOADS, found.name)
        await manager.workload(lambda w: runs_in("one")(w) and w.workload.metadata.uid != before)
        await one.running_pod()
        assert len((await one.client.list(JOBS)).items) == 1
