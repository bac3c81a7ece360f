"""spec/dra.md 5.5: what is done for a pod that fits nowhere. 5.6: which node is best."""

from __future__ import annotations

from controllers.world import CLAIM_VALUES, POD_VALUES
from drayman.cluster.resources import JsonObject
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import (
    EXTENDED,
    NODE_VALUES,
    Stage,
    asks,
    device,
    devices_of,
    from_template,
    prefers,
    users_of,
    wants,
)

ON_B = {"kubernetes.io/hostname": "node-b"}


async def _two_nodes(stage: Stage) -> None:
    await stage.device_class()
    await stage.node("node-a", "gpu-0")
    await stage.node("node-b", "gpu-0")


async def test_devices_that_nobody_uses_are_moved(cluster: Cluster) -> None:
    """A claim without users that holds devices in the wrong place is allocated anew where the pod can run."""
    async with cluster() as stage:
        await _two_nodes(stage)
        await stage.make_claim("c")
        await stage.allocate_by_hand("c", "gpu-0", "node-a")
        await stage.start_pod("p", "c", nodeSelector=ON_B)
        assert await stage.bound("p") == "node-b"
        claim = await stage.allocated("c")
        assert claim.status.allocation is not None
        assert [entry.pool for entry in claim.status.allocation.devices.results] == ["node-b"]


async def test_devices_reserved_for_the_pod_alone_are_moved(cluster: Cluster) -> None:
    """A reservation of the pod itself, left by an earlier attempt, does not stand in its way."""
    async with cluster() as stage:
        await _two_nodes(stage)
        await stage.patch(NODE_VALUES, "node-a", {"spec": {"unschedulable": True}})
        await stage.make_claim("c")
        pod = await stage.start_pod("p", "c", schedulingGates=[{"name": "example.com/wait"}])
        user = {"resource": "pods", "name": "p", "uid": pod.metadata.uid}
        await stage.allocate_by_hand("c", "gpu-0", "node-a", reservedFor=[user])
        await stage.patch(POD_VALUES, "p", {"spec": {"schedulingGates": None}})
        assert await stage.bound("p") == "node-b"


async def test_a_claim_that_goes_is_let_go_by_a_pod_without_a_node(cluster: Cluster) -> None:
    """An attempt ended between reservation and binding, and then the claim was deleted: it goes, and the pod gets another."""
    async with cluster() as stage:
        await _two_nodes(stage)
        await stage.make_template("t")
        gates = [{"name": "example.com/wait"}]
        pod = await stage.start_pod("p", from_template(), schedulingGates=gates)
        first = (await stage.claim_of("p")).metadata.name
        user = {"resource": "pods", "name": "p", "uid": pod.metadata.uid}
        await stage.allocate_by_hand(first, "gpu-0", "node-a", reservedFor=[user])
        await stage.delete(CLAIM_VALUES, first)
        assert users_of(await stage.allocated(first)) == ["p"]
        await stage.patch(POD_VALUES, "p", {"spec": {"schedulingGates": None}})
        await stage.bound("p")
        await stage.until_gone(first)
        assert (await stage.claim_of("p")).metadata.name != first


async def test_who_uses_a_claim_that_goes_keeps_it(cluster: Cluster) -> None:
    """Only the pod without a node lets go of it."""
    async with cluster() as stage:
        await _two_nodes(stage)
        await stage.make_claim("c")
        await stage.start_pod("first", "c")
        await stage.bound("first")
        gates = [{"name": "example.com/wait"}]
        pod = await stage.start_pod("p", "c", schedulingGates=gates)
        users = [
            {"resource": entry.resource, "name": entry.name, "uid": entry.uid}
            for entry in (await stage.allocated("c")).status.reserved_for
        ]
        users.append({"resource": "pods", "name": "p", "uid": pod.metadata.uid})
        await stage.patch(CLAIM_VALUES, "c", {"status": {"reservedFor": users}}, "status")
        await stage.delete(CLAIM_VALUES, "c")
        await stage.patch(POD_VALUES, "p", {"spec": {"schedulingGates": None}})
        await stage.refused("p", "Claim c is being deleted")
        await stage.keeps_waiting("p")
        assert users_of(await stage.allocated("c")) == ["first"]
        await stage.stays_bound("first")


async def test_devices_that_others_use_stay(cluster: Cluster) -> None:
    """A claim with another user is never taken away; the pod waits."""
    async with cluster() as stage:
        await _two_nodes(stage)
        await stage.make_claim("c")
        await stage.start_pod("first", "c", nodeSelector={"kubernetes.io/hostname": "node-a"})
        await stage.bound("first")
        await stage.start_pod("p", "c", nodeSelector=ON_B)
        await stage.refused("p", "not available")
        await stage.keeps_waiting("p")
        assert users_of(await stage.allocated("c")) == ["first"]


async def test_a_left_over_claim_of_extended_resources_is_replaced(cluster: Cluster) -> None:
    """A claim for the pod's extended resources that an attempt left behind is removed, and the pod gets a new one."""
    async with cluster() as stage:
        await stage.device_class(extendedResourceName="example.com/gpu")
        await stage.node("node-a", "gpu-0")
        gates = [{"name": "example.com/wait"}]
        pod = await stage.start_pod("p", requests={"example.com/gpu": "1"}, schedulingGates=gates)
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod.metadata.uid}
        metadata: JsonObject = {
            "name": "left-over",
            "annotations": {EXTENDED: "true"},
            "ownerReferences": [{**owner, "controller": True}],
        }
        spec = asks(wants("container-0-request-0"))
        await stage.create(CLAIM_VALUES, {"metadata": metadata, "spec": spec})
        await stage.patch(POD_VALUES, "p", {"spec": {"schedulingGates": None}})
        assert await stage.bound("p") == "node-a"
        await stage.until_gone("left-over")


async def test_the_better_alternative_decides_the_node(cluster: Cluster) -> None:
    """5.6: of two nodes the one wins on which the request gets an earlier alternative."""
    async with cluster() as stage:
        await stage.device_class("big", 'device.attributes["gpu.example.com"].size == "big"')
        await stage.device_class("small", 'device.attributes["gpu.example.com"].size == "small"')
        for name, size in (("node-a", "small"), ("node-b", "big"), ("node-c", "small")):
            await stage.node(name, device("gpu-0", attributes={"size": {"string": size}}))
        await stage.make_claim("c", prefers("big", "small"))
        await stage.start_pod("p", "c")
        assert await stage.bound("p") == "node-b"


async def test_the_next_alternative_is_taken_when_the_first_is_gone(cluster: Cluster) -> None:
    """5.6: a preference is no condition."""
    async with cluster() as stage:
        await stage.device_class("big", 'device.attributes["gpu.example.com"].size == "big"')
        await stage.device_class("small", 'device.attributes["gpu.example.com"].size == "small"')
        sizes = {"gpu-0": "big", "gpu-1": "small"}
        made = [device(name, attributes={"size": {"string": s}}) for name, s in sizes.items()]
        await stage.node("node-a", *made)
        for name in ("c", "d"):
            await stage.make_claim(name, prefers("big", "small"))
            await stage.start_pod(f"pod-{name}", name)
            await stage.bound(f"pod-{name}")
        assert devices_of(await stage.allocated("c")) == ["gpu-0"]
        assert devices_of(await stage.allocated("d")) == ["gpu-1"]
