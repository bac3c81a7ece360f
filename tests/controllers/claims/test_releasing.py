"""Claims are reserved and released: spec/dra.md 2.2 ("Reserving", "Releasing") and 2.3, row by row."""

from __future__ import annotations

from pathlib import Path

import pytest

from controllers.world import (
    CLAIM_VALUES,
    DRIVER,
    FINALIZER,
    NAMESPACE,
    PLACES,
    POD_VALUES,
    World,
    consumer,
    from_template,
    named,
    stays,
    world,
)
from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.controllers.claims.controller import ClaimController

OTHER_CONSUMER = {"apiGroup": "example.com", "resource": "things", "name": "x", "uid": "u"}


def is_free(claim: ResourceClaim) -> bool:
    status = claim.status
    return (
        status.allocation is None
        and status.reserved_for == ()
        and status.devices == ()
        and FINALIZER not in claim.metadata.finalizers
    )


async def bound(w: World, name: str, *entries: dict[str, str]) -> Pod:
    return await w.pod(name, *entries, nodeName="node-a")


# --- Reserving ------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", list(PLACES))
async def test_a_pod_that_bypassed_the_scheduler_is_added(place: str, tmp_path: Path) -> None:
    """A pod with a node and an allocated claim becomes a consumer of it."""
    async with world(tmp_path, ClaimController, place=place) as w:
        await w.claim("c")
        await w.allocate("c")
        made = await bound(w, "p", named("x", "c"))
        claim = await w.until_claim("c", lambda claim: bool(claim.status.reserved_for))
        (user,) = claim.status.reserved_for
        assert (user.api_group, user.resource, user.name) == ("", "pods", "p")
        assert user.uid == made.metadata.uid


async def test_a_later_allocation_is_reserved_too(tmp_path: Path) -> None:
    """It does not matter whether the pod or the allocation comes first; nothing is allocated here."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c")
        await bound(w, "p", named("x", "c"))
        await stays(lambda: w.get_claim("c"), lambda claim: claim is not None and is_free(claim))
        await w.allocate("c")
        await w.until_claim("c", lambda claim: bool(claim.status.reserved_for))


async def test_others_stay_consumers(tmp_path: Path) -> None:
    """A second pod is appended, and the first stays."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c")
        first = await bound(w, "p1", named("x", "c"))
        await w.allocate("c", first)
        await bound(w, "p2", named("x", "c"))
        await w.until_claim(
            "c", lambda claim: [user.name for user in claim.status.reserved_for] == ["p1", "p2"]
        )


async def test_a_waiting_pod_is_left_to_the_scheduler(tmp_path: Path) -> None:
    """Without a node there is no reservation."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c")
        await w.allocate("c")
        await w.pod("p", named("x", "c"))
        await stays(
            lambda: w.get_claim("c"),
            lambda claim: claim is not None and claim.status.reserved_for == (),
        )


async def test_a_finished_pod_is_never_added(tmp_path: Path) -> None:
    """Kubernetes 1.36.4 adds and drops such a pod in turns without end; here it is dropped once."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c")
        one = await bound(w, "p1", named("x", "c"))
        two = await bound(w, "p2", named("x", "c"))
        await w.allocate("c", one, two)
        await w.finish("p1")
        claim = await w.until_claim("c", lambda claim: len(claim.status.reserved_for) == 1)
        assert claim.status.reserved_for[0].name == "p2"
        assert claim.status.allocation is not None
        version = claim.metadata.resource_version
        await stays(
            lambda: w.get_claim("c"),
            lambda found: found is not None and found.metadata.resource_version == version,
        )


async def test_a_finished_pod_is_not_added_to_a_new_allocation(tmp_path: Path) -> None:
    """A claim that is allocated again for another pod does not come back to the one that finished."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c")
        one = await bound(w, "p1", named("x", "c"))
        await w.allocate("c", one)
        await w.finish("p1")
        await w.until_claim("c", is_free)
        two = await bound(w, "p2", named("x", "c"))
        await w.allocate("c", two)
        await stays(
            lambda: w.get_claim("c"),
            lambda claim: (
                claim is not None and [user.name for user in claim.status.reserved_for] == ["p2"]
            ),
        )


async def test_a_claim_that_is_being_deleted_gains_nobody(tmp_path: Path) -> None:
    """The API refuses such a reservation, so none is tried."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c")
        one = await bound(w, "p1", named("x", "c"))
        await w.allocate("c", one)
        await w.remove(CLAIM_VALUES, "c")
        await bound(w, "p2", named("x", "c"))
        await stays(
            lambda: w.get_claim("c"),
            lambda claim: claim is not None and len(claim.status.reserved_for) == 1,
        )


# --- Releasing ------------------------------------------------------------------------------------


async def _succeed(w: World) -> None:
    await w.finish("p", "Succeeded")


async def _fail(w: World) -> None:
    await w.finish("p", "Failed")


async def _force_delete(w: World) -> None:
    await w.remove(POD_VALUES, "p", 0)


ENDS = {"succeeded": _succeed, "failed": _fail, "force-deleted": _force_delete}


@pytest.mark.parametrize("place", list(PLACES))
@pytest.mark.parametrize("end", list(ENDS))
async def test_the_last_consumer_gives_the_claim_back(end: str, place: str, tmp_path: Path) -> None:
    """Reservation, allocation, device status and finalizer are gone; the claim is pending again."""
    async with world(tmp_path, ClaimController, place=place) as w:
        await w.claim("c")
        made = await bound(w, "p", named("x", "c"))
        await w.allocate("c", made)
        device = {"driver": DRIVER, "pool": "pool", "device": "gpu-0", "data": {"a": 1}}
        await w.patch(CLAIM_VALUES, "c", {"status": {"devices": [device]}}, "status")
        await ENDS[end](w)
        claim = await w.until_claim("c", is_free)
        assert claim.metadata.deletion_timestamp is None


@pytest.mark.parametrize("place", list(PLACES))
@pytest.mark.parametrize("end", list(ENDS))
async def test_a_generated_claim_goes_with_its_pod(end: str, place: str, tmp_path: Path) -> None:
    """The claim is released and deleted although the pod object may stay, and without garbage collection."""
    async with world(tmp_path, ClaimController, place=place) as w:
        await w.template()
        made = await bound(w, "p", from_template("x"))
        (name,) = (await w.generated("p")).values()
        await w.allocate(name or "", made)
        await ENDS[end](w)
        await w.until_gone(name or "")


async def test_a_pod_that_ends_on_its_node_keeps_its_devices_until_then(tmp_path: Path) -> None:
    """While a kubelet still has to stop a pod, its claim stays reserved."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c")
        made = await bound(w, "p", named("x", "c"))
        await w.allocate("c", made)
        await w.remove(POD_VALUES, "p", 30)
        await stays(
            lambda: w.get_claim("c"),
            lambda claim: claim is not None and len(claim.status.reserved_for) == 1,
        )
        await w.remove(POD_VALUES, "p", 0)
        await w.until_claim("c", is_free)


async def test_a_pod_deleted_before_scheduling_needs_nothing(tmp_path: Path) -> None:
    """A pod that never had a node is done as soon as it is to be deleted, though something keeps the object."""
    async with world(tmp_path, ClaimController) as w:
        await w.template()
        await w.pod("p", from_template("x"))
        (name,) = (await w.generated("p")).values()
        await w.patch(POD_VALUES, "p", {"metadata": {"finalizers": ["example.com/keep"]}})
        await w.remove(POD_VALUES, "p", 30)
        await w.until_gone(name or "")
        assert await w.get_pod("p") is not None


async def test_the_replaced_pod_loses_its_reservation(tmp_path: Path) -> None:
    """Another pod of the same name is no consumer."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c")
        old = await bound(w, "p", named("x", "c"))
        await w.allocate("c", old)
        await w.stop()
        await w.remove(POD_VALUES, "p")
        await w.pod("p", named("x", "c"))
        await w.start()
        await w.until_claim("c", is_free)


async def test_a_pod_nobody_has_ever_seen_is_asked_for(tmp_path: Path) -> None:
    """A reservation for a pod that the server does not know is dropped."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c")
        made = await w.pod("other")
        ghost = consumer(made) | {"name": "ghost", "uid": "ghost"}
        await w.allocate("c")
        await w.patch(CLAIM_VALUES, "c", {"status": {"reservedFor": [ghost]}}, "status")
        await w.until_claim("c", is_free)


async def test_what_ended_while_nobody_watched_is_found_at_the_start(tmp_path: Path) -> None:
    """A restart finds the claims of pods that went meanwhile."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c1")
        await w.claim("c2")
        one = await bound(w, "p1", named("x", "c1"))
        two = await bound(w, "p2", named("x", "c2"))
        await w.allocate("c1", one)
        await w.allocate("c2", two, device="gpu-1")
        await w.stop()
        await w.remove(POD_VALUES, "p1")
        await w.finish("p2")
        await w.start()
        await w.until_claim("c1", is_free)
        await w.until_claim("c2", is_free)


async def test_unknown_consumers_are_kept(tmp_path: Path) -> None:
    """A consumer of a kind that is not known here is nobody's to drop, and keeps the allocation."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c")
        made = await bound(w, "p", named("x", "c"))
        await w.allocate("c")
        users = [OTHER_CONSUMER, consumer(made)]
        await w.patch(CLAIM_VALUES, "c", {"status": {"reservedFor": users}}, "status")
        await w.finish("p")
        claim = await w.until_claim("c", lambda claim: len(claim.status.reserved_for) == 1)
        assert claim.status.reserved_for[0].api_group == "example.com"
        assert claim.status.allocation is not None
        await stays(
            lambda: w.get_claim("c"),
            lambda found: found is not None and found.status == claim.status,
        )


async def test_a_claim_without_consumers_stays_allocated(tmp_path: Path) -> None:
    """Only the end of the last use gives a claim back."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c")
        await w.allocate("c")
        await stays(
            lambda: w.get_claim("c"),
            lambda claim: claim is not None and claim.status.allocation is not None,
        )


async def test_without_the_finalizer_the_allocation_is_not_ours(tmp_path: Path) -> None:
    """The reservation goes; an allocation that the scheduler did not protect stays."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c")
        made = await bound(w, "p", named("x", "c"))
        await w.allocate("c", made)
        await w.patch(CLAIM_VALUES, "c", {"metadata": {"finalizers": ["example.com/other"]}})
        await w.finish("p")
        claim = await w.until_claim("c", lambda claim: claim.status.reserved_for == ())
        assert claim.status.allocation is not None
        assert claim.metadata.finalizers == ("example.com/other",)


@pytest.mark.parametrize("place", list(PLACES))
async def test_a_deleted_claim_waits_for_its_consumers(place: str, tmp_path: Path) -> None:
    """A claim that is to be deleted stays while it is used, and goes with the last user."""
    async with world(tmp_path, ClaimController, place=place) as w:
        await w.claim("c")
        made = await bound(w, "p", named("x", "c"))
        await w.allocate("c", made)
        await w.remove(CLAIM_VALUES, "c")
        await stays(
            lambda: w.get_claim("c"),
            lambda claim: claim is not None and claim.status.allocation is not None,
        )
        await w.finish("p")
        await w.until_gone("c")


@pytest.mark.parametrize("place", list(PLACES))
async def test_a_deleted_claim_that_nobody_uses_goes_at_once(place: str, tmp_path: Path) -> None:
    """Allocation and finalizer are removed, allocated or not."""
    async with world(tmp_path, ClaimController, place=place) as w:
        await w.claim("c1")
        await w.allocate("c1")
        await w.claim("c2", finalizers=[FINALIZER])
        for name in ("c1", "c2"):
            await w.remove(CLAIM_VALUES, name)
            await w.until_gone(name)


async def test_finalizers_of_others_are_kept(tmp_path: Path) -> None:
    """Only the finalizer of the scheduler is removed."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c")
        made = await bound(w, "p", named("x", "c"))
        await w.allocate("c", made)
        finalizers = ["example.com/other", FINALIZER]
        await w.patch(CLAIM_VALUES, "c", {"metadata": {"finalizers": finalizers}})
        await w.finish("p")
        claim = await w.until_claim("c", is_free)
        assert claim.metadata.finalizers == ("example.com/other",)


async def test_a_claim_for_extended_resources_goes_with_its_pod(tmp_path: Path) -> None:
    """Such a claim is named in the pod's status alone; it is released and deleted like a generated one."""
    async with world(tmp_path, ClaimController) as w:
        container = {
            "name": "main",
            "image": "example.com/image:1",
            "resources": {"limits": {"example.com/gpu": "1"}, "requests": {"example.com/gpu": "1"}},
        }
        made = await w.pod("p", containers=[container], nodeName="node-a")
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": made.metadata.uid}
        await w.claim(
            "p-extended-resources-abcde",
            ownerReferences=[owner | {"controller": True}],
            annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
        )
        mapping = {
            "containerName": "main",
            "resourceName": "example.com/gpu",
            "requestName": "container-0-request-0",
        }
        status = {
            "requestMappings": [mapping],
            "resourceClaimName": "p-extended-resources-abcde",
        }
        await w.patch(
            POD_VALUES, "p", {"status": {"extendedResourceClaimStatus": status}}, "status"
        )
        await w.allocate("p-extended-resources-abcde", made)
        await w.finish("p")
        await w.until_gone("p-extended-resources-abcde")


async def test_many_pods_end_at_once(tmp_path: Path) -> None:
    """All claims of many pods go, also when some of the pods are removed under way."""
    async with world(tmp_path, ClaimController) as w:
        await w.template()
        for index in range(120):
            made = await bound(w, f"p{index}", from_template("x"))
            (name,) = (await w.generated(f"p{index}")).values()
            await w.allocate(name or "", made, device=f"gpu-{index}")
        for index in range(120):
            if index % 3:
                await w.finish(f"p{index}")
            else:
                await w.remove(POD_VALUES, f"p{index}")
        await w.until_claims(lambda claims: claims == ())


async def test_the_whole_life_of_a_claim(tmp_path: Path) -> None:
    """Pending, allocated, shared, given back, allocated again: spec 2.3."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c")
        one = await bound(w, "p1", named("x", "c"))
        await w.allocate("c", one)
        await bound(w, "p2", named("x", "c"))
        await w.until_claim("c", lambda claim: len(claim.status.reserved_for) == 2)
        await w.finish("p1")
        await w.until_claim("c", lambda claim: len(claim.status.reserved_for) == 1)
        await w.remove(POD_VALUES, "p2")
        await w.until_claim("c", is_free)
        three = await bound(w, "p3", named("x", "c"))
        await w.allocate("c", three, device="gpu-7")
        claim = await w.client.get(CLAIM_VALUES, "c", NAMESPACE)
        assert claim["status"]["reservedFor"][0]["name"] == "p3"
