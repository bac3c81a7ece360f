"""Reservations for pods that reached their node without a scheduler.

Nobody else reserves for a pod whose nodeName was set by hand. A finished pod never gets a reservation (1.36.4 gives it one, takes it away
and gives it again for as long as the claim is allocated), nor does a claim that is being deleted, which the API refuses.
"""

from __future__ import annotations

from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim
from drayman.controllers.claims.generating import Known
from drayman.controllers.pod_claims import (
    MOST_CONSUMERS,
    is_done,
    is_made_for,
    is_reserved_for,
    recorded_claim,
)


def unreserved(pod: Pod, known: Known) -> tuple[ResourceClaim, ...]:
    """The allocated claims of a pod on a node that are not reserved for it."""
    if not pod.spec.node_name or pod.metadata.deletion_timestamp is not None or is_done(pod):
        return ()
    found: dict[str, ResourceClaim] = {}
    for entry in pod.spec.resource_claims:
        name = recorded_claim(pod, entry)
        claim = known.claim(pod.metadata.namespace, name) if name else None
        if claim is None or (
            entry.resource_claim_template_name is not None and not is_made_for(claim, pod)
        ):
            continue
        if _can_be_reserved(claim) and not is_reserved_for(claim, pod):
            found[claim.metadata.name] = claim
    return tuple(found.values())


def _can_be_reserved(claim: ResourceClaim) -> bool:
    return (
        claim.status.allocation is not None
        and claim.metadata.deletion_timestamp is None
        and len(claim.status.reserved_for) < MOST_CONSUMERS
    )
