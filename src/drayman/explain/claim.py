"""Everything about one claim: mostly what there is to say about the pod that is to use it."""

from __future__ import annotations

import msgspec

from drayman.api.core import Pod
from drayman.api.pods import is_finished, named_claims
from drayman.api.resource import ResourceClaim
from drayman.explain.alignment import held_alignments
from drayman.explain.answer import Explanation
from drayman.explain.holders import Holders
from drayman.explain.pod import explain_pod, explained
from drayman.inventory.identity import DeviceId
from drayman.inventory.ledger import holder_of
from drayman.placement.claims import only_node_of
from drayman.placement.world import World
from drayman.reasons.lost import lost_by_claim
from drayman.reasons.reason import Headline, Reason
from drayman.reasons.waiting import unready
from drayman.reasons.wording import and_list, counted


def explain_claim(world: World, claim: ResourceClaim) -> Explanation:
    """What the claim has, or why it has nothing."""
    if claim.status.allocation is not None:
        return _allocated(world, claim)
    if claim.metadata.deletion_timestamp is not None:
        text = f"Claim {claim.metadata.name} is being deleted."
        return explained(
            world, claim.kind, claim.metadata, Headline.of(Reason.CLAIM_DELETING, text)
        )
    pods = pods_using(world, claim)
    if not pods:
        text = "No pod uses the claim, and claims get devices together with the pod that uses them."
        return explained(world, claim.kind, claim.metadata, Headline.of(Reason.CLAIM_UNUSED, text))
    first = explain_pod(world, pods[0])
    headline = _of_pod(first.headline, pods)
    return msgspec.structs.replace(
        explained(world, claim.kind, claim.metadata, headline),
        parts=(first,),
        node=first.node,
        remedies=first.remedies,
        untried=first.untried,
    )


def pods_using(world: World, claim: ResourceClaim) -> list[Pod]:
    """The pods that are to use a claim and have not ended, those that wait first."""
    name, namespace = claim.metadata.name, claim.metadata.namespace
    found = [
        pod
        for pod in world.objects.pods
        if pod.metadata.namespace == namespace
        and not is_finished(pod)
        and name in named_claims(pod)
    ]
    return sorted(found, key=lambda pod: (bool(pod.spec.node_name), pod.metadata.name))


def used_claims(world: World) -> set[tuple[str, str]]:
    """Namespace and name of the claims that pods which have not ended are to use."""
    return {
        (pod.metadata.namespace, name)
        for pod in world.objects.pods
        if not is_finished(pod)
        for name in named_claims(pod)
    }


def _of_pod(headline: Headline, pods: list[Pod]) -> Headline:
    name = pods[0].metadata.name
    others = f" and {counted(len(pods) - 1, 'more pod')}" if len(pods) > 1 else ""
    verb = "waits for" if headline.reason.kind else "can get its devices with"
    return msgspec.structs.replace(
        headline, sentence=f"It {verb} pod {name}{others}: {headline.sentence}"
    )


def _allocated(world: World, claim: ResourceClaim) -> Explanation:
    devices = tuple(dict.fromkeys(map(DeviceId.of, claim.status.results)))
    names = tuple(str(device) for device in devices)
    used_by = and_list([consumer.name for consumer in claim.status.reserved_for])
    use = f"used by {used_by}" if used_by else "not used at the moment"
    has = f"The claim has {and_list(names)}, {use}"
    headline = _going(claim, has) or lost_by_claim(world, claim) or unready(claim, world.now)
    headline = headline or Headline.of(Reason.ALLOCATED, f"{has}.")
    holder = Holders(world).describe(holder_of(claim), devices)
    return msgspec.structs.replace(
        explained(world, claim.kind, claim.metadata, headline),
        devices=names,
        holders=(holder,),
        alignment=held_alignments([claim]),
        node=_node(world, claim),
    )


def _going(claim: ResourceClaim, has: str) -> Headline | None:
    """For a claim that is being deleted, but still has devices."""
    if claim.metadata.deletion_timestamp is None:
        return None
    until = "until they have ended" if claim.status.reserved_for else "until it is gone"
    return Headline.of(
        Reason.CLAIM_DELETING,
        f"Claim {claim.metadata.name} is being deleted. {has}, and keeps them {until}.",
    )


def _node(world: World, claim: ResourceClaim) -> str:
    """The only node on which the devices can be used, otherwise the node of the pods that use them, if they share one."""
    allocation = claim.status.allocation
    only = None if allocation is None else only_node_of(allocation.node_selector)
    if only is not None:
        return only
    nodes = {pod.spec.node_name for pod in pods_using(world, claim) if pod.spec.node_name}
    return nodes.pop() if len(nodes) == 1 else ""
