"""spec/dra.md 2.2, generating: claims that are made from templates for pods."""

from __future__ import annotations

from controllers.world import CLAIM_VALUES, POD_VALUES, stays
from drayman.cluster.resources import JsonObject
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import asks, from_template, wants

ENTRY = "resource.kubernetes.io/pod-claim-name"


async def test_each_template_entry_gets_a_claim(cluster: Cluster) -> None:
    """Every entry that names a template has a claim of its own, recorded in the pod's status under the entry's name."""
    async with cluster() as stage:
        await stage.make_template("t")
        await stage.start_pod("p", from_template(name="a"), from_template(name="b"))
        made = await stage.generated("p")
        assert set(made) == {"a", "b"}
        assert {claim.metadata.name for claim in await stage.claims()} == set(made.values())


async def test_a_claim_is_a_copy_of_its_template(cluster: Cluster) -> None:
    """Spec, labels and annotations come from the template; owner and entry name say for whom the claim is."""
    async with cluster() as stage:
        await stage.make_template("t", wants(count=2), labels={"l": "1"}, annotations={"a": "2"})
        pod = await stage.start_pod("p", from_template())
        claim = await stage.claim_of("p")
        assert claim.metadata.labels == {"l": "1"}
        assert claim.metadata.annotations == {"a": "2", ENTRY: "gpu"}
        (owner,) = claim.metadata.owner_references
        assert (owner.api_version, owner.kind, owner.uid) == ("v1", "Pod", pod.metadata.uid)
        assert owner.controller is True
        assert owner.block_owner_deletion is None
        (request,) = claim.spec.devices.requests
        assert request.exactly is not None
        assert request.exactly.count == 2


async def test_names_tell_pod_and_entry(cluster: Cluster) -> None:
    """The name of a claim starts with those of pod and entry."""
    async with cluster() as stage:
        await stage.make_template("t")
        await stage.start_pod("p", from_template())
        claim = await stage.claim_of("p")
        assert claim.metadata.generate_name == "p-gpu-"
        assert claim.metadata.name.startswith("p-gpu-")


async def test_long_names_are_cut_in_proportion(cluster: Cluster) -> None:
    """Pod and entry names that are too long together each lose their share, and the hyphen at the end is left out."""
    async with cluster() as stage:
        await stage.make_template("t")
        pod, entry = "p" * 60, "e" * 30
        await stage.start_pod(pod, from_template(name=entry))
        claim = await stage.claim_of(pod)
        length = len(f"{pod}-{entry}-")
        wanted = f"{'p' * (60 * 57 // length)}-{'e' * (30 * 57 // length)}"
        assert claim.metadata.generate_name == wanted
        assert len(claim.metadata.name) <= 63


async def test_a_claim_that_was_made_before_is_taken_up(cluster: Cluster) -> None:
    """A claim that belongs to the pod and carries the entry's name is recorded, not made again."""
    async with cluster() as stage:
        pod = await stage.start_pod("p", from_template("none-such"))
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": pod.metadata.uid}
        metadata: JsonObject = {
            "name": "left-over",
            "annotations": {ENTRY: "gpu"},
            "ownerReferences": [{**owner, "controller": True}],
        }
        await stage.create(CLAIM_VALUES, {"metadata": metadata, "spec": asks()})
        assert await stage.generated("p") == {"gpu": "left-over"}
        assert len(await stage.claims()) == 1


async def test_a_missing_template_is_reported_and_waited_for(cluster: Cluster) -> None:
    """Without its template the pod gets a warning; once the template is there the claim is made."""
    async with cluster() as stage:
        await stage.start_pod("p", from_template())
        event = await stage.event("p", "FailedResourceClaimCreation")
        assert event["type"] == "Warning"
        assert "gpu" in event["note"]
        await stage.make_template("t")
        assert await stage.claim_of("p")


async def test_a_lost_claim_is_made_again(cluster: Cluster) -> None:
    """A generated claim that somebody deletes while its pod waits is replaced at once, and the pod runs."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a")
        await stage.make_template("t")
        await stage.start_pod("p", from_template())
        first = await stage.claim_of("p")
        await stage.delete(CLAIM_VALUES, first.metadata.name)
        await stage.until_pod(
            "p",
            lambda pod: (
                [s.resource_claim_name for s in pod.status.resource_claim_statuses]
                != [first.metadata.name]
            ),
        )
        await stage.slice("node-a", "gpu-0", nodeName="node-a")
        assert await stage.bound("p") == "node-a"


async def test_a_pod_that_is_going_gets_no_claims(cluster: Cluster) -> None:
    """Nothing is made for a pod with a deletion time."""
    async with cluster() as stage:
        await stage.start_pod("p", from_template())
        await stage.patch(POD_VALUES, "p", {"metadata": {"finalizers": ["example.com/keep"]}})
        await stage.remove(POD_VALUES, "p", grace=30)
        await stage.heard()
        await stage.make_template("t")
        await stage.heard()
        await stays(stage.claims, lambda claims: not claims)
