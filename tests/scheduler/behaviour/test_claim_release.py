"""spec/dra.md 2.2, reserving and releasing, and 2.3: the life of a claim."""

from __future__ import annotations

import pytest

from controllers.world import CLAIM_VALUES, FINALIZER, POD_VALUES, stays
from drayman.cluster.errors import ClusterError
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import Stage, devices_of, from_template, users_of


async def _one_device(stage: Stage) -> None:
    await stage.device_class(extendedResourceName="example.com/gpu")
    await stage.node("node-a", "gpu-0")


async def test_a_pod_with_a_node_is_reserved_for(cluster: Cluster) -> None:
    """A pod that came with its node, past the scheduler, is added to the users of a claim that has devices."""
    async with cluster() as stage:
        await _one_device(stage)
        await stage.make_claim("c")
        await stage.start_pod("first", "c")
        await stage.bound("first")
        await stage.start_pod("second", "c", nodeName="node-a")
        claim = await stage.until_claim("c", lambda claim: len(users_of(claim)) == 2)
        assert users_of(claim) == ["first", "second"]


async def test_a_pod_with_a_node_gets_no_devices(cluster: Cluster) -> None:
    """Past the scheduler nobody allocates: a claim without devices stays without."""
    async with cluster() as stage:
        await _one_device(stage)
        await stage.make_claim("c")
        await stage.start_pod("p", "c", nodeName="node-a")
        await stays(lambda: stage.get_claim("c"), lambda c: c is not None and not users_of(c))
        await stage.free("c")


async def test_life_of_a_claim(cluster: Cluster) -> None:
    """Pending; then protected, allocated with a time and reserved, all at once; further users join; after the last it is pending again."""
    async with cluster() as stage:
        await _one_device(stage)
        await stage.make_claim("c")
        await stage.start_pod("first", "c")
        claim = await stage.allocated("c")
        assert users_of(claim) == ["first"]
        assert claim.metadata.finalizers == (FINALIZER,)
        assert claim.status.allocation is not None
        assert claim.status.allocation.allocation_timestamp
        await stage.start_pod("second", "c")
        await stage.bound("first", "second")
        assert users_of(await stage.allocated("c")) == ["first", "second"]
        await stage.finish("first")
        await stage.until_claim("c", lambda claim: users_of(claim) == ["second"])
        await stage.finish("second")
        claim = await stage.until_claim("c", lambda claim: not claim.metadata.finalizers)
        assert claim.status.allocation is None


@pytest.mark.parametrize("end", ["Succeeded", "Failed", "removed"])
async def test_a_pod_that_is_done_gives_back(cluster: Cluster, end: str) -> None:
    """A pod that has ended, well or badly, or was removed needs its claim no more."""
    async with cluster() as stage:
        await _one_device(stage)
        await stage.make_claim("c")
        await stage.start_pod("p", "c")
        await stage.bound("p")
        if end == "removed":
            await stage.remove(POD_VALUES, "p")
        else:
            await stage.finish("p", end)
        claim = await stage.until_claim("c", lambda claim: not claim.metadata.finalizers)
        assert claim.status.allocation is None
        assert not claim.status.reserved_for


async def test_a_pod_that_never_ran_gives_back(cluster: Cluster) -> None:
    """Deleted before it had a node, a pod no longer counts as a user."""
    async with cluster() as stage:
        await stage.make_claim("c")
        pod = await stage.start_pod("p", "c", schedulerName="nobody")
        await stage.patch(POD_VALUES, "p", {"metadata": {"finalizers": ["example.com/keep"]}})
        await stage.allocate("c", pod)
        await stage.remove(POD_VALUES, "p", grace=30)
        await stage.free("c")


async def test_a_running_pod_that_is_being_deleted_keeps_its_claim(cluster: Cluster) -> None:
    """A pod that had a node may still use its devices until it is gone."""
    async with cluster() as stage:
        await _one_device(stage)
        await stage.make_claim("c")
        await stage.start_pod("p", "c")
        await stage.bound("p")
        await stage.remove(POD_VALUES, "p", grace=30)
        await stays(
            lambda: stage.get_claim("c"),
            lambda claim: claim is not None and users_of(claim) == ["p"],
        )


async def test_a_pod_of_the_same_name_is_another(cluster: Cluster) -> None:
    """A reservation holds for the uid: another pod of that name does not keep it."""
    async with cluster() as stage:
        await stage.make_claim("c")
        pod = await stage.start_pod("p", "c", schedulerName="nobody")
        await stage.remove(POD_VALUES, "p")
        await stage.start_pod("p", "c", schedulerName="nobody")
        await stage.allocate("c", pod)
        await stage.free("c")


async def test_unknown_users_are_kept(cluster: Cluster) -> None:
    """What is no pod is nobody's business here: its reservation stays, and with it the devices."""
    async with cluster() as stage:
        await stage.make_claim("c")
        user = {"apiGroup": "example.com", "resource": "things", "name": "x", "uid": "1"}
        await stage.allocate_by_hand("c", "gpu-0", "node-a", reservedFor=[user])
        await stays(lambda: stage.get_claim("c"), lambda c: c is not None and users_of(c) == ["x"])


async def test_devices_that_nobody_used_stay(cluster: Cluster) -> None:
    """A claim loses its devices when its last user goes, not because it never had one."""
    async with cluster() as stage:
        await stage.make_claim("c")
        await stage.allocate_by_hand("c", "gpu-0", "node-a")
        await stays(
            lambda: stage.get_claim("c"),
            lambda claim: claim is not None and devices_of(claim) == ["gpu-0"],
        )


async def test_a_finished_pod_is_dropped_once(cluster: Cluster) -> None:
    """While another pod uses the claim, the finished one is not reserved for again, although it has a node."""
    async with cluster() as stage:
        await _one_device(stage)
        await stage.make_claim("c")
        await stage.start_pod("first", "c")
        await stage.start_pod("second", "c")
        await stage.bound("first", "second")
        await stage.finish("first")
        dropped = await stage.until_claim("c", lambda claim: users_of(claim) == ["second"])
        await stays(lambda: stage.get_claim("c"), lambda claim: claim == dropped)


async def test_a_deleted_claim_waits_for_its_users(cluster: Cluster) -> None:
    """A claim in use that is deleted takes no new users, and goes with the last one."""
    async with cluster() as stage:
        await _one_device(stage)
        await stage.make_claim("c")
        await stage.start_pod("first", "c")
        await stage.bound("first")
        await stage.delete(CLAIM_VALUES, "c")
        await stage.start_pod("second", "c")
        await stage.refused("second", "c", "deleted")
        users = [{"resource": "pods", "name": n, "uid": n} for n in ("first", "second")]
        with pytest.raises(ClusterError):
            await stage.patch(CLAIM_VALUES, "c", {"status": {"reservedFor": users}}, "status")
        await stage.finish("first")
        await stage.until_gone("c")


async def test_a_deleted_claim_without_users_goes_at_once(cluster: Cluster) -> None:
    """Nobody uses it: devices, protection and claim go together."""
    async with cluster() as stage:
        await stage.make_claim("c")
        await stage.allocate_by_hand("c", "gpu-0", "node-a")
        await stage.delete(CLAIM_VALUES, "c")
        await stage.until_gone("c")


async def test_generated_claims_go_with_their_pod(cluster: Cluster) -> None:
    """A claim that was made for a pod is deleted when the pod has ended."""
    async with cluster() as stage:
        await _one_device(stage)
        await stage.make_template("t")
        await stage.start_pod("p", from_template())
        await stage.bound("p")
        name = (await stage.claim_of("p")).metadata.name
        await stage.finish("p")
        await stage.until_gone(name)


async def test_claims_of_extended_resources_go_with_their_pod(cluster: Cluster) -> None:
    """The same holds for the claim that the scheduler made for extended resources."""
    async with cluster() as stage:
        await _one_device(stage)
        await stage.start_pod("p", requests={"example.com/gpu": "1"})
        name = (await stage.extended_claim_of("p")).metadata.name
        await stage.finish("p")
        await stage.until_gone(name)
