"""What happens to a claim when its users are done.

A reservation ends when its pod is gone, has been replaced by another of the same name, or will not run any more; that of a group of pods
when the group is gone or replaced. When the last one ends the claim is given back: no allocation, no device status, no finalizer. A claim
that never had a consumer stays allocated, and consumers of kinds that are not known here are kept. A claim that was generated
goes with the pod or group that it was made for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal, NamedTuple

from drayman.api.claim_generation import owning_group, owning_pod
from drayman.api.resource import ResourceClaim, ResourceClaimConsumerReference
from drayman.placement.claims import FINALIZER, resource_of


class Use(Enum):
    """Whether a pod, or a group of pods, has use for its claims."""

    NEEDED = auto()
    OVER = auto()
    UNKNOWN = auto()
    """It has not been seen here: only the server knows."""


class Consumer(NamedTuple):
    """What a claim is reserved for, or was made for."""

    resource: Literal["pods", "podgroups"]
    namespace: str
    name: str
    uid: str


FindUse = Callable[[Consumer], Use]


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


def users_in_doubt(claim: ResourceClaim, use_of: FindUse) -> tuple[Consumer, ...]:
    """The consumers that the server has to be asked about before `release` can decide."""
    users = (_user(claim, consumer) for consumer in claim.status.reserved_for)
    return tuple(user for user in users if user is not None and use_of(user) is Use.UNKNOWN)


def release(claim: ResourceClaim, use_of: FindUse) -> Release:
    """What to do with a claim now. A consumer that is still unknown keeps its reservation."""
    reserved = claim.status.reserved_for
    remaining = tuple(
        consumer
        for consumer in reserved
        if (user := _user(claim, consumer)) is None or use_of(user) is not Use.OVER
    )
    has_finalizer = FINALIZER in claim.metadata.finalizers
    is_deleting = claim.metadata.deletion_timestamp is not None
    # Only the transition from used to unused gives a claim back: an allocation without a consumer may be intended.
    ends = not remaining and has_finalizer and (bool(reserved) or is_deleting)
    return Release(
        claim,
        remaining,
        deallocates=ends and claim.status.allocation is not None,
        removes_finalizer=ends,
        deletes=not remaining and not is_deleting and _owner_is_over(claim, use_of),
    )


def _owner_is_over(claim: ResourceClaim, use_of: FindUse) -> bool:
    """Whether what a claim was made for has no use for it. Garbage collection takes care of unknown owners."""
    namespace = claim.metadata.namespace
    pod = owning_pod(claim)
    if pod is not None:
        return use_of(Consumer("pods", namespace, pod.name, pod.uid)) is Use.OVER
    group = owning_group(claim)
    if group is not None:
        return use_of(Consumer("podgroups", namespace, group.name, group.uid)) is Use.OVER
    return False


def _user(claim: ResourceClaim, consumer: ResourceClaimConsumerReference) -> Consumer | None:
    """A consumer of a kind that is known here."""
    resource = resource_of(consumer)
    if resource is None:
        return None
    return Consumer(resource, claim.metadata.namespace, consumer.name, consumer.uid)
