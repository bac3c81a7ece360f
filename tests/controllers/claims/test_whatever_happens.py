"""Whatever happens to pods, claims and the controller itself: in the end nothing is lost and nothing is left behind."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing

import pytest

from controllers.world import (
    CLAIM_VALUES,
    POD_VALUES,
    World,
    eventually,
    from_template,
    named,
)
from drayman.api.claim_generation import is_made_for, owning_pod
from drayman.api.core import Pod
from drayman.api.pods import is_done
from drayman.api.resource import ResourceClaim
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.lifecycle.running import Lifecycle
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cluster import DeleteOptions, InProcessClient
from drayman.cluster.embedded import EventType, Store
from drayman.cluster.errors import StatusError
from drayman.cluster.resources import PODS
from drayman.controllers.claims.controller import ClaimController

PODS_AT_MOST = 8
STEPS = 70


@asynccontextmanager
async def cluster_with_garbage_collection(
    store: Store | None = None, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[World]:
    store = store or Store.open(None)
    server = make_server(store)
    await create_first_objects(server.core)
    lifecycle = Lifecycle(server.core, clock=clock)
    lifecycle.start()
    w = World(InProcessClient(ServerBackend(server.core)), (ClaimController,))
    try:
        await w.start()
        yield w
    finally:
        await w.stop()
        await lifecycle.stop()
        store.close()


async def act(w: World, rng: random.Random) -> None:
    """One thing that users, a scheduler, a kubelet or a crash may do."""
    pods = (await w.client.list(PODS)).items
    claims = await w.claims()
    name = f"p{rng.randrange(PODS_AT_MOST)}"
    match rng.choice(
        ["make", "make", "place", "place", "finish", "delete", "kill", "claim", "crash"]
    ):
        case "make":
            entries = [from_template("x"), from_template("y"), named("z", "shared")]
            await w.pod(name, *rng.sample(entries, rng.randint(1, 3)))
        case "place" if pods:
            await place(w, rng.choice(pods))
        case "finish" if pods:
            await w.finish(rng.choice(pods).metadata.name, rng.choice(["Succeeded", "Failed"]))
        case "delete":
            await w.remove(POD_VALUES, name, 30)
        case "kill":
            await w.remove(POD_VALUES, name, 0)
        case "claim" if claims:
            await w.remove(CLAIM_VALUES, rng.choice(claims).metadata.name)
        case "crash":
            await w.stop()
            await w.start()


async def place(w: World, pod: Pod) -> None:
    """Allocates and reserves what a pod uses and binds it, as a scheduler does."""
    if is_done(pod) or pod.spec.node_name:
        return
    names = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses}
    for entry in pod.spec.resource_claims:
        claim = await w.get_claim(entry.resource_claim_name or names.get(entry.name) or "absent")
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return
        users = [user for user in claim.status.reserved_for if user.uid != pod.metadata.uid]
        if users:
            continue  # somebody else has it: the controller reserves for the pod once it is bound
        await w.allocate(claim.metadata.name, pod)
    await w.client.bind(pod.metadata.name, "default", "node-a", uid=pod.metadata.uid)


def faults(pods: tuple[Pod, ...], claims: tuple[ResourceClaim, ...]) -> list[str]:
    """What is not as it should be when everything has come to rest."""
    found = []
    by_name = {claim.metadata.name: claim for claim in claims}
    alive = {pod.metadata.uid: pod for pod in pods if not is_done(pod)}
    for pod in alive.values():
        if pod.metadata.deletion_timestamp is not None:
            continue
        names = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses}
        for entry in pod.spec.resource_claims:
            claim = by_name.get(entry.resource_claim_name or names.get(entry.name) or "")
            if entry.resource_claim_name is None and (claim is None or not is_made_for(claim, pod)):
                found.append(f"{pod.metadata.name} has no claim for {entry.name}")
    for claim in claims:
        name, owner = claim.metadata.name, owning_pod(claim)
        if owner is not None and owner.uid not in alive:
            found.append(f"{name} has outlived its pod")
        found += [
            f"{name} is reserved for {user.name}, which does not need it"
            for user in claim.status.reserved_for
            if user.uid not in alive
        ]
        if claim.status.allocation is not None and not claim.status.reserved_for:
            found.append(f"{name} is allocated for nobody")
    return found


@pytest.mark.parametrize("seed", range(4))
async def test_nothing_is_lost_and_nothing_left_behind(seed: int) -> None:
    """Every pod that waits or runs has its claims; no claim is held by or for a pod that is over."""
    rng = random.Random(seed)
    async with cluster_with_garbage_collection() as w:
        await w.template()
        await w.claim("shared")
        for _ in range(STEPS):
            try:
                await act(w, rng)
            except StatusError:
                continue  # what was meant was gone or in the way: such is life

        async def look() -> list[str]:
            return faults((await w.client.list(PODS)).items, await w.claims())

        await eventually(look, lambda found: found == [])


async def test_claims_of_deleted_pods_go_in_one_step() -> None:
    """Watchers see each of them go, all in one transaction, and never marked or given back before."""
    store = Store.open(None)
    # Time stands still, so garbage collection leaves these claims to the controller for as long as the test takes.
    async with cluster_with_garbage_collection(store, clock=lambda: 0.0) as w:
        await w.template()
        for index in range(10):
            made = await w.pod(f"p{index}", from_template("x"), nodeName="node-a")
            (name,) = (await w.generated(f"p{index}")).values()
            await w.allocate(name or "", made, device=f"gpu-{index}")
        await w.heard()
        with closing(store.watch("resourceclaims.resource.k8s.io", since=store.revision)) as seen:
            await w.client.delete_collection(
                PODS, "default", options=DeleteOptions(grace_period_seconds=0)
            )
            gone_at = store.revision
            await w.until_claims(lambda claims: claims == ())
            events = seen.pending()
    assert [event.type for event in events] == [EventType.DELETED] * 10
    assert [event.revision for event in events] == list(range(gone_at + 1, gone_at + 11))
    assert all(event.stored.value["status"] == {} for event in events)


async def test_a_claim_that_others_use_outlives_its_pod() -> None:
    """A generated claim that another pod uses by name keeps its devices until that pod is done too, and then goes."""
    async with cluster_with_garbage_collection() as w:
        await w.template()
        one = await w.pod("one", from_template("x"), nodeName="node-a")
        (name,) = (await w.generated("one")).values()
        assert name
        two = await w.pod("two", named("x", name), nodeName="node-a")
        await w.allocate(name, one, two)
        await w.remove(POD_VALUES, "one")
        left = await w.until_claim(
            name, lambda claim: [user.name for user in claim.status.reserved_for] == ["two"]
        )
        assert left.status.allocation is not None
        await w.until_claim(name, lambda claim: claim.metadata.deletion_timestamp is not None)
        await w.remove(POD_VALUES, "two")
        await w.until_gone(name)


async def test_garbage_collection_without_the_controller_and_the_controller_later() -> None:
    """A claim that was only marked while no controller ran is released by the next one."""
    async with cluster_with_garbage_collection() as w:
        await w.template()
        made = await w.pod("p", from_template("x"), nodeName="node-a")
        (name,) = (await w.generated("p")).values()
        assert name
        await w.allocate(name, made)
        await w.stop()
        await w.remove(POD_VALUES, "p")
        marked = await w.until_claim(
            name, lambda claim: claim.metadata.deletion_timestamp is not None
        )
        assert marked.status.allocation is not None
        await w.start()
        await w.until_gone(name)
