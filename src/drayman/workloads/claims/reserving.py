"""Reservations for pods that reached their node without a scheduler.

Nothing else reserves claims for a pod whose nodeName was set by hand. A claim that the pod's group shares is reserved for the group. A
finished pod never gets a reservation (1.36.4 gives it one, takes it away and gives it again for as long as the claim is allocated), nor
does a claim that is being deleted, which the API refuses.
"""

from __future__ import annotations

from typing import NamedTuple

from drayman.api.claim_generation import is_made_for
from drayman.api.core import Pod
from drayman.api.pods import entry_claims, is_active
from drayman.api.resource import ResourceClaim, ResourceClaimConsumerReference
from drayman.placement.claims import MOST_CONSUMERS, consumer_of, is_reserved_for
from drayman.workloads.claims.generating import Known, group_of


class Reservation(NamedTuple):
    """A claim, and what is to be added to its consumers."""

    claim: ResourceClaim
    consumer: ResourceClaimConsumerReference


def unreserved(pod: Pod, known: Known) -> tuple[Reservation, ...]:
    """The allocated claims of a pod on a node that are not reserved for it."""
    if not pod.spec.node_name or not is_active(pod):
        return ()
    group = group_of(pod, known)
    if group is None and pod.spec.scheduling_group is not None:
        return ()  # only the group can say which of them it shares
    found: dict[str, Reservation] = {}
    for entry, name in entry_claims(pod):
        claim = known.claim(pod.metadata.namespace, name) if name else None
        if claim is None or (
            entry.resource_claim_template_name is not None and not is_made_for(claim, pod)
        ):
            continue
        if _can_be_reserved(claim) and not is_reserved_for(claim, pod):
            is_shared = group is not None and entry in group.spec.resource_claims
            user = group if group is not None and is_shared else pod
            found[claim.metadata.name] = Reservation(claim, consumer_of(user))
    return tuple(found.values())


def _can_be_reserved(claim: ResourceClaim) -> bool:
    return (
        claim.status.allocation is not None
        and claim.metadata.deletion_timestamp is None
        and len(claim.status.reserved_for) < MOST_CONSUMERS
    )
