"""Quota for devices: what a workload waits for wakes it when it comes."""

from __future__ import annotations

from typing import Any

from controllers.quota.waiting_room import (
    CHECKS,
    CLUSTER_QUEUES,
    QUEUE,
    Room,
    admitted,
    waiting,
    waiting_room,
)
from drayman.cluster.resources import (
    DEVICE_CLASSES,
    JOBS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_SLICES,
)
from drayman.controllers.quota.configuration import configuration_of

HEAD = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
MAPPED = {"resources": {"deviceClassMappings": [{"name": "gpus", "deviceClassNames": ["gpu"]}]}}
GPU = {"cel": {"expression": "device.driver == 'gpu.example.com'"}}


async def gpu_queue(room: Room) -> None:
    quota = {"name": "gpus", "nominalQuota": 2}
    group = {"coveredResources": ["gpus"], "flavors": [{"name": "standard", "resources": [quota]}]}
    await room.queue(resourceGroups=[group])


async def gpu_job(room: Room, name: str) -> None:
    container = {"name": "main", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    spec = {"restartPolicy": "Never", "containers": [container], "resourceClaims": claims}
    body = {
        "metadata": {"name": name, "labels": {QUEUE: "q"}},
        "spec": {"template": {"spec": spec}},
    }
    await room.place.create(JOBS, body)


async def device_class(room: Room) -> None:
    await room.place.create(
        DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": {"selectors": [GPU]}}
    )


async def template(room: Room) -> None:
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}]
    spec = {"spec": {"devices": {"requests": requests}}}
    await room.place.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "gpu"}, "spec": spec})


async def devices(room: Room, number: int) -> None:
    spec: dict[str, Any] = {
        "driver": "gpu.example.com",
        "allNodes": True,
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{index}"} for index in range(number)],
    }
    await room.place.create(RESOURCE_SLICES, {"metadata": {"name": "p"}, "spec": spec})


async def test_whatever_a_price_lacked_wakes_the_workload_when_it_comes() -> None:
    """The template, the class, the devices: with the last of them it is charged and admitted, without anybody touching it."""
    async with waiting_room(**MAPPED) as room:
        await gpu_queue(room)
        await gpu_job(room, "first")

        def says(words: str) -> Any:
            def holds(found: Any) -> bool:
                condition = found.status.condition("QuotaReserved")
                return condition is not None and words in condition.message

            return holds

        await room.workload(says("there is no ResourceClaimTemplate gpu"), "first")
        await template(room)
        await room.workload(says("DeviceClass"), "first")
        await device_class(room)
        await room.workload(waiting("Misconfigured"), "first")
        await devices(room, 2)
        found = await room.workload(admitted, "first")
        usage = found.status.admission.pod_set_assignments[0].resource_usage
        assert str(usage["gpus"]) == "2"
        await gpu_job(room, "second")
        await room.workload(waiting("WaitingForQuota"), "second")


async def test_mappings_that_change_are_in_force_at_once() -> None:
    """A class without a mapping costs nothing that could be counted; with one, the workload gets in without a restart."""
    async with waiting_room() as room:
        await gpu_queue(room)
        await device_class(room)
        await template(room)
        await devices(room, 2)
        await gpu_job(room, "first")
        await room.workload(waiting("Misconfigured"), "first")
        room.source.use(configuration_of({**HEAD, **MAPPED}))
        await room.workload(admitted, "first")


async def test_a_queue_with_a_check_that_does_not_exist_is_not_active() -> None:
    """Nor with one whose controller does not run; with that, what waits gets in line."""
    async with waiting_room() as room:
        checks = {"admissionChecks": [{"name": "budget"}]}
        await room.queue(cpu=1, admissionChecksStrategy=checks)

        def inactive(reason: str) -> Any:
            return lambda found: (
                ((found.status or {}).get("conditions") or [{}])[0].get("reason") == reason
            )

        await room.place.until_one(CLUSTER_QUEUES, "q", inactive("AdmissionCheckNotFound"))
        await room.job("first")
        await room.workload(waiting("Suspended"), "first")
        body = {"metadata": {"name": "budget"}, "spec": {"controllerName": "example.com/budget"}}
        await room.place.create(CHECKS, body)
        await room.place.until_one(CLUSTER_QUEUES, "q", inactive("AdmissionCheckInactive"))
        active = {
            "type": "Active",
            "status": "True",
            "reason": "Active",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        change = {"status": {"conditions": [active]}}
        await room.place.patch(CHECKS, "budget", change, subresource="status")
        await room.workload(lambda found: found.status.is_true("QuotaReserved"), "first")


async def test_shares_of_queues_that_borrow_are_shown() -> None:
    """With fair sharing: in thousandths of what can be lent."""
    async with waiting_room(fairSharing={}) as room:
        await room.queue(cpu=1, cohortName="all")
        await room.queue(cpu=3, name="lender", cohortName="all")
        await room.job("first", pods=3)
        await room.workload(admitted, "first")

        def shares(found: Any) -> bool:
            share = ((found.status or {}).get("fairSharing") or {}).get("weightedShare")
            return bool(share == 500)

        await room.place.until_one(CLUSTER_QUEUES, "q", shares)
