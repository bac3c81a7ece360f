"""Workloads that get places in a topology, and their pods."""

from __future__ import annotations

from typing import Any

from controllers.quota.waiting_room import Room, admitted, waiting, waiting_room
from drayman.api.custom_groups import KueueTopology
from drayman.cluster.resources import NODES, PODS, typed

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


async def racks(room: Room) -> None:
    """Two racks of two nodes with two CPUs each, as a flavor with a topology."""
    for name, rack in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b")):
        await node(room, name, rack)
    levels = [{"nodeLabel": RACK}, {"nodeLabel": HOST}]
    await room.place.create(TOPOLOGIES, {"metadata": {"name": "racks"}, "spec": {"levels": levels}})
    await room.flavor("placed", nodeLabels={"kind": "std"}, topologyName="racks")
    quota = {"name": "cpu", "nominalQuota": 100}
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "placed", "resources": [quota]}]}
    await room.queue(resourceGroups=[group])


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
