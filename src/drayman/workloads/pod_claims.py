"""Which claims a pod uses, and whether it still does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api.core import Pod, PodResourceClaim, is_finished
from drayman.api.meta import OwnerReference, controller_of
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import ResourceClaim
from drayman.placement.claims import GROUP_API

MOST_CONSUMERS: Final = 256


def is_done(pod: Pod) -> bool:
    """Whether a pod will not run (any more), so that it needs no devices."""
    if is_finished(pod):
        return True
    return pod.metadata.deletion_timestamp is not None and not pod.spec.node_name


def has_claims(pod: Pod) -> bool:
    return bool(pod.spec.resource_claims) or pod.status.extended_resource_claim_status is not None


def recorded_claim(user: Pod | PodGroup, entry: PodResourceClaim) -> str | None:
    """The name of an entry's claim, empty if the entry needs none; None if the claim has not been generated."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name
    for status in user.status.resource_claim_statuses:
        if status.name == entry.name:
            return status.resource_claim_name or ""
    return None


def claim_names(pod: Pod) -> Iterator[str]:
    """The claims of a pod that exist as far as the pod says, the one for extended resources included."""
    for entry in pod.spec.resource_claims:
        name = recorded_claim(pod, entry)
        if name:
            yield name
    extended = pod.status.extended_resource_claim_status
    if extended is not None and extended.resource_claim_name:
        yield extended.resource_claim_name


def claim_keys(pod: Pod) -> Iterator[str]:
    """`namespace/name` of each claim of a pod: the index by which the pods of a claim are found."""
    return (f"{pod.metadata.namespace}/{name}" for name in claim_names(pod))


def owning_pod(claim: ResourceClaim) -> OwnerReference | None:
    """The pod that a claim was made for."""
    owner = controller_of(claim.metadata)
    is_pod = owner is not None and owner.api_version == "v1" and owner.kind == "Pod"
    return owner if is_pod else None


def owning_group(claim: ResourceClaim) -> OwnerReference | None:
    """The group of pods that a claim was made for."""
    owner = controller_of(claim.metadata)
    is_group = (
        owner is not None
        and owner.kind == "PodGroup"
        and owner.api_version.partition("/")[0] == GROUP_API
    )
    return owner if is_group else None


def is_made_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was generated for a pod, or for the group that the pod is in."""
    owner = controller_of(claim.metadata)
    if owner is None:
        return False
    if owner.uid == pod.metadata.uid:
        return True
    group = pod.spec.scheduling_group
    return (
        group is not None and owning_group(claim) is not None and owner.name == group.pod_group_name
    )
