"""Workloads that get places in a topology, and their pods."""

from __future__ import annotations

from typing import Any

from controllers.quota.test_devices import MAPPED, device_class, template
from controllers.quota.waiting_room import Room, admitted, job, waiting, waiting_room
from drayman.api.custom_groups import KueueTopology
from drayman.cluster.resources import JOBS, NODES, PODS, RESOURCE_SLICES, typed
from drayman.quota.topology.assignments import placement_of

TOPOLOGIES = typed(KueueTopology)
HOST = "kubernetes.io/hostname"
RACK = "example.com/rack"


async def node(room: Room, name: str, rack: str, cpu: int = 2) -> None:
    labels = {HOST: name, RACK: rack, "kind": "std"}
    await room.place.create(NODES, {"metadata": {"name": name, "labels": labels}})
    await room.place.patch(NODES, name, {"spec": {"taints": None}})
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    amounts = {"cpu": str(cpu), "memory": "8Gi", "pods": "10"}
    status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
    await room.place.patch(NODES, name, {"status": status}, subresource="status")


async def racks(room: Room, queues: tuple[str, ...] = ("q",)) -> None:
    """Two racks of two nodes with two CPUs each, as a flavor with a topology."""
    for name, rack in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")):
        await node(room, name, rack)
    levels = [{"nodeLabel": RACK}, {"nodeLabel": HOST}]
    await room.place.create(TOPOLOGIES, {"metadata": {"name": "racks"}, "spec": {"levels": levels}})
    await room.flavor("placed", nodeLabels={"kind": "std"}, topologyName="racks")
    names = ["cpu", "gpus"]
    quota = [{"name": name, "nominalQuota": 100} for name in names]
    group = {"coveredResources": names, "flavors": [{"name": "placed", "resources": quota}]}
    for name in queues:
        await room.queue(name=name, resourceGroups=[group])


def in_one_rack(pods: int, **more: Any) -> dict[str, Any]:
    return {"pods": pods, "completionMode": "Indexed", **more}


async def test_the_pods_of_a_job_are_told_their_nodes() -> None:
    """All in one rack, by their index; a second job of the same size gets the other rack, and a third one waits."""
    async with waiting_room() as room:
        await racks(room)
        for name in ("first", "second"):
            await room.job(name, **in_one_rack(4), required=RACK)
        found = await room.workload(admitted, "first")
        assert found.status.admission.pod_set_assignments[0].topology_assignment is not None

        def told(pods: list[Any]) -> list[Any]:
            return [each for each in pods if HOST in each.spec.node_selector]

        pods = told(await room.place.until(PODS, lambda pods: len(told(pods)) == 8))
        assert not any(each.spec.scheduling_gates for each in pods)
        for name in ("first", "second"):
            own = [each for each in pods if each.metadata.labels["job-name"] == name]
            nodes = [each.spec.node_selector[HOST] for each in own]
            assert len({host[0] for host in nodes}) == 1
            assert sorted(map(nodes.count, set(nodes))) == [2, 2]
        await room.job("third", **in_one_rack(4), required=RACK)
        await room.workload(waiting("WaitingForQuota"), "third")


# Devices.


async def gpus(room: Room, node: str, number: int) -> None:
    spec: dict[str, Any] = {
        "driver": "gpu.example.com",
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"gpu-{index}"} for index in range(number)],
    }
    await room.place.create(RESOURCE_SLICES, {"metadata": {"name": node}, "spec": spec})


async def gpu_job(room: Room, name: str, pods: int, queue: str = "q") -> None:
    """All of its pods in one rack, with a device each."""
    made = job(name, queue=queue, **in_one_rack(pods), required=RACK)
    spec = made["spec"]["template"]["spec"]
    spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    await room.place.create(JOBS, made)


def hosts(found: Any) -> set[str]:
    assignment = found.status.admission.pod_set_assignments[0].topology_assignment
    return {domain[-1] for domain, _ in placement_of(assignment).domains}


async def test_pods_get_places_where_their_devices_are() -> None:
    """The first rack would do by CPUs, and has no devices."""
    async with waiting_room(**MAPPED) as room:
        await racks(room)
        await device_class(room)
        await template(room, count=1)
        for node in ("b1", "b2"):
            await gpus(room, node, 1)
        await gpu_job(room, "first", 2)
        assert hosts(await room.workload(admitted, "first")) == {"b1", "b2"}


async def test_devices_that_come_make_places() -> None:
    """Without any, the refusal says that devices are missing, and nobody has to touch the job when they come."""
    async with waiting_room(**MAPPED) as room:
        await racks(room)
        await device_class(room)
        await template(room, count=1)
        await gpus(room, "b1", 1)
        await gpu_job(room, "first", 2)
        found = await room.workload(waiting("TopologyPlacementFailed"), "first")
        condition = found.status.condition("QuotaReserved")
        assert condition is not None
        assert "limited by devices" in condition.message
        await gpus(room, "a1", 2)
        assert hosts(await room.workload(admitted, "first")) == {"a1"}


async def test_jobs_of_two_queues_do_not_get_the_same_devices() -> None:
    """What they lack comes for both at once, so that they are decided about together; there is a rack for each."""
    async with waiting_room(**MAPPED) as room:
        await racks(room, ("q", "other"))
        await device_class(room)
        for node in ("a1", "b1"):
            await gpus(room, node, 2)
        await gpu_job(room, "first", 2)
        await gpu_job(room, "second", 2, queue="other")
        for name in ("first", "second"):
            await room.workload(waiting("Misconfigured"), name)
        await template(room, count=1)
        first = await room.workload(admitted, "first")
        second = await room.workload(admitted, "second")
        assert hosts(first) | hosts(second) == {"a1", "b1"}
