"""The cluster as a plan leaves it, in objects: for questions that come after the plan, such as who holds what a pod lacks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from drayman.api.claim_generation import POD_CLAIM_NAME
from drayman.api.core import Pod
from drayman.api.pods import statuses_with, unmade_entries
from drayman.api.resource import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from drayman.placement.claims import EXTENDED_CLAIM
from drayman.placement.demand import Demand
from drayman.placement.placing import Found
from drayman.placement.world import Objects, World
from drayman.simulate.plan_steps import Turn


def afterwards(world: World, turns: Iterable[Turn]) -> World:
    """The world with the pods of these turns, which have been decided about, and with their claims."""
    pods: list[Pod] = []
    claims: dict[tuple[str, str], ResourceClaim] = {}
    for turn in turns:
        pod = turn.pod
        if turn.demand is not None:
            found = list(_claims(pod, turn.demand, turn.found, claims))
            claims.update(((c.metadata.namespace, c.metadata.name), c) for c in found)
            pod = _using(pod, found)
        if turn.found is not None:
            pod = replace(pod, spec=replace(pod.spec, node_name=turn.found.node.facts.name))
        pods.append(pod)
    return world.with_objects(
        world.objects.joined(Objects(pods=tuple(pods), claims=tuple(claims.values())))
    )


def _claims(
    pod: Pod,
    demand: Demand,
    found: Found | None,
    known: dict[tuple[str, str], ResourceClaim],
) -> Iterator[ResourceClaim]:
    """The claims of a pod as they are then. Of one that several pods use, `known` has what the others made of it."""
    given: dict[str, AllocationResult] = {}
    planned = demand.claims
    if found is not None and found.plan is not None:
        given = {item.claim.metadata.name: item.allocation for item in found.plan.claims}
        ours = {claim.metadata.name for claim in demand.claims}
        added = (i.claim for i in found.plan.claims if i.claim.metadata.name not in ours)
        planned = (*planned, *added)
    for claim in planned:
        metadata = claim.metadata
        claim = known.get((metadata.namespace, metadata.name), claim)
        status = claim.status
        if metadata.name in given:
            status = replace(status, allocation=given[metadata.name])
        if found is not None:
            user = ResourceClaimConsumerReference(
                resource="pods", name=pod.metadata.name, uid=pod.metadata.uid
            )
            status = replace(status, reserved_for=(*status.reserved_for, user))
        uid = metadata.uid or f"{pod.metadata.uid} {metadata.name}"
        yield replace(claim, metadata=replace(claim.metadata, uid=uid), status=status)


def _using(pod: Pod, claims: Iterable[ResourceClaim]) -> Pod:
    """The pod with what its status says about claims that were made for it."""
    unmade = {entry.name for entry in unmade_entries(pod)}
    made = {
        claim.metadata.annotations[POD_CLAIM_NAME]: claim.metadata.name
        for claim in claims
        if EXTENDED_CLAIM not in claim.metadata.annotations
        and claim.metadata.annotations.get(POD_CLAIM_NAME) in unmade
    }
    if not made:
        return pod
    statuses = statuses_with(pod, made)
    return replace(pod, status=replace(pod.status, resource_claim_statuses=statuses))
