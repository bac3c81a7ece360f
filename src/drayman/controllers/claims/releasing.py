"""What becomes of a claim when those who used it are done.

A reservation ends when its pod is gone, has been replaced by another of the same name, or will not run any more. When the last one
ends the claim is given back: no allocation, no device status, no finalizer. A claim that never had a consumer stays allocated,
and consumers of kinds that are not known here are kept. A claim that was generated for a pod goes with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from drayman.api.resource import ResourceClaim, ResourceClaimConsumerReference
from drayman.controllers.pod_claims import FINALIZER, owning_pod


class Use(Enum):
    """Whether a pod has use for its claims."""

    NEEDED = auto()
    OVER = auto()
    UNKNOWN = auto()
    """Nobody here has seen the pod: only the server can tell."""


FindUse = Callable[[str, str, str], Use]
"""Of the pod with this namespace, name and uid."""


@dataclass(frozen=True, slots=True)
class Release:
    """What is to be written to a claim."""

    claim: ResourceClaim
    remaining: tuple[ResourceClaimConsumerReference, ...]
    deallocates: bool = False
    removes_finalizer: bool = False
    deletes: bool = False

    @property
    def changes_status(self) -> bool:
        return self.deallocates or self.remaining != self.claim.status.reserved_for

    @property
    def is_needed(self) -> bool:
        return self.changes_status or self.removes_finalizer or self.deletes


def consumers_in_doubt(
    claim: ResourceClaim, use_of: FindUse
) -> tuple[ResourceClaimConsumerReference, ...]:
    """The consumers that the server has to be asked about before `release` can tell."""
    return tuple(
        consumer
        for consumer in claim.status.reserved_for
        if _is_pod(consumer) and _use(claim, consumer, use_of) is Use.UNKNOWN
    )


def release(claim: ResourceClaim, use_of: FindUse) -> Release:
    """What to do with a claim now. A consumer that is still unknown keeps its reservation."""
    reserved = claim.status.reserved_for
    remaining = tuple(
        consumer
        for consumer in reserved
        if not _is_pod(consumer) or _use(claim, consumer, use_of) is not Use.OVER
    )
    has_finalizer = FINALIZER in claim.metadata.finalizers
    is_deleting = claim.metadata.deletion_timestamp is not None
    # Only the transition from used to unused gives a claim back: an allocation without a consumer may be meant so.
    ends = not remaining and has_finalizer and (bool(reserved) or is_deleting)
    return Release(
        claim,
        remaining,
        deallocates=ends and claim.status.allocation is not None,
        removes_finalizer=ends,
        deletes=not remaining and not is_deleting and _owner_is_over(claim, use_of),
    )


def _owner_is_over(claim: ResourceClaim, use_of: FindUse) -> bool:
    """Whether the pod that a claim was made for has no use for it. Of a pod nobody knows, garbage collection takes care."""
    owner = owning_pod(claim)
    return owner is not None and use_of(claim.metadata.namespace, owner.name, owner.uid) is Use.OVER


def _use(claim: ResourceClaim, consumer: ResourceClaimConsumerReference, use_of: FindUse) -> Use:
    return use_of(claim.metadata.namespace, consumer.name, consumer.uid)


def _is_pod(consumer: ResourceClaimConsumerReference) -> bool:
    return not consumer.api_group and consumer.resource == "pods"
