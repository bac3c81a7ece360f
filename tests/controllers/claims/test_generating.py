"""Claims are generated from templates: spec/dra.md 2.2, "Generating claims", row by row."""

from __future__ import annotations

import asyncio
import random
import re
from pathlib import Path

import msgspec
import pytest

from controllers.world import (
    CLAIM_VALUES,
    NAMESPACE,
    PLACES,
    POD_VALUES,
    claim_spec,
    eventually,
    from_template,
    named,
    pod,
    stays,
    world,
)
from drayman.api.claim_generation import SUFFIX_ALPHABET, SUFFIX_LENGTH, generated_base
from drayman.apiserver.protocol.limits import MOST_OBJECT_BYTES
from drayman.cluster import Client, Informers
from drayman.cluster.options import WriteOptions
from drayman.cluster.resources import PODS
from drayman.controllers.claims.controller import ClaimController

ANNOTATION = "resource.kubernetes.io/pod-claim-name"


@pytest.mark.parametrize("place", list(PLACES))
async def test_a_claim_is_made_for_each_entry_from_a_template(place: str, tmp_path: Path) -> None:
    """Name, owner, labels, annotations and spec of a generated claim, and its name in the pod's status."""
    async with world(tmp_path, ClaimController, place=place) as w:
        await w.template("t", labels={"team": "a"}, annotations={"note": "b"})
        made = await w.pod("p", from_template("x"), from_template("y"))
        names = await w.generated("p")
        assert set(names) == {"x", "y"}
        claim = await w.until_claim(names["x"] or "", lambda found: True)
        assert re.fullmatch("p-x-[bcdfghjklmnpqrstvwxz2456789]{5}", claim.metadata.name)
        assert claim.metadata.generate_name == "p-x-"
        assert claim.metadata.labels == {"team": "a"}
        assert claim.metadata.annotations == {"note": "b", ANNOTATION: "x"}
        (owner,) = claim.metadata.owner_references
        assert (owner.api_version, owner.kind, owner.name) == ("v1", "Pod", "p")
        assert (owner.uid, owner.controller) == (made.metadata.uid, True)
        assert owner.block_owner_deletion is None
        (request,) = claim.spec.devices.requests
        assert request.exactly is not None
        assert request.exactly.device_class_name == "gpu"
        assert len(await w.claims()) == 2


async def test_the_status_entries_belong_to_the_controllers_manager(tmp_path: Path) -> None:
    """The pod says who wrote its entries, by the name that Kubernetes uses."""
    async with world(tmp_path, ClaimController) as w:
        await w.template()
        await w.pod("p", from_template("x"))
        await w.generated("p")
        found = await w.client.get(POD_VALUES, "p", NAMESPACE)
        managers = {
            entry["manager"]: entry["fieldsV1"] for entry in found["metadata"]["managedFields"]
        }
        assert "f:resourceClaimStatuses" in managers["ResourceClaimController"]["f:status"]


@pytest.mark.parametrize(
    ("pod", "entry", "base"),
    [
        ("p", "gpu", "p-gpu-"),
        ("p" * 48, "e" * 7, "p" * 48 + "-" + "e" * 7 + "-"),
        ("p" * 49, "e" * 7, "p" * 48 + "-" + "e" * 6),
        ("p" * 200, "e" * 20, "p" * 51 + "-" + "e" * 5),
        ("p" * 200, "e", "p" * 56 + "-"),
    ],
    ids=["short", "as long as may be", "one too long", "both long", "long pod"],
)
def test_names_are_cut_in_proportion(pod: str, entry: str, base: str) -> None:
    """A base of more than 57 characters is cut from both parts and loses its last hyphen."""
    assert generated_base(pod, entry) == base


async def test_a_named_claim_is_nobodys_to_make(tmp_path: Path) -> None:
    """An entry that names a claim gets neither a claim nor a status entry."""
    async with world(tmp_path, ClaimController) as w:
        await w.template()
        await w.pod("p", named("x", "c"), from_template("y"))
        assert set(await w.generated("p")) == {"y"}
        assert len(await w.claims()) == 1


async def test_no_claims_for_a_pod_that_is_being_deleted(tmp_path: Path) -> None:
    """A pod on its way out gets no claims even if the template comes."""
    async with world(tmp_path, ClaimController) as w:
        await w.create(
            POD_VALUES,
            {
                "metadata": {"name": "p", "finalizers": ["example.com/keep"]},
                "spec": {
                    "containers": [{"name": "main", "image": "example.com/image:1"}],
                    "resourceClaims": [from_template("x")],
                },
            },
        )
        await w.remove(POD_VALUES, "p", 30)
        await w.template()
        await stays(w.claims, lambda claims: claims == ())


async def test_a_missing_template_is_reported_and_waited_for(tmp_path: Path) -> None:
    """An event says which template is missing; when it comes, the claim is made."""
    async with world(tmp_path, ClaimController) as w:
        await w.pod("p", from_template("x"))
        await w.until_event("FailedResourceClaimCreation", 'resource claim template "t"')
        (event, *_) = await w.events()
        assert event[0] == "Warning"
        assert event[2].startswith("PodResourceClaim x: ")
        await w.template()
        assert set(await w.generated("p")) == {"x"}


async def test_entries_before_the_one_that_fails_are_served(tmp_path: Path) -> None:
    """As in Kubernetes: their claims exist, the pod's status has no entry until all can be served."""
    async with world(tmp_path, ClaimController) as w:
        await w.template("t1")
        await w.pod(
            "p", from_template("x", "t1"), from_template("y", "t2"), from_template("z", "t1")
        )
        (first,) = await w.until_claims(lambda claims: len(claims) == 1)
        assert first.metadata.annotations[ANNOTATION] == "x"
        await stays(w.claims, lambda claims: len(claims) == 1)
        pod = await w.client.get(PODS, "p", NAMESPACE)
        assert pod.status.resource_claim_statuses == ()
        await w.template("t2")
        names = await w.generated("p")
        assert set(names) == {"x", "y", "z"}
        assert names["x"] == first.metadata.name
        assert len(await w.claims()) == 3


async def test_a_claim_made_before_a_crash_is_found_again(tmp_path: Path) -> None:
    """A controller that died between the claim and the pod's status leaves no second claim behind."""
    async with world(tmp_path, ClaimController) as w:
        await w.stop()
        await w.template()
        made = await w.pod("p", from_template("x"), from_template("y"))
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "controller": True}
        await w.create(
            CLAIM_VALUES,
            {
                "metadata": {
                    "name": "p-x-before",
                    "annotations": {ANNOTATION: "x"},
                    "ownerReferences": [owner | {"uid": made.metadata.uid}],
                },
                "spec": claim_spec(),
            },
        )
        await w.start()
        names = await w.generated("p")
        assert names["x"] == "p-x-before"
        assert len(await w.claims()) == 2


async def test_a_claim_that_was_deleted_while_its_pod_waits_is_made_again(tmp_path: Path) -> None:
    """Kubernetes 1.36.4 leaves such a pod waiting for ever; here the status names the new claim at once."""
    async with world(tmp_path, ClaimController) as w:
        await w.template()
        await w.pod("p", from_template("x"), from_template("y"))
        before = await w.generated("p")
        await w.remove(CLAIM_VALUES, before["x"] or "")
        found = await w.until_pod(
            "p",
            lambda pod: (
                before["x"]
                not in {status.resource_claim_name for status in pod.status.resource_claim_statuses}
            ),
        )
        after = {s.name: s.resource_claim_name for s in found.status.resource_claim_statuses}
        assert after["y"] == before["y"], "the other entry is kept"
        await w.until_claim(after["x"] or "", lambda claim: True)


async def test_a_claim_of_somebody_else_under_the_recorded_name_is_not_used(tmp_path: Path) -> None:
    """A claim that the pod does not own does not serve it, whatever its name."""
    async with world(tmp_path, ClaimController) as w:
        await w.template()
        await w.pod("p", from_template("x"))
        (before,) = (await w.generated("p")).values()
        await w.stop()
        await w.remove(CLAIM_VALUES, before or "")
        await w.claim(before or "")
        await w.start()
        await w.until_pod(
            "p",
            lambda pod: pod.status.resource_claim_statuses[0].resource_claim_name != before,
        )


async def test_a_pod_of_the_same_name_gets_claims_of_its_own(tmp_path: Path) -> None:
    """A pod that was deleted and made again is another pod."""
    async with world(tmp_path, ClaimController) as w:
        await w.template()
        await w.pod("p", from_template("x"))
        (before,) = (await w.generated("p")).values()
        await w.remove(POD_VALUES, "p")
        again = await w.pod("p", from_template("x"))
        (after,) = (await w.generated("p")).values()
        assert after != before
        claim = await w.until_claim(after or "", lambda claim: True)
        assert claim.metadata.owner_references[0].uid == again.metadata.uid
        await w.until_gone(before or "")


async def test_a_finished_pod_gets_no_new_claim(tmp_path: Path) -> None:
    """The claim of a finished pod goes and does not come back."""
    async with world(tmp_path, ClaimController) as w:
        await w.template()
        await w.pod("p", from_template("x"))
        (name,) = (await w.generated("p")).values()
        await w.finish("p")
        await w.until_gone(name or "")
        await stays(w.claims, lambda claims: claims == ())


async def test_a_gated_pod_gets_its_claims(tmp_path: Path) -> None:
    """Claims are made before scheduling may begin."""
    async with world(tmp_path, ClaimController) as w:
        await w.template()
        await w.pod("p", from_template("x"), schedulingGates=[{"name": "wait"}])
        assert set(await w.generated("p")) == {"x"}


async def test_many_pods_at_once(tmp_path: Path) -> None:
    """Each of many pods gets one claim, and each claim is named by its pod."""
    async with world(tmp_path, ClaimController) as w:
        await w.template()
        for index in range(250):
            await w.create(POD_VALUES, {"metadata": {"name": f"p{index}"}, "spec": _spec()})
        for index in range(250):
            await w.generated(f"p{index}")
        claims = await w.claims()
        pods = (await w.client.list(PODS, NAMESPACE)).items
        assert len(claims) == 250
        assert {claim.metadata.name for claim in claims} == {
            pod.status.resource_claim_statuses[0].resource_claim_name for pod in pods
        }


def _spec() -> dict[str, object]:
    return {
        "containers": [{"name": "main", "image": "example.com/image:1"}],
        "resourceClaims": [from_template("x")],
    }


async def test_one_that_is_refused_does_not_hold_up_the_others(tmp_path: Path) -> None:
    """A name that is taken makes the server refuse all that is written together: the others are served, then this one anew."""
    drawn = "".join(random.Random(7).choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))
    async with world(
        tmp_path,
        lambda client, informers: ClaimController(client, informers, rng=random.Random(7)),
    ) as w:
        await w.stop()
        await w.template()
        await w.claim(f"p1-x-{drawn}")
        for name in ("p1", "p2", "p3"):
            await w.pod(name, from_template("x"))
        await w.start()
        found = [await w.generated(name) for name in ("p1", "p2", "p3")]
        assert found[0]["x"] != f"p1-x-{drawn}"
        assert len(await w.claims()) == 4


async def test_claims_that_make_their_pod_too_large_are_not_tried_again(tmp_path: Path) -> None:
    """The pod's status has no room for their names, and will not have any until the pod changes."""
    made: list[ClaimController] = []

    def controller(client: Client, informers: Informers) -> ClaimController:
        made.append(ClaimController(client, informers))
        return made[0]

    async with world(tmp_path, controller) as at:
        await at.template()
        entries = [from_template(f"c{number}") for number in range(250)]
        body = pod("p", *entries)
        dry = await at.client.create(
            POD_VALUES, body, NAMESPACE, options=WriteOptions(dry_run=True)
        )
        room = MOST_OBJECT_BYTES - len(msgspec.json.encode(dry)) - 10_000
        body["spec"]["containers"][0]["args"] = ["x" * room]
        await at.create(POD_VALUES, body)
        await at.until_event("FailedResourceClaimCreation", "create ResourceClaim")
        queue = made[0]._queue

        async def timers() -> list[float]:
            now = asyncio.get_running_loop().time()
            return [timer.when() - now for timer in queue._timers.values()]

        (left,) = await eventually(timers, lambda found: bool(found) and not queue._taken)
        assert left > 60
        assert await at.claims() == ()
