"""Nodes that are lost under workloads with places in a topology."""

from __future__ import annotations

from collections import Counter
from typing import Any

from controllers.quota.test_topologies import HOST, RACK, in_one_rack, node, racks
from controllers.quota.waiting_room import (
    Room,
    admitted,
    has,
    pod,
    waiting_room,
)
from drayman.cluster.resources import NODES, PODS
from drayman.controllers.quota.book import Known
from drayman.quota.topology.assignments import placement_of


def places(found: Known) -> dict[str, int]:
    admission = found.status.admission
    assert admission is not None
    assignment = admission.pod_set_assignments[0].topology_assignment
    assert assignment is not None
    return {domain[-1]: count for domain, count in placement_of(assignment).domains}


async def told(room: Room, **hosts: int) -> None:
    """So many pods are told to go to each host, and no others are there."""

    def hold(pods: list[Any]) -> bool:
        there = [p.spec.node_selector.get(HOST) for p in pods if not p.metadata.deletion_timestamp]
        return Counter(there) == Counter(hosts)

    await room.place.until(PODS, hold)


async def a_job_in_rack_a(room: Room) -> str:
    """Four pods, two on each of two nodes. The rack that they are in."""
    await racks(room)
    await room.job("first", **in_one_rack(4), required=RACK)
    found = await room.workload(admitted, "first")
    (rack,) = {host[0] for host in places(found)}
    await told(room, **{f"{rack}1": 2, f"{rack}2": 2})
    return str(rack)


async def test_g30_a_lost_node_is_replaced_in_its_rack() -> None:
    """G30: the pods of the other node stay where they are; those of the lost one are deleted, because they select a node that is gone."""
    async with waiting_room() as room:
        rack = await a_job_in_rack_a(room)
        await node(room, f"{rack}3", rack)
        await room.place.client.delete(NODES, f"{rack}1")
        expected = {f"{rack}2": 2, f"{rack}3": 2}
        found = await room.workload(lambda found: places(found) == expected, "first")
        assert admitted(found)
        assert not found.status.unhealthy_nodes
        await told(room, **{f"{rack}2": 2})  # The job makes the others when its back-off is over.
        # What was decided is kept over a restart, and decided again if need be.
        await room.restart()
        await node(room, f"{rack}4", rack)
        await room.place.client.delete(NODES, f"{rack}3")
        expected = {f"{rack}2": 2, f"{rack}4": 2}
        await room.workload(lambda found: places(found) == expected, "first")
        await told(room, **{f"{rack}2": 2})


async def test_two_nodes_are_not_replaced() -> None:
    """When a second one is lost before the first was replaced, the workload waits again for all of its pods."""
    async with waiting_room() as room:
        rack = await a_job_in_rack_a(room)
        for number in (3, 4):
            await node(room, f"{rack}{number}", rack)
        await room.place.crash()
        for number in (1, 2):
            await room.place.client.delete(NODES, f"{rack}{number}")
        await room.start()
        found = await room.workload(has("Evicted", "True", "NodeFailures"), "first")
        condition = found.status.condition("Evicted")
        assert condition is not None
        assert condition.message == f"More than one of its nodes is lost: {rack}1, {rack}2"


async def test_g30_without_another_node_the_workload_is_evicted() -> None:
    """G30: there is a node in the other rack, and that would not be what was asked for."""
    async with waiting_room() as room:
        rack = await a_job_in_rack_a(room)
        await room.place.client.delete(NODES, f"{rack}1")
        found = await room.workload(has("Evicted", "True", "NodeFailures"), "first")
        condition = found.status.condition("Evicted")
        assert condition is not None
        assert "2 pods lost their node, and there is no room for them in rack" in condition.message


async def test_g30_a_single_pod_is_not_replaced() -> None:
    """G30: it is told to go to a node that is gone then, and its workload is left alone."""
    async with waiting_room() as room:
        await racks(room)
        for name in ("b1", "b2"):
            await room.place.client.delete(NODES, name)
        required = {"kueue.x-k8s.io/podset-required-topology": RACK}
        made = pod("alone")
        made["metadata"]["annotations"] = required
        await room.place.create(PODS, made)
        (host,) = places(await room.workload(admitted, "alone"))
        await told(room, **{host: 1})
        await room.place.client.delete(NODES, host)
        # Something that comes after it and is decided after it.
        await room.job("later", cpu=2, **in_one_rack(1), required=RACK)
        later = await room.workload(admitted, "later")
        assert places(later) != {host: 1}
        found = await room.workload(lambda _: True, "alone")
        assert places(found) == {host: 1}
        assert not found.status.unhealthy_nodes
