"""Quota for devices: what a workload waits for wakes it when it comes."""

from __future__ import annotations

import asyncio
from typing import Any

from controllers.quota.waiting_room import (
    CHECKS,
    CLUSTER_QUEUES,
    NAMESPACE,
    QUEUE,
    WORKLOADS,
    Room,
    admitted,
    waiting,
    waiting_room,
)
from drayman.cluster.informers import Informers
from drayman.cluster.resources import (
    DEVICE_CLASSES,
    JOBS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from drayman.controllers.quota.configuration import configuration_of
from drayman.controllers.quota.devices import Devices
from drayman.controllers.quota.view import ClusterView
from drayman.quota.charging.mapping_rules import read_mappings
from drayman.quota.charging.outcome import PriceRefusal
from drayman.quota.charging.rules import Gates
from drayman.quota.demands import PodSetRequest
from oracle.build import exactly
from patience import PATIENCE_S
from quota.charging.pricing_cases import pods
from steps import steps_of

HEAD = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
MAPPED = {"resources": {"deviceClassMappings": [{"name": "gpus", "deviceClassNames": ["gpu"]}]}}
GPU = {"cel": {"expression": "device.driver == 'gpu.example.com'"}}


async def gpu_queue(room: Room) -> None:
    quota = {"name": "gpus", "nominalQuota": 2}
    group = {"coveredResources": ["gpus"], "flavors": [{"name": "standard", "resources": [quota]}]}
    await room.queue(resourceGroups=[group])


async def gpu_job(room: Room, name: str, pods: int = 1) -> None:
    container = {"name": "main", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    spec = {"restartPolicy": "Never", "containers": [container], "resourceClaims": claims}
    body = {
        "metadata": {"name": name, "labels": {QUEUE: "q"}},
        "spec": {"template": {"spec": spec}, "parallelism": pods, "completions": pods},
    }
    await room.place.create(JOBS, body)


async def device_class(room: Room) -> None:
    await room.place.create(
        DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": {"selectors": [GPU]}}
    )


async def template(room: Room, **request: Any) -> None:
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2, **request}}]
    spec = {"spec": {"devices": {"requests": requests}}}
    await room.place.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "gpu"}, "spec": spec})


async def shared_claim(room: Room, name: str) -> None:
    """A claim for two devices."""
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2}}]
    spec = {"devices": {"requests": requests}}
    await room.place.create(RESOURCE_CLAIMS, {"metadata": {"name": name}, "spec": spec})


async def sharing_workload(room: Room, name: str, pod_sets: int = 1, claim: str = "common") -> None:
    """A Workload of nobody, whose pods name a claim."""
    container = {"name": "main", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimName": claim}]
    pods = {"spec": {"restartPolicy": "Never", "containers": [container], "resourceClaims": claims}}
    sets = [{"name": f"set-{n}", "count": 1, "template": pods} for n in range(pod_sets)]
    body = {"metadata": {"name": name}, "spec": {"queueName": "q", "podSets": sets}}
    await room.place.create(WORKLOADS, body)


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


async def test_a_job_without_devices_for_all_of_its_pods_says_so_until_they_come() -> None:
    """There is quota for both pods, and there are devices for one."""
    async with waiting_room(**MAPPED) as room:
        await gpu_queue(room)
        await device_class(room)
        await template(room, count=1, selectors=[GPU])
        await devices(room, 1)
        await gpu_job(room, "first", pods=2)
        found = await room.workload(waiting("Misconfigured"), "first")
        condition = found.status.condition("QuotaReserved")
        assert condition is not None
        assert "1 wanted for each of 2 pods, 1 match" in condition.message
        more = {"spec": {"devices": [{"name": "gpu-0"}, {"name": "gpu-1"}]}}
        await room.place.patch(RESOURCE_SLICES, "p", more)
        await room.workload(admitted, "first")


async def test_a_claim_that_pod_sets_of_a_workload_share_is_charged_once() -> None:
    """Two sets name it, and the queue has quota for it once."""
    async with waiting_room(**MAPPED) as room:
        await gpu_queue(room)
        await device_class(room)
        await shared_claim(room, "common")
        await sharing_workload(room, "first", pod_sets=2)
        found = await room.workload(lambda found: found.status.is_true("QuotaReserved"))
        assert found.status.admission is not None
        paid = [
            str(each.resource_usage.get("gpus", 0))
            for each in found.status.admission.pod_set_assignments
        ]
        assert paid == ["2", "0"]


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


async def test_a_price_is_worked_out_once_for_copies_and_again_when_devices_change() -> None:
    """Not for each Workload, nor each time that one is read, nor for each slice of a burst of changes."""
    request = exactly("r", 1, "gpu", select=[GPU["cel"]["expression"]])
    spec = {"devices": {"requests": [request]}}
    template = {"metadata": {"name": "t"}, "spec": {"spec": spec}}
    asked = [PodSetRequest("main", 1, pods("t"))]
    async with waiting_room(**MAPPED) as room:
        await device_class(room)
        await room.place.create(RESOURCE_CLAIM_TEMPLATES, template)
        await devices(room, 2)
        informers, changed = Informers(room.place.client), asyncio.Event()
        prices = Devices(ClusterView(informers), changed.set)
        prices.set_mappings(read_mappings(MAPPED), Gates())
        await informers.start()
        await informers.wait_synced()

        def steps(copies: int) -> int:
            """How much is worked out when so many copies are read."""

            def read() -> None:
                for number in range(copies):
                    found = prices.price_workload(NAMESPACE, asked, workload=f"default/w{number}")
                    assert not isinstance(found, PriceRefusal)

            return steps_of(read, "quota/charging/pricing")

        one = steps(1)
        assert one > 0
        assert steps(100) == 0
        assert prices.take_concerned() == []
        more = {"spec": {"devices": [{"name": f"gpu-{n}"} for n in range(3)]}}
        await room.place.patch(RESOURCE_SLICES, "p", more)
        async with asyncio.timeout(PATIENCE_S):
            await changed.wait()
        assert len(prices.take_concerned()) == 100
        assert 0 < steps(100) <= one
        await informers.stop()
