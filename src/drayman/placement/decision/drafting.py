"""What is to be written for a pod that has found a node: its claims with their devices, and what its status says about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from drayman.allocator import ClaimPlan
from drayman.api.claim_generation import POD_CLAIM_NAME
from drayman.api.core import (
    NodeAllocatableResourceClaimStatus,
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
)
from drayman.api.pod_groups import PodGroup
from drayman.api.pods import containers_of, entries_of, statuses_with
from drayman.api.quantity import Quantity
from drayman.api.resource import AllocationResult, ResourceClaim, ResourceClaimStatus
from drayman.api.times import timestamp_at
from drayman.inventory.ledger import holder_of
from drayman.placement.alignment import noted
from drayman.placement.claims import FINALIZER, consumer_of, is_reserved_for, readiness, shares
from drayman.placement.decision.gathering import Suffix
from drayman.placement.decision.placements import Made, Placement
from drayman.placement.demand import Demand
from drayman.placement.mapped_resources import MappedDevices
from drayman.placement.placing import Found
from drayman.placement.state import ClusterState

_LONGEST_BASE: Final = 58


def drafted(
    state: ClusterState, demand: Demand, found: Found, now: float, suffix: Suffix
) -> Placement:
    """The decision for a pod, before it counts."""
    pod, needs = demand.pod, demand.needs
    timestamp = timestamp_at(now)
    group = state.gangs.pod_group_of(pod)
    planned: Sequence[ClaimPlan] = found.plan.claims if found.plan is not None else ()
    if found.plan is not None:
        planned = noted(planned, found.plan.levels)
    served = [
        (item.claim, _allocated(item.claim, item.allocation, pod, timestamp, group))
        for item in planned[: len(demand.open)]
    ]
    changed = [claim for _, claim in served if claim.metadata.uid]
    made = [Made(claim, holder_of(draft)) for draft, claim in served if not draft.metadata.uid]
    changed += [
        _allocated(claim, None, pod, timestamp, group)
        for claim in demand.held
        # A claim that this round reserves for the pod's group must also be written before the pod is bound.
        if not is_reserved_for(claim, pod) or state.is_under_way(claim)
    ]
    generated = statuses_of_made(pod, [item.claim for item in made])
    extended_status = None
    if len(planned) > len(demand.open) and found.wanted.extended is not None:
        claim = _extended(planned[-1], pod, timestamp, suffix)
        made.append(Made(claim, holder_of(planned[-1].claim)))
        extended_status = PodExtendedResourceClaimStatus(
            request_mappings=found.wanted.extended.mappings,
            resource_claim_name=claim.metadata.name,
        )
    mapped = _mapped(state.mapped_devices, pod, planned) if state.mapped_devices else ()
    if mapped:
        needs = needs.plus(state.mapped_devices.requests_of(item.allocation for item in planned))
    return Placement(
        pod,
        needs,
        found.node.facts.name,
        tuple(changed),
        demand.held,
        tuple(made),
        generated,
        extended_status,
        mapped,
        waits=any(
            not readiness(claim).is_ready
            for claim in (*changed, *demand.held, *(item.claim for item in made))
        ),
    )


def _allocated(
    claim: ResourceClaim,
    allocation: AllocationResult | None,
    pod: Pod,
    timestamp: str,
    group: PodGroup | None = None,
) -> ResourceClaim:
    """The claim with devices, if it has none yet, and with the pod, or its group, among its users."""
    status = claim.status
    finalizers = claim.metadata.finalizers
    if allocation is not None:
        allocation = replace(allocation, allocation_timestamp=timestamp)
        if FINALIZER not in finalizers:
            finalizers = (*finalizers, FINALIZER)
    else:
        allocation = status.allocation
    reserved = status.reserved_for
    if not is_reserved_for(claim, pod):
        user = group if group is not None and shares(group, claim, pod) else pod
        reserved = (*reserved, consumer_of(user))
    return replace(
        claim,
        metadata=replace(claim.metadata, finalizers=finalizers),
        status=ResourceClaimStatus(
            allocation=allocation, reserved_for=reserved, devices=status.devices
        ),
    )


def _extended(planned: ClaimPlan, pod: Pod, timestamp: str, suffix: Suffix) -> ResourceClaim:
    """The claim for extended resources, as it is to be created: allocated, and with a name of its own."""
    claim = _allocated(planned.claim, planned.allocation, pod, timestamp)
    base = claim.metadata.generate_name[:_LONGEST_BASE]
    return replace(claim, metadata=replace(claim.metadata, name=f"{base}{suffix()}"))


def _mapped(
    devices: MappedDevices, pod: Pod, planned: Sequence[ClaimPlan]
) -> tuple[NodeAllocatableResourceClaimStatus, ...]:
    """What the devices take of the node's own resources, by claim."""
    statuses = [
        NodeAllocatableResourceClaimStatus(
            resource_claim_name=item.claim.metadata.name,
            containers=_users(pod, item.claim.metadata.name),
            resources={name: Quantity(amount) for name, amount in amounts.items()},
        )
        for item in planned
        if (amounts := devices.taken_by(item.allocation))
    ]
    return tuple(sorted(statuses, key=lambda status: status.resource_claim_name))


def _users(pod: Pod, claim_name: str) -> tuple[str, ...]:
    """The containers that use a claim."""
    entries = {entry.name for entry in entries_of(pod, claim_name)}
    return tuple(
        container.name
        for container in containers_of(pod)
        if any(claim.name in entries for claim in container.resources.claims)
    )


def statuses_of_made(pod: Pod, made: Sequence[ResourceClaim]) -> tuple[PodResourceClaimStatus, ...]:
    """The entries of the pod's status for claims from templates, including those that are made now; empty if none are."""
    if not made:
        return ()
    new = (claim.metadata for claim in made)
    return statuses_with(pod, {claim.annotations[POD_CLAIM_NAME]: claim.name for claim in new})
