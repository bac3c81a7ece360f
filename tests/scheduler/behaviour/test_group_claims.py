"""spec/dra.md 2.2, "Workload variant", and 5.5: claims that the pods of a group share."""

from __future__ import annotations

from controllers.world import NAMESPACE, eventually, stays
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import ResourceClaim
from drayman.api.struct import Json
from drayman.cluster.resources import POD_GROUPS, JsonObject
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import (
    NODE_VALUES,
    Stage,
    conditional,
    devices_of,
    from_template,
    users_of,
    wants,
)

GROUP_VALUES = POD_GROUPS.as_values()
IN_GROUP: dict[str, Json] = {"schedulingGroup": {"podGroupName": "g"}}


async def make_group(stage: Stage, *entries: JsonObject) -> PodGroup:
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": list(entries)}
    await stage.create(GROUP_VALUES, {"metadata": {"name": "g"}, "spec": spec})
    return await stage.client.get(POD_GROUPS, "g", NAMESPACE)


def by_name(name: str) -> JsonObject:
    return {"name": name, "resourceClaimName": name}


def is_reserved_once(claim: ResourceClaim, group: PodGroup) -> bool:
    """Whether the group, and nobody else, is the claim's consumer."""
    return [
        (user.api_group, user.resource, user.name, user.uid) for user in claim.status.reserved_for
    ] == [("scheduling.k8s.io", "podgroups", "g", group.metadata.uid)]


async def test_a_claim_from_a_template_is_reserved_for_the_group(cluster: Cluster) -> None:
    """All pods of the group use one device, and the claim has one consumer, even for pods that come later."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0", "gpu-1")
        await stage.make_template("t")
        group = await make_group(stage, from_template())
        for name in ("p", "q"):
            await stage.start_pod(name, from_template(), **IN_GROUP)
        await stage.bound("p", "q")
        await stage.start_pod("late", from_template(), **IN_GROUP)
        await stage.bound("late")
        (claim,) = await stage.claims()
        assert is_reserved_once(claim, group)
        assert len(devices_of(claim)) == 1


async def test_a_named_claim_is_reserved_for_the_group_that_names_it_too(cluster: Cluster) -> None:
    """A claim that only the pod names is the pod's affair."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0", "gpu-1")
        await stage.make_claim("shared")
        await stage.make_claim("own")
        group = await make_group(stage, by_name("shared"))
        await stage.start_pod("p", "shared", "own", **IN_GROUP)
        await stage.start_pod("q", "shared", **IN_GROUP)
        await stage.bound("p", "q")
        assert is_reserved_once(await stage.allocated("shared"), group)
        assert users_of(await stage.allocated("own")) == ["p"]


async def test_claims_of_the_group_and_of_the_pod_go_together(cluster: Cluster) -> None:
    """Pods with a shared claim and one of their own run where there is room for both."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.device_class("link", "device.driver == 'link.example.com'")
        await stage.node("node-a", "gpu-0", "gpu-1")
        await stage.node("node-b", "gpu-0")
        await stage.slice("links", "link-0", driver="link.example.com", nodeName="node-a")
        await stage.make_template("gpu", wants(select="device.driver == 'gpu.example.com'"))
        await stage.make_template("link", wants(device_class="link"))
        group = await make_group(stage, from_template("link", "link"))
        entries = (from_template("gpu"), from_template("link", "link"))
        for name in ("p", "q"):
            await stage.start_pod(name, *entries, **IN_GROUP)
        assert await stage.bound("p", "q") == "node-a"
        p, q = await stage.generated("p"), await stage.generated("q")
        assert p["link"] == q["link"]
        assert p["gpu"] != q["gpu"]
        assert is_reserved_once(await stage.allocated(p["link"] or ""), group)
        assert users_of(await stage.allocated(p["gpu"] or "")) == ["p"]


async def test_a_pod_with_claims_waits_for_its_group(cluster: Cluster) -> None:
    """Without the group nobody knows for whom to reserve; when it comes the pod is scheduled."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await stage.make_claim("c")
        await stage.start_pod("p", "c", **IN_GROUP)
        await stage.refused("p", "Pod group default/g does not exist")
        group = await make_group(stage, by_name("c"))
        await stage.bound("p")
        assert is_reserved_once(await stage.allocated("c"), group)


async def test_a_claim_of_a_group_without_placed_pods_is_moved(cluster: Cluster) -> None:
    """Devices that hold the group in the wrong place are given back while none of its pods has a node."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0", spec={"unschedulable": True})
        await stage.node("node-b", "gpu-0")
        await stage.make_claim("c")
        group = await make_group(stage, by_name("c"))
        await stage.allocate_by_hand(
            "c",
            "gpu-0",
            "node-a",
            reservedFor=[
                {
                    "apiGroup": "scheduling.k8s.io",
                    "resource": "podgroups",
                    "name": "g",
                    "uid": group.metadata.uid,
                }
            ],
        )
        await stage.start_pod("p", "c", **IN_GROUP)
        assert await stage.bound("p") == "node-b"
        assert is_reserved_once(await stage.allocated("c"), group)


async def test_a_claim_of_a_group_with_a_placed_pod_stays(cluster: Cluster) -> None:
    """A pod that cannot go where the group's devices are waits, and the others keep them."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0", allocatable={"cpu": "1"})
        await stage.node("node-b", "gpu-0")
        await stage.make_claim("c")
        group = await make_group(stage, by_name("c"))
        await stage.start_pod(
            "p", "c", nodeSelector={"kubernetes.io/hostname": "node-a"}, **IN_GROUP
        )
        await stage.bound("p")
        await stage.start_pod("q", "c", requests={"cpu": "4"}, **IN_GROUP)
        await stage.refused("q", "not available on the node")
        await stage.keeps_waiting("q")
        assert is_reserved_once(await stage.allocated("c"), group)


async def test_devices_that_fail_are_given_back_though_the_group_has_them(cluster: Cluster) -> None:
    """The reservation of the group does not keep devices that were never made ready.

    The node takes no more pods before its driver says no: the scheduler would be free to try the same device again otherwise.
    """
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", conditional("gpu-0"))
        await stage.make_claim("c")
        group = await make_group(stage, by_name("c"))
        await stage.start_pod("p", "c", **IN_GROUP)
        assert is_reserved_once(await stage.allocated("c"), group)
        await stage.patch(NODE_VALUES, "node-a", {"spec": {"unschedulable": True}})
        await stage.report("c", "gpu-0", "node-a", Failed="True")
        await stage.refused("p")
        await stage.node("node-b", "gpu-0")
        assert await stage.bound("p") == "node-b"
        claim = await stage.allocated("c")
        assert is_reserved_once(claim, group)
        assert not claim.status.devices


async def test_a_group_that_is_deleted_stays_until_its_pods_have_ended(cluster: Cluster) -> None:
    """Its claim keeps its devices as long as a pod runs, and goes with the group."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await stage.make_template("t")
        group = await make_group(stage, from_template())
        for name in ("p", "q"):
            await stage.start_pod(name, from_template(), **IN_GROUP)
        await stage.bound("p", "q")
        await stage.delete(GROUP_VALUES, "g")
        await stage.finish("p")

        async def claims() -> list[bool]:
            return [is_reserved_once(claim, group) for claim in await stage.claims()]

        await stays(claims, lambda found: found == [True])
        await stage.finish("q")
        await eventually(claims, lambda found: found == [])
        left = await stage.client.list(POD_GROUPS, NAMESPACE)
        assert left.items == ()
