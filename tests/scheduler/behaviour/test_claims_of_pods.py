"""spec/dra.md 5.2 and 5.3: what a pod needs before nodes are looked at."""

from __future__ import annotations

import asyncio

from controllers.world import CLAIM_VALUES
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import (
    Stage,
    devices_of,
    from_template,
    prefers,
    users_of,
    wants,
)


async def _node(stage: Stage, *devices: str) -> None:
    await stage.device_class()
    await stage.node("node-a", *(devices or ("gpu-0",)))


async def test_a_claim_that_does_not_exist(cluster: Cluster) -> None:
    """5.2: the pod waits, told which claim is missing, and runs when it appears."""
    async with cluster() as stage:
        await _node(stage)
        await stage.start_pod("p", "c")
        await stage.refused("p", '"c" does not exist')
        await stage.make_claim("c")
        assert await stage.bound("p") == "node-a"


async def test_a_claim_that_is_still_to_be_made(cluster: Cluster) -> None:
    """5.2: a pod whose claim has not been made from its template waits for it."""
    async with cluster() as stage:
        await _node(stage)
        await stage.start_pod("p", from_template())
        await stage.refused("p", "gpu", "template t")
        await stage.make_template("t")
        assert await stage.bound("p") == "node-a"


async def test_a_claim_that_is_being_deleted(cluster: Cluster) -> None:
    """5.2: a claim with a deletion time takes no new pods; a new claim of the name does."""
    async with cluster() as stage:
        await _node(stage)
        await stage.make_claim("c")
        await stage.patch(CLAIM_VALUES, "c", {"metadata": {"finalizers": ["example.com/keep"]}})
        await stage.delete(CLAIM_VALUES, "c")
        await stage.start_pod("p", "c")
        await stage.refused("p", "Claim c is being deleted")
        await stage.patch(CLAIM_VALUES, "c", {"metadata": {"finalizers": None}})
        await stage.until_gone("c")
        await stage.make_claim("c")
        assert await stage.bound("p") == "node-a"


async def test_any_pod_may_use_a_claim_by_name(cluster: Cluster) -> None:
    """5.2: a claim that was made for one pod serves another that names it."""
    async with cluster() as stage:
        await _node(stage)
        await stage.make_template("t")
        await stage.start_pod("p", from_template())
        name = (await stage.claim_of("p")).metadata.name
        await stage.bound("p")
        await stage.start_pod("q", {"name": "c", "resourceClaimName": name})
        await stage.bound("q")
        assert users_of(await stage.allocated(name)) == ["p", "q"]


async def test_no_claims_no_questions(cluster: Cluster) -> None:
    """5.3: a pod that asks for no devices is bound where there are none."""
    async with cluster() as stage:
        await stage.node("node-a")
        await stage.start_pod("p")
        assert await stage.bound("p") == "node-a"


async def test_a_claim_with_devices_says_where(cluster: Cluster) -> None:
    """5.3: the node selector of an allocation decides for every pod that uses the claim."""
    async with cluster() as stage:
        await _node(stage)
        await stage.node("node-b", "gpu-0")
        await stage.make_claim("c")
        await stage.allocate_by_hand("c", "gpu-0", "node-b")
        await stage.start_pod("p", "c")
        await stage.start_pod("q", "c")
        assert await stage.bound("p") == "node-b"
        assert await stage.bound("q") == "node-b"


async def test_pods_that_share_a_new_claim_go_together(cluster: Cluster) -> None:
    """5.3: a claim that is just being allocated for one pod is not allocated again for another: both end where it is."""
    async with cluster() as stage:
        await stage.device_class()
        for name in ("node-a", "node-b", "node-c"):
            await stage.node(name, "gpu-0")
        await stage.make_claim("c")
        await asyncio.gather(*(stage.start_pod(f"p{n}", "c") for n in range(4)))
        nodes = {await stage.bound(f"p{n}") for n in range(4)}
        assert len(nodes) == 1
        assert sorted(users_of(await stage.allocated("c"))) == ["p0", "p1", "p2", "p3"]


async def test_a_class_that_does_not_exist(cluster: Cluster) -> None:
    """5.3: the pod is told which request wants which class, and runs when the class appears."""
    async with cluster() as stage:
        await stage.node("node-a", "gpu-0")
        await stage.make_claim("c", wants("mine", "gpu"))
        await stage.start_pod("p", "c")
        await stage.refused("p", "request mine", "class gpu does not exist")
        await stage.device_class("gpu")
        assert await stage.bound("p") == "node-a"


async def test_a_class_of_an_alternative_that_does_not_exist(cluster: Cluster) -> None:
    """5.3: every alternative must have its class, also one that would not be taken."""
    async with cluster() as stage:
        await _node(stage)
        await stage.make_claim("c", prefers("gpu", "none-such"))
        await stage.start_pod("p", "c")
        await stage.refused("p", "r/none-such", "does not exist")
        await stage.device_class("none-such")
        await stage.bound("p")
        assert devices_of(await stage.allocated("c")) == ["gpu-0"]
