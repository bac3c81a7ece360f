"""What is to be written for a pod that has found a node: its claims with their devices, and what its status says of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

import msgspec

from drayman.allocator import ClaimPlan, Plan
from drayman.api.claim_generation import POD_CLAIM_NAME, SUFFIX_ALPHABET, SUFFIX_LENGTH
from drayman.api.core import (
    NodeAllocatableResourceClaimStatus,
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
)
from drayman.api.pods import containers_of, entries_of, statuses_with
from drayman.api.quantity import Quantity
from drayman.api.resource import ResourceClaim
from drayman.api.times import timestamp_at
from drayman.inventory.ledger import holder_of
from drayman.placement.claims import is_reserved_for, readiness
from drayman.placement.demand import Demand
from drayman.placement.placing import Found
from drayman.placement.state import ClusterState
from drayman.scheduler.decisions import Made, Placement, allocated
from drayman.scheduler.queue import Entry

_LONGEST_BASE: Final = 58


class Drafting:
    """Drafts decisions. Changes nothing."""

    def __init__(self, state: ClusterState, chance: random.Random) -> None:
        self._state = state
        self._chance = chance

    def suffix(self) -> str:
        """What makes the name of a claim one that no other has."""
        return "".join(self._chance.choices(SUFFIX_ALPHABET, k=SUFFIX_LENGTH))

    def placement(self, entry: Entry, demand: Demand, found: Found, now: float) -> Placement:
        """The decision for a pod, before it counts."""
        pod, plan = entry.pod, found.plan
        timestamp = timestamp_at(now)
        group = self._state.groups.of(pod)
        planned: Sequence[ClaimPlan] = plan.claims if plan is not None else ()
        served = [
            (item.claim, allocated(item.claim, item.allocation, pod, timestamp, group))
            for item in planned[: len(demand.open)]
        ]
        changed = [claim for _, claim in served if claim.metadata.uid]
        made = [Made(claim, holder_of(draft)) for draft, claim in served if not draft.metadata.uid]
        changed += [
            allocated(claim, None, pod, timestamp, group)
            for claim in demand.held
            # One that this round reserves for the pod's group must be written before the pod is bound, too.
            if not is_reserved_for(claim, pod) or self._state.is_under_way(claim)
        ]
        placement = Placement(
            entry, demand.needs, found.node.facts.name, tuple(changed), demand.held
        )
        placement.generated = _generated(pod, made)
        if len(planned) > len(demand.open) and found.wanted.extended is not None:
            claim = self._extended(planned[-1], pod, timestamp)
            made.append(Made(claim, holder_of(planned[-1].claim)))
            placement.extended_status = PodExtendedResourceClaimStatus(
                request_mappings=found.wanted.extended.mappings,
                resource_claim_name=claim.metadata.name,
            )
        placement.made = tuple(made)
        self._add_mapped_resources(placement, plan)
        placement.waits = any(
            not readiness(claim).is_ready
            for claim in (*changed, *demand.held, *(item.claim for item in made))
        )
        return placement

    def _extended(self, planned: ClaimPlan, pod: Pod, timestamp: str) -> ResourceClaim:
        """The claim for extended resources, as it is to be created: allocated, and with a name of its own."""
        claim = allocated(planned.claim, planned.allocation, pod, timestamp)
        base = claim.metadata.generate_name[:_LONGEST_BASE]
        metadata = msgspec.structs.replace(claim.metadata, name=f"{base}{self.suffix()}")
        return msgspec.structs.replace(claim, metadata=metadata)

    def _add_mapped_resources(self, placement: Placement, plan: Plan | None) -> None:
        if not self._state.mapped_devices or plan is None:
            return
        statuses = [
            NodeAllocatableResourceClaimStatus(
                resource_claim_name=item.claim.metadata.name,
                containers=_users(placement.pod, item.claim.metadata.name),
                resources={name: Quantity(amount) for name, amount in amounts.items()},
            )
            for item in plan.claims
            if (amounts := self._state.mapped_devices.taken_by(item.allocation))
        ]
        if statuses:
            placement.mapped = tuple(sorted(statuses, key=lambda s: s.resource_claim_name))
            taken = self._state.mapped_devices.requests_of(item.allocation for item in plan.claims)
            placement.needs = placement.needs.plus(taken)


def _users(pod: Pod, claim_name: str) -> tuple[str, ...]:
    """The containers that use a claim."""
    entries = {entry.name for entry in entries_of(pod, claim_name)}
    return tuple(
        container.name
        for container in containers_of(pod)
        if any(claim.name in entries for claim in container.resources.claims)
    )


def _generated(pod: Pod, made: Sequence[Made]) -> tuple[PodResourceClaimStatus, ...]:
    """The entries of the pod's status for claims from templates, with those that are made now."""
    if not made:
        return ()
    new = (item.claim.metadata for item in made)
    return statuses_with(pod, {claim.annotations[POD_CLAIM_NAME]: claim.name for claim in new})
