"""What Workloads are charged once they have quota: claims that several of them use, and devices that turn out to cost less."""

from __future__ import annotations

from typing import Any

import yaml

from controllers.quota.test_devices import (
    GPU,
    HEAD,
    MAPPED,
    device_class,
    devices,
    gpu_queue,
    shared_claim,
    sharing_workload,
)
from controllers.quota.test_published import create as configure
from controllers.quota.test_topologies import gpus, node
from controllers.quota.waiting_room import (
    CLUSTER_QUEUES,
    WORKLOADS,
    Room,
    admitted,
    waiting,
    waiting_room,
)
from drayman.cluster.resources import (
    DEVICE_TAINT_RULES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
)
from drayman.controllers.quota.book import Known
from drayman.controllers.quota.source import ConfigurationSource
from drayman.explain.queues.standing import Line
from drayman.questions.reading import read_world
from drayman.workloads.queued.names import WORKLOAD


def pays(amount: int, resource: str = "gpus") -> Any:
    """Whether a Workload holds quota and is charged this much for its devices."""

    def holds(found: Known) -> bool:
        admission = found.status.admission
        if admission is None or not found.status.is_true("QuotaReserved"):
            return False
        usage = [each.resource_usage.get(resource) for each in admission.pod_set_assignments]
        return sum(int(each.amount) for each in usage if each is not None) == amount

    return holds


async def reserves(room: Room, amount: str, queue: str = "q") -> None:
    """Wait until a queue shows that so much of it is reserved."""

    def shows(found: Any) -> bool:
        flavors = (found.status or {}).get("flavorsReservation") or [{}]
        return bool((flavors[0].get("resources") or [{}])[0].get("total") == amount)

    await room.place.until_one(CLUSTER_QUEUES, queue, shows)


async def test_a_claim_is_charged_to_one_workload_and_then_to_the_next() -> None:
    """Also over a restart. Whoever waits for quota waits until the last of them has ended."""
    async with waiting_room(**MAPPED) as room:
        await gpu_queue(room)
        await device_class(room)
        await shared_claim(room, "common")
        await shared_claim(room, "another")
        await sharing_workload(room, "first")
        await room.workload(pays(2), "first")
        await sharing_workload(room, "second")
        await room.workload(pays(0), "second")
        await reserves(room, "2")
        await sharing_workload(room, "third", claim="another")
        await room.workload(waiting("WaitingForQuota"), "third")
        await room.restart()
        await room.place.client.delete(WORKLOADS, "first", "default")
        await room.workload(pays(2), "second")
        await reserves(room, "2")
        await room.place.told("ClaimsCharged")
        await room.place.client.delete(WORKLOADS, "second", "default")
        await room.workload(pays(2), "third")


async def test_who_waits_says_what_the_claims_that_its_pods_name_would_cost_it() -> None:
    """In its status, and in what explain says it needs."""
    async with waiting_room(ConfigurationSource()) as room:
        await configure(room, yaml.safe_dump({**HEAD, **MAPPED}))
        await gpu_queue(room)
        await device_class(room)
        await shared_claim(room, "common")
        await shared_claim(room, "another")
        await sharing_workload(room, "first")
        await room.workload(pays(2), "first")
        await sharing_workload(room, "second", claim="another")
        found = await room.workload(waiting("WaitingForQuota"), "second")
        (asked,) = found.status.resource_requests
        assert {name: str(each) for name, each in asked.resources.items()} == {"gpus": "2"}
        line = Line(await read_world(room.place.client, queues=True))
        (need,) = line.place("default/second").needs
        assert (need.resource, str(need.wanted), str(need.free)) == ("gpus", "2", "0")


def allocation(request: str, *given: str) -> dict[str, Any]:
    where = {"driver": "gpu.example.com", "pool": "p", "request": request}
    return {"devices": {"results": [{**where, "device": device} for device in given]}}


async def single_claim(room: Room) -> None:
    """A claim for one device."""
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1}}]
    spec = {"devices": {"requests": requests}}
    await room.place.create(RESOURCE_CLAIMS, {"metadata": {"name": "single"}, "spec": spec})


async def pod_of(room: Room, workload: str, number: int, request: str, *given: str) -> None:
    """A pod of a Workload as the scheduler leaves it: on a node, with a claim of its own that was given devices."""
    name = f"{workload}-{number}"
    metadata = {
        "name": name,
        "labels": {"kueue.x-k8s.io/podset": "main"},
        "annotations": {WORKLOAD: workload},
    }
    entry = {"name": "gpu", "resourceClaimTemplateName": "either"}
    spec = {"containers": [{"name": "main", "image": "i"}], "resourceClaims": [entry]}
    made = await room.place.create(PODS, {"metadata": metadata, "spec": {**spec, "nodeName": "n"}})
    uid = made["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": True}
    annotations = {"resource.kubernetes.io/pod-claim-name": "gpu"}
    about = {"name": name, "ownerReferences": [owner], "annotations": annotations}
    await room.place.create(RESOURCE_CLAIMS, {"metadata": about, "spec": EITHER})
    status = {
        "allocation": allocation(request, *given),
        "reservedFor": [{"resource": "pods", "name": name, "uid": uid}],
    }
    await room.place.patch(RESOURCE_CLAIMS, name, {"status": status}, subresource="status")
    statuses = [{"name": "gpu", "resourceClaimName": name}]
    change = {"status": {"resourceClaimStatuses": statuses}}
    await room.place.patch(PODS, name, change, subresource="status")


MANY = {"name": "many", "deviceClassName": "gpu", "count": 2}
ONE = {"name": "one", "deviceClassName": "gpu", "count": 1}
EITHER = {"devices": {"requests": [{"name": "r", "firstAvailable": [MANY, ONE]}]}}


async def choosing_workload(room: Room, name: str) -> None:
    """A Workload of nobody, with one pod that wants two devices or one."""
    await device_class(room)
    await room.place.create(
        RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "either"}, "spec": {"spec": EITHER}}
    )
    entry = {"name": "gpu", "resourceClaimTemplateName": "either"}
    pods = {"containers": [{"name": "main", "image": "i"}], "resourceClaims": [entry]}
    sets = [{"name": "main", "count": 1, "template": {"spec": pods}}]
    body = {"metadata": {"name": name}, "spec": {"queueName": "q", "podSets": sets}}
    await room.place.create(WORKLOADS, body)


async def test_a_charge_falls_to_what_was_allocated_and_rises_never() -> None:
    """Two were reserved, and one was allocated: the other one is for somebody who waits, also after a restart.

    A pod in its place that gets two is charged one, and that is said. When the workload begins anew, it is priced afresh.
    """
    async with waiting_room(**MAPPED) as room:
        await gpu_queue(room)
        await choosing_workload(room, "w")
        await room.workload(pays(2), "w")
        await single_claim(room)
        await sharing_workload(room, "next", claim="single")
        await room.workload(waiting("WaitingForQuota"), "next")
        await pod_of(room, "w", 0, "r/one", "gpu-0")
        await room.workload(pays(1), "w")
        await room.workload(pays(1), "next")
        await room.place.told("QuotaGivenBack")
        await room.restart()
        await reserves(room, "2")
        await room.workload(pays(1), "w")

        (pod,) = [each for each in await room.place.pods() if each.metadata.name == "w-0"]
        await room.place.client.delete(RESOURCE_CLAIMS, "w-0", "default")
        await room.place.remove_pod(pod)
        await pod_of(room, "w", 1, "r/many", "gpu-0", "gpu-1")
        drifted = await room.workload(lambda w: w.status.is_true("QuotaDrift"), "w")
        assert pays(1)(drifted)
        condition = drifted.status.condition("QuotaDrift")
        assert condition is not None
        assert "gpus 1 more" in condition.message

        await room.place.client.delete(WORKLOADS, "next", "default")
        await room.place.patch(WORKLOADS, "w", {"spec": {"active": False}})
        await room.workload(lambda w: w.status.admission is None, "w")
        await room.place.patch(WORKLOADS, "w", {"spec": {"active": True}})
        again = await room.workload(pays(2), "w")
        assert again.status.condition("QuotaDrift") is None


async def test_a_claim_costs_less_for_all_its_users_once_it_has_its_devices() -> None:
    """It might have become two devices, and became one: the first user pays that, and whoever waits gets the rest."""
    async with waiting_room(**MAPPED) as room:
        await gpu_queue(room)
        await device_class(room)
        await room.place.create(RESOURCE_CLAIMS, {"metadata": {"name": "common"}, "spec": EITHER})
        await single_claim(room)
        for name, amount in (("first", 2), ("second", 0)):
            await sharing_workload(room, name)
            await room.workload(pays(amount), name)
        await sharing_workload(room, "next", claim="single")
        await room.workload(waiting("WaitingForQuota"), "next")
        status = {"status": {"allocation": allocation("r/one", "gpu-0")}}
        await room.place.patch(RESOURCE_CLAIMS, "common", status, subresource="status")
        await room.workload(pays(1), "first")
        await room.workload(pays(1), "next")
        await room.restart()
        await room.place.client.delete(WORKLOADS, "first", "default")
        await room.workload(pays(1), "second")


async def test_each_flavor_charges_what_its_own_devices_cost() -> None:
    """All devices of a node are two on nodes of one flavor and four on those of another."""
    async with waiting_room(**MAPPED) as room:
        for name, rack, number in (("small", "a", 2), ("large", "b", 4)):
            await node(room, name, rack)
            await gpus(room, name, number)
            await room.flavor(name, nodeLabels={"example.com/rack": rack})
        await device_class(room)
        quotas = {"small": 2, "large": 4}
        flavors = [
            {"name": name, "resources": [{"name": "gpus", "nominalQuota": quota}]}
            for name, quota in quotas.items()
        ]
        group = {"coveredResources": ["gpus"], "flavors": flavors}
        await room.queue(resourceGroups=[group])
        everything = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
        spec = {"spec": {"devices": {"requests": [everything]}}}
        template = {"metadata": {"name": "all"}, "spec": spec}
        await room.place.create(RESOURCE_CLAIM_TEMPLATES, template)
        for name, paid, flavor in (("first", 2, "small"), ("second", 4, "large")):
            entry = {"name": "gpu", "resourceClaimTemplateName": "all"}
            pods = {"containers": [{"name": "main", "image": "i"}], "resourceClaims": [entry]}
            sets = [{"name": "main", "count": 1, "template": {"spec": pods}}]
            body = {"metadata": {"name": name}, "spec": {"queueName": "q", "podSets": sets}}
            await room.place.create(WORKLOADS, body)
            found = await room.workload(pays(paid), name)
            assert found.status.admission is not None
            assert found.status.admission.pod_set_assignments[0].flavors == {"gpus": flavor}


async def test_a_tainted_device_is_not_there_for_who_waits() -> None:
    """The Workload says how many are tainted, and is admitted when the taint is gone."""
    async with waiting_room(**MAPPED) as room:
        await gpu_queue(room)
        await device_class(room)
        await devices(room, 2)
        taint = {"key": "example.com/broken", "effect": "NoSchedule"}
        selector = {"driver": "gpu.example.com", "pool": "p", "device": "gpu-1"}
        rule = {"metadata": {"name": "t"}, "spec": {"deviceSelector": selector, "taint": taint}}
        await room.place.create(DEVICE_TAINT_RULES, rule)
        wants = {"deviceClassName": "gpu", "count": 2, "selectors": [GPU]}
        spec = {"devices": {"requests": [{"name": "r", "exactly": wants}]}}
        await room.place.create(RESOURCE_CLAIMS, {"metadata": {"name": "common"}, "spec": spec})
        await sharing_workload(room, "w")
        found = await room.workload(waiting("Misconfigured"), "w")
        condition = found.status.condition("QuotaReserved")
        assert condition is not None
        assert "2 wanted, 1 match (2 of the class, 1 tainted)" in condition.message
        await room.place.client.delete(DEVICE_TAINT_RULES, "t")
        await room.workload(admitted, "w")
