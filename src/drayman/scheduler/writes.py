"""What decisions change in the API: of claims, of pods that are placed, and of pods that have to go."""

from __future__ import annotations

from typing import Final

import msgspec

from drayman.api import codec
from drayman.api.alignment import ALIGNMENT
from drayman.api.core import Pod
from drayman.api.resource import ResourceClaim, ResourceClaimStatus
from drayman.api.struct import Json
from drayman.cluster.options import DeleteOptions, WriteOptions
from drayman.cluster.patches import pod_condition_patch
from drayman.cluster.resources import PODS, RESOURCE_CLAIMS
from drayman.cluster.writes import (
    BindWrite,
    CreateWrite,
    DeleteWrite,
    PartsWrite,
    PatchWrite,
    Write,
)
from drayman.placement.decision.placements import Placement

MANAGER: Final = "kube-scheduler"


def claim_write(known: ResourceClaim, wanted: ResourceClaim) -> PartsWrite[ResourceClaim]:
    """Changes a claim from the server's version to the wanted one, unless it has changed in the meantime."""
    parts: dict[tuple[str, ...], Json] = {}
    if wanted.metadata.finalizers != known.metadata.finalizers:
        parts["metadata", "finalizers"] = list(wanted.metadata.finalizers) or None
    note = wanted.metadata.annotations.get(ALIGNMENT)
    if note != known.metadata.annotations.get(ALIGNMENT):
        parts["metadata", "annotations"] = dict(wanted.metadata.annotations) or None
    if wanted.status.allocation != known.status.allocation:
        allocation = wanted.status.allocation
        parts["status", "allocation"] = None if allocation is None else codec.to_dict(allocation)
    if wanted.status.reserved_for != known.status.reserved_for:
        entries = [codec.to_dict(entry) for entry in wanted.status.reserved_for]
        parts["status", "reservedFor"] = entries or None
    if wanted.status.devices != known.status.devices:
        entries = [codec.to_dict(entry) for entry in wanted.status.devices]
        parts["status", "devices"] = entries or None
    return PartsWrite.of(RESOURCE_CLAIMS, known, parts, field_manager=MANAGER)


def creation_writes(claim: ResourceClaim) -> list[Write]:
    """Creates a claim that is allocated at once. The API accepts no status on creation, so this takes two writes."""
    bare = msgspec.structs.replace(
        claim,
        metadata=msgspec.structs.replace(claim.metadata, finalizers=()),
        status=ResourceClaimStatus(),
    )
    return [CreateWrite(RESOURCE_CLAIMS, bare), claim_write(bare, claim)]


def condition_write(pod: Pod, condition: dict[str, Json]) -> Write:
    """Sets a condition of a pod, whatever else has changed about it."""
    metadata, options = pod.metadata, WriteOptions(field_manager=MANAGER)
    patch = pod_condition_patch(metadata.uid, condition)
    return PatchWrite(PODS, metadata.name, patch, metadata.namespace, "status", options)


def deletion_write(pod: Pod) -> Write:
    """Deletes a pod, and no other one of its name."""
    metadata = pod.metadata
    return DeleteWrite(PODS, metadata.name, metadata.namespace, DeleteOptions(uid=metadata.uid))


def pod_writes(placement: Placement) -> list[Write]:
    """What is written to the status of the pod before it is bound."""
    metadata = placement.pod.metadata
    parts: dict[tuple[str, ...], Json] = {}
    if placement.generated:
        parts["status", "resourceClaimStatuses"] = [
            codec.to_dict(status) for status in placement.generated
        ]
    if placement.extended_status is not None:
        parts["status", "extendedResourceClaimStatus"] = codec.to_dict(placement.extended_status)
    if placement.mapped:
        parts["status", "nodeAllocatableResourceClaimStatuses"] = [
            codec.to_dict(status) for status in placement.mapped
        ]
    if not parts:
        return []
    return [
        PartsWrite(
            PODS,
            metadata.name,
            metadata.namespace,
            parts,
            subresource="status",
            uid=metadata.uid,
            # Claims are made for the pod as last seen; if it has got some in the meantime, these must not be made.
            resource_version=metadata.resource_version if placement.generated else "",
            field_manager=MANAGER,
        )
    ]


def bind_write(placement: Placement) -> BindWrite:
    metadata = placement.pod.metadata
    return BindWrite(metadata.name, metadata.namespace, placement.node, metadata.uid)
