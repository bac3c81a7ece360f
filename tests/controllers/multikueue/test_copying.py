"""Claim templates and device classes on workers: there in time, in step, and gone when nobody needs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from controllers.multikueue.clusters import (
    CLASS,
    ORIGIN,
    WORKLOADS,
    check,
    clusters,
    runs_in,
    template,
)
from drayman.cluster.resources import (
    DEVICE_CLASSES,
    JOBS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
)
from drayman.drivers.profiles import parse_profiles, simulate


def wants(count: int) -> Any:
    def holds(found: Any) -> bool:
        (request,) = found.spec.spec.devices.requests
        return bool(request.exactly.count == count)

    return holds


async def test_a_template_that_changes_changes_on_the_worker(tmp_path: Path) -> None:
    """Templates cannot be changed, so it is deleted on the manager and made again; the same happens to its copy."""
    async with clusters(tmp_path, {"one": "example=1"}) as place:
        manager, one = place.manager, place.workers["one"]
        await manager.device_class()
        await manager.template(count=1)
        await place.join("one")
        await manager.job("train", gpu="one-gpu")
        await manager.workload(runs_in("one"))
        await one.running_pod()
        copy = await one.until_one(RESOURCE_CLAIM_TEMPLATES, "one-gpu", wants(1))
        assert copy.metadata.labels == {ORIGIN: "multikueue"}
        await manager.delete(RESOURCE_CLAIM_TEMPLATES, "one-gpu")
        await manager.create(RESOURCE_CLAIM_TEMPLATES, template("one-gpu", count=2))
        await one.until_one(RESOURCE_CLAIM_TEMPLATES, "one-gpu", wants(2))
        await manager.delete(JOBS, "train")
        await one.none(RESOURCE_CLAIM_TEMPLATES)


async def test_a_class_that_a_worker_does_not_have_is_copied_and_removed(tmp_path: Path) -> None:
    """The worker has the devices, and the manager has another class for them."""
    async with clusters(tmp_path, {"one": "example=1"}) as place:
        manager, one = place.manager, place.workers["one"]
        await manager.device_class()
        await manager.device_class(f"device.driver == '{CLASS}'", name="ours")
        await manager.create(RESOURCE_CLAIM_TEMPLATES, template("t", device_class="ours"))
        await place.join("one")
        await manager.job("train", gpu="t")
        await manager.workload(runs_in("one"))
        await one.running_pod()
        copy = await one.until_one(DEVICE_CLASSES, "ours")
        assert copy.metadata.labels == {ORIGIN: "multikueue"}
        await manager.delete(JOBS, "train")
        await one.none(DEVICE_CLASSES, ours=True)
        await one.until_one(DEVICE_CLASSES, CLASS)


async def test_a_worker_whose_class_says_something_else_is_refused_by_name(tmp_path: Path) -> None:
    """Until the class of the manager is like the worker's own."""
    async with clusters(tmp_path, {"one": "example=1"}) as place:
        manager, one = place.manager, place.workers["one"]
        await manager.device_class("device.driver == 'other'")
        await manager.template()
        await place.join("one")
        await manager.job("train", gpu="one-gpu")
        found = await manager.workload(lambda w: "its own DeviceClass" in check(w)[1])
        assert check(found) == (
            "Pending",
            f"No cluster can run the workload. one: its own DeviceClass {CLASS} is not like the one here",
        )
        assert not (await one.client.list(WORKLOADS)).items
        await manager.delete(DEVICE_CLASSES, CLASS)
        await manager.device_class()
        await manager.workload(runs_in("one"))


async def test_a_workload_waits_for_a_busy_worker_and_never_for_one_without_devices(
    tmp_path: Path,
) -> None:
    """Both workers have quota. The one with devices has given all of them away, so the second job waits in its queue."""
    (node,) = simulate(parse_profiles("example=1")).nodes
    count = sum(len(each.spec.devices) for each in node.slices if each.spec.driver == CLASS)
    async with clusters(tmp_path, {"one": "cpu=1", "two": "example=1"}, gpus=count) as place:
        manager, two = place.manager, place.workers["two"]
        await manager.device_class()
        await manager.template(count=count)
        await place.join("one", "two")
        await manager.job("first", gpu="one-gpu")
        await manager.workload(runs_in("two"), "first")
        await two.running_pod()
        await manager.job("second", gpu="one-gpu")
        waiting = await manager.workload(
            lambda w: w.status.nominated_cluster_names == ("two",), "second"
        )
        assert "as soon as others have ended" in check(waiting)[1]
        await manager.delete(JOBS, "first")
        await manager.workload(runs_in("two"), "second")
        pods = (await two.client.list(PODS)).items
        assert all("second" in pod.metadata.name for pod in pods)
