"""Pods that run in another cluster: alone and as a group, shown on the manager, replaced, and taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from controllers.multikueue.clusters import (
    CLUSTER_QUEUES,
    NAMESPACE,
    QUEUE,
    WORKLOADS,
    Cluster,
    Clusters,
    clusters,
    job,
)
from drayman.cluster.errors import ClusterError
from drayman.cluster.resources import PODS, JsonObject
from drayman.controllers.quota.book import Known

GROUP = "kueue.x-k8s.io/pod-group-name"
TOTAL = "kueue.x-k8s.io/pod-group-total-count"


def pod(name: str, *, group: str = "", total: int = 0, gpu: str = "", run_for: str = "") -> Any:
    template = job(name, gpu=gpu, run_for=run_for)["spec"]["template"]
    metadata: JsonObject = {"name": name, "labels": {QUEUE: "q"}, **template["metadata"]}
    if group:
        metadata["labels"][GROUP] = group
        metadata["annotations"] = {**metadata["annotations"], TOTAL: str(total)}
    return {"metadata": metadata, "spec": template["spec"]}


def shows(phase: str) -> Any:
    return lambda value: value.status.phase == phase


def is_gated(value: Any) -> bool:
    return bool(value.spec.scheduling_gates) and not value.spec.node_name


def in_cluster(name: str) -> Any:
    return lambda found: found.status.cluster_name == name


async def running(place: Clusters, *names: str) -> None:
    for name in names:
        shown = await place.manager.until_one(PODS, name, shows("Running"))
        assert is_gated(shown)


async def test_a_pod_runs_on_a_worker_with_its_device_and_its_end_comes_back(
    tmp_path: Path,
) -> None:
    """The original waits behind its gate and shows what the copy does; its claim template goes along, and nothing is left in the end."""
    async with clusters(tmp_path, {"one": "example=1", "none": "cpu=1"}) as place:
        manager, one = place.manager, place.workers["one"]
        await place.join("none", "one")
        await manager.device_class()
        await manager.template()
        await manager.create(PODS, pod("alone", gpu="one-gpu", run_for="3s"))
        await running(place, "alone")
        found = await manager.workload(lambda w: w.status.is_true("PodsReady"))
        assert found.status.cluster_name == "one"
        copy = await one.until_one(PODS, "alone")
        assert copy.spec.node_name
        assert "in cluster one" in await log_answer(manager, "alone")
        await manager.workload(lambda w: w.status.is_true("Finished"))
        await manager.until_one(PODS, "alone", shows("Succeeded"))
        await one.none(PODS)
        await one.none(WORKLOADS)


async def log_answer(cluster: Cluster, name: str) -> str:
    """What the server says when it is asked for the log of a pod."""
    try:
        await cluster.client.get(PODS.as_values(), f"{name}/log", NAMESPACE)
    except ClusterError as error:
        return str(error)
    return ""


async def test_a_group_runs_on_a_worker_and_a_failed_member_is_replaced_there(
    tmp_path: Path,
) -> None:
    """All members run on one worker. One that fails shows that; the pod that replaces it on the manager replaces it on the worker."""
    async with clusters(tmp_path, {"one": "cpu=1", "two": "cpu=1"}) as place:
        manager = place.manager
        await place.join("one", "two")
        for name in ("a", "b"):
            await manager.create(PODS, pod(name, group="g", total=2))
        await running(place, "a", "b")
        found = await manager.workload(lambda w: w.status.cluster_name is not None)
        worker = place.workers[str(found.status.cluster_name)]
        (other,) = {"one", "two"} - {str(found.status.cluster_name)}
        assert not (await place.workers[other].client.list(PODS)).items
        failed = {"status": {"phase": "Failed", "reason": "Broken"}}
        await worker.patch(PODS, "b", failed, subresource="status")
        await manager.until_one(PODS, "b", shows("Failed"))
        await manager.workload(lambda w: w.status.is_true("WaitingForReplacementPods"))
        await manager.create(PODS, pod("c", group="g", total=2))
        await running(place, "a", "c")
        await worker.until_one(PODS, "c", shows("Running"))


async def test_pods_of_a_lost_queue_begin_elsewhere_and_deleted_ones_go(tmp_path: Path) -> None:
    """A worker that stops its queue gives the pod up: it shows that it waits, and runs on the other one. Deleted, it is gone there."""
    async with clusters(tmp_path, {"one": "cpu=1", "two": "cpu=1"}) as place:
        manager = place.manager
        await place.join("one", "two")
        await manager.create(PODS, pod("alone"))
        await running(place, "alone")
        found = await manager.workload(lambda w: w.status.cluster_name is not None)
        first = str(found.status.cluster_name)
        (other,) = {"one", "two"} - {first}
        stop = {"spec": {"stopPolicy": "HoldAndDrain"}}
        await place.workers[first].patch(CLUSTER_QUEUES, "q", stop)
        await manager.workload(in_cluster(other))
        await place.workers[other].until_one(PODS, "alone", shows("Running"))
        await place.workers[first].none(PODS)
        await manager.delete(PODS, "alone")
        await manager.none(PODS)
        for resource in (PODS, WORKLOADS):
            await place.workers[other].none(resource)


async def test_a_deactivated_group_gives_back_its_quota_after_it_has_stopped(
    tmp_path: Path,
) -> None:
    """Its pods stay on the manager and wait; when the Workload is active again, they run again."""

    def waits(found: Known) -> bool:
        return found.status.admission is None and not found.spec.active

    async with clusters(tmp_path, {"one": "cpu=1"}) as place:
        manager, one = place.manager, place.workers["one"]
        await place.join("one")
        for name in ("a", "b"):
            await manager.create(PODS, pod(name, group="g", total=2))
        await running(place, "a", "b")
        await manager.patch(WORKLOADS, "g", {"spec": {"active": False}})
        await manager.workload(waits)
        assert not (await one.client.list(PODS)).items
        for name in ("a", "b"):
            await manager.until_one(PODS, name, shows("Pending"))
        await manager.patch(WORKLOADS, "g", {"spec": {"active": True}})
        await running(place, "a", "b")
