"""Claims that the pods of a group share: spec/dra.md 2.2, "Workload variant"."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from controllers.world import (
    CLAIM_VALUES,
    NAMESPACE,
    PLACES,
    POD_VALUES,
    World,
    eventually,
    from_template,
    named,
    stays,
    world,
)
from drayman.api.pod_groups import PodGroup
from drayman.api.struct import Json
from drayman.cluster.resources import POD_GROUPS, JsonObject
from drayman.controllers.claims.controller import ClaimController

ANNOTATION = "resource.kubernetes.io/pod-claim-name"
GROUP_VALUES = POD_GROUPS.as_values()
IN_GROUP: dict[str, Json] = {"schedulingGroup": {"podGroupName": "g"}}


async def make_group(w: World, *entries: JsonObject, name: str = "g") -> PodGroup:
    spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": list(entries)}
    await w.create(GROUP_VALUES, {"metadata": {"name": name}, "spec": spec})
    return await w.client.get(POD_GROUPS, name, NAMESPACE)


async def remove_group(w: World) -> None:
    """Deletes the group and what protects it, as nobody else does here."""
    await w.remove(GROUP_VALUES, "g")
    await w.patch(GROUP_VALUES, "g", {"metadata": {"finalizers": None}})


async def claims_of_group(w: World, count: int = 1) -> dict[str, str | None]:
    """The claims of the group by entry, once its status has so many."""
    group = await eventually(
        lambda: w.client.get(POD_GROUPS, "g", NAMESPACE),
        lambda group: len(group.status.resource_claim_statuses) == count,
    )
    return {s.name: s.resource_claim_name for s in group.status.resource_claim_statuses}


async def reserve(w: World, claim: str, group: PodGroup) -> None:
    """What a scheduler writes for a claim that a group shares."""
    await w.allocate(claim, device=f"of-{claim}")
    consumer = {
        "apiGroup": "scheduling.k8s.io",
        "resource": "podgroups",
        "name": group.metadata.name,
        "uid": group.metadata.uid,
    }
    await w.patch(CLAIM_VALUES, claim, {"status": {"reservedFor": [consumer]}}, "status")


@pytest.mark.parametrize("place", list(PLACES))
async def test_a_claim_is_made_for_each_entry_of_a_group(place: str, tmp_path: Path) -> None:
    """Name, owner, labels and annotations of a group's claim, and its name in the group's status."""
    async with world(tmp_path, ClaimController, place=place) as w:
        await w.template("t", labels={"team": "a"}, annotations={"note": "b"})
        group = await make_group(w, from_template("x"), from_template("y"), named("z", "c"))
        names = await claims_of_group(w, 2)
        assert set(names) == {"x", "y"}
        claim = await w.until_claim(names["x"] or "", lambda found: True)
        assert re.fullmatch("g-x-[bcdfghjklmnpqrstvwxz2456789]{5}", claim.metadata.name)
        assert claim.metadata.generate_name == "g-x-"
        assert claim.metadata.labels == {"team": "a"}
        assert claim.metadata.annotations == {"note": "b", ANNOTATION: "x"}
        (owner,) = claim.metadata.owner_references
        assert (owner.api_version, owner.kind) == ("scheduling.k8s.io/v1alpha2", "PodGroup")
        assert (owner.name, owner.uid) == ("g", group.metadata.uid)
        assert owner.controller is True
        assert owner.block_owner_deletion is None
        assert len(await w.claims()) == 2


@pytest.mark.parametrize("place", list(PLACES))
async def test_pods_of_a_group_share_its_claim(place: str, tmp_path: Path) -> None:
    """Where an entry of a pod equals one of its group it stands for the group's claim, and the pod's other entries stay its own."""
    async with world(tmp_path, ClaimController, place=place) as w:
        await w.template()
        for name in ("p", "q"):
            await w.pod(name, from_template("s"), from_template("own"), **IN_GROUP)
        await make_group(w, from_template("s"))
        p, q = await w.generated("p"), await w.generated("q")
        assert p["s"] == q["s"] == (await claims_of_group(w))["s"]
        assert p["own"] != q["own"]
        await stays(w.claims, lambda claims: len(claims) == 3)


UNEQUAL = {
    "another name": (from_template("x"), from_template("y")),
    "another template": (from_template("x"), from_template("x", "other")),
    "a claim there, a template here": (named("x", "c"), from_template("x")),
}


@pytest.mark.parametrize("case", UNEQUAL)
async def test_entries_that_are_not_equal_are_the_pods_own(case: str, tmp_path: Path) -> None:
    """Name and source of an entry both decide whether it is the group's."""
    of_group, of_pod = UNEQUAL[case]
    async with world(tmp_path, ClaimController) as w:
        await w.template()
        await w.template("other")
        await make_group(w, of_group)
        pod = await w.pod("p", of_pod, **IN_GROUP)
        (name,) = (await w.generated("p")).values()
        claim = await w.until_claim(name or "", lambda found: True)
        assert [owner.uid for owner in claim.metadata.owner_references] == [pod.metadata.uid]


async def test_a_pod_gets_its_own_claims_while_it_waits_for_that_of_the_group(
    tmp_path: Path,
) -> None:
    """The entry for the group's claim follows when the group has one, and the other stays."""
    async with world(tmp_path, ClaimController) as w:
        await w.template()
        await make_group(w, from_template("s", "later"))
        await w.pod("p", from_template("s", "later"), from_template("own"), **IN_GROUP)
        first = await w.until_pod("p", lambda pod: bool(pod.status.resource_claim_statuses))
        assert [status.name for status in first.status.resource_claim_statuses] == ["own"]
        await w.until_event("FailedResourceClaimCreation", "PodGroupResourceClaim s: ")
        await w.template("later")
        assert await w.generated("p") == {
            "own": first.status.resource_claim_statuses[0].resource_claim_name,
            **await claims_of_group(w),
        }


async def test_a_pod_whose_group_is_missing_waits(tmp_path: Path) -> None:
    """Nobody can say which of its entries are the group's, so it gets none of them."""
    async with world(tmp_path, ClaimController) as w:
        await w.template()
        await w.pod("p", from_template("x"), **IN_GROUP)
        await stays(w.claims, lambda claims: claims == ())
        await make_group(w)
        assert set(await w.generated("p")) == {"x"}


async def test_a_claim_of_a_group_that_is_deleted_is_made_again(tmp_path: Path) -> None:
    """Group and pod name the new claim."""
    async with world(tmp_path, ClaimController) as w:
        await w.template()
        await make_group(w, from_template("s"))
        await w.pod("p", from_template("s"), **IN_GROUP)
        (old,) = (await w.generated("p")).values()
        await w.remove(CLAIM_VALUES, old or "")
        pod = await w.until_pod(
            "p", lambda pod: pod.status.resource_claim_statuses[0].resource_claim_name != old
        )
        (status,) = pod.status.resource_claim_statuses
        assert await claims_of_group(w) == {"s": status.resource_claim_name}


async def test_a_pod_that_bypassed_the_scheduler_has_the_claim_reserved_for_its_group(
    tmp_path: Path,
) -> None:
    """The group becomes a consumer once, for all its pods; of the pod's own claim the pod does."""
    async with world(tmp_path, ClaimController) as w:
        for name in ("shared", "own"):
            await w.claim(name)
            await w.allocate(name, device=f"of-{name}")
        group = await make_group(w, named("s", "shared"))
        entries = (named("s", "shared"), named("o", "own"))
        pods = [await w.pod(name, *entries, nodeName="node-a", **IN_GROUP) for name in "pq"]
        own = await w.until_claim("own", lambda claim: len(claim.status.reserved_for) == 2)
        assert {user.uid for user in own.status.reserved_for} == {pod.metadata.uid for pod in pods}
        shared = await w.until_claim("shared", lambda claim: bool(claim.status.reserved_for))
        (user,) = shared.status.reserved_for
        assert (user.api_group, user.resource) == ("scheduling.k8s.io", "podgroups")
        assert (user.name, user.uid) == ("g", group.metadata.uid)


async def test_a_claim_stays_with_its_group_when_the_pods_are_done(tmp_path: Path) -> None:
    """More pods of the group may come."""
    async with world(tmp_path, ClaimController) as w:
        await w.template()
        group = await make_group(w, from_template("s"))
        await w.pod("p", from_template("s"), **IN_GROUP)
        (name,) = (await w.generated("p")).values()
        assert name is not None
        await reserve(w, name, group)
        await w.remove(POD_VALUES, "p")
        await stays(
            lambda: w.get_claim(name), lambda claim: claim is not None and claim.status.reserved_for
        )


@pytest.mark.parametrize("place", list(PLACES))
async def test_the_claims_of_a_group_that_is_gone_are_released(place: str, tmp_path: Path) -> None:
    """The one that was made for it goes with it, the one that it was given is free again."""
    async with world(tmp_path, ClaimController, place=place) as w:
        await w.template()
        await w.claim("given")
        group = await make_group(w, from_template("s"), named("n", "given"))
        name = (await claims_of_group(w))["s"]
        assert name is not None
        for claim in (name, "given"):
            await reserve(w, claim, group)
        await remove_group(w)
        await w.until_gone(name)
        await w.until_claim(
            "given",
            lambda claim: claim.status.allocation is None and not claim.metadata.finalizers,
        )


async def test_the_reservation_of_a_group_that_was_replaced_is_dropped(tmp_path: Path) -> None:
    """A group of the same name is another group."""
    async with world(tmp_path, ClaimController) as w:
        await w.claim("c")
        old = await make_group(w)
        await remove_group(w)
        await make_group(w)
        await reserve(w, "c", old)
        await w.until_claim("c", lambda claim: not claim.status.reserved_for)
