"""Workers that do not answer, that come back, and that are given up."""

from __future__ import annotations

from pathlib import Path

from controllers.multikueue.clusters import (
    CHECKS,
    CLUSTERS,
    WORKLOADS,
    active,
    clusters,
    is_active,
    runs_in,
)
from drayman.cluster.resources import JOBS, PODS


async def test_work_of_a_lost_worker_begins_elsewhere_and_its_leftovers_go(tmp_path: Path) -> None:
    """After its lease it runs on the other worker. When the first one is back, what it had of the work is removed there."""
    settings = {"workerLostTimeout": "1s"}
    async with clusters(tmp_path, {"one": "cpu=1", "two": "cpu=1"}, **settings) as place:
        manager, one, two = place.manager, place.workers["one"], place.workers["two"]
        await place.join("one", "two")
        await manager.job("train")
        found = await manager.workload(lambda w: w.status.cluster_name is not None)
        first, second = (one, two) if found.status.cluster_name == "one" else (two, one)
        lost, other = ("one", "two") if first is one else ("two", "one")
        await first.running_pod()
        await manager.until_one(JOBS, "train", lambda j: j.status.ready == 1)
        await first.stop()
        await manager.until_one(CLUSTERS, lost, lambda c: active(c)[0] == "False")
        await manager.until_one(
            CHECKS, "elsewhere", lambda c: active(c) == ("True", "SomeActiveClusters")
        )
        again = await manager.workload(runs_in(other))
        assert again.status.scheduling_stats is not None
        assert [each.reason for each in again.status.scheduling_stats.evictions] == [
            "AdmissionCheck"
        ]
        await second.running_pod()
        await manager.until_one(JOBS, "train", lambda j: j.status.ready == 1)
        await first.start()
        await manager.until_one(CLUSTERS, lost, is_active)
        await first.none(JOBS)
        await first.none(WORKLOADS)
        await first.none(PODS)
        assert runs_in(other)(await manager.workload(lambda w: True))


async def test_a_worker_that_is_silent_for_a_moment_keeps_its_work(tmp_path: Path) -> None:
    """It is waited for, and the work that it finished comes back."""
    async with clusters(tmp_path, {"one": "cpu=1", "two": "cpu=1"}) as place:
        manager = place.manager
        await place.join("one", "two")
        await manager.job("train", run_for="2s")
        found = await manager.workload(lambda w: w.status.cluster_name is not None)
        name = str(found.status.cluster_name)
        worker = place.workers[name]
        await worker.running_pod()
        await worker.stop()
        await manager.until_one(CLUSTERS, name, lambda c: active(c)[0] == "False")
        waiting = await manager.workload(runs_in(name))
        assert waiting.status.admission_checks[0].state == "Ready"
        await worker.start()
        done = await manager.workload(lambda w: w.status.is_true("Finished"))
        assert done.status.cluster_name == name
        assert not done.status.is_true("Evicted")


async def test_a_worker_that_is_taken_out_is_emptied_first(tmp_path: Path) -> None:
    """Its MultiKueueCluster is deleted: its work is stopped there, and begins elsewhere after that."""
    async with clusters(tmp_path, {"one": "cpu=1", "two": "cpu=1"}) as place:
        manager = place.manager
        await place.join("one", "two")
        await manager.job("train")
        found = await manager.workload(lambda w: w.status.cluster_name is not None)
        name = str(found.status.cluster_name)
        (other,) = {"one", "two"} - {name}
        await place.workers[name].running_pod()
        await manager.delete(CLUSTERS, name)
        await manager.workload(runs_in(other))
        await place.workers[name].none(JOBS)
        await place.workers[name].none(WORKLOADS)
        await place.workers[other].running_pod()
