"""A decision of the scheduler, and what of the API it changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from drayman.api import codec
from drayman.api.core import (
    NodeAllocatableResourceClaimStatus,
    Pod,
    PodExtendedResourceClaimStatus,
    PodResourceClaimStatus,
)
from drayman.api.pod_groups import PodGroup
from drayman.api.resource import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from drayman.api.struct import Json
from drayman.cluster.resources import PODS, RESOURCE_CLAIMS
from drayman.cluster.writes import BindWrite, CreateWrite, PartsWrite, Write
from drayman.placement.claims import FINALIZER, consumer_of, is_reserved_for
from drayman.placement.fit import PodNeeds
from drayman.placement.groups import shares
from drayman.placement.volumes import Taken
from drayman.scheduler.queue import Entry

MANAGER: Final = "kube-scheduler"


@dataclass(frozen=True, slots=True)
class Made:
    """A claim that is created together with its allocation."""

    claim: ResourceClaim
    """As it will be."""
    holder: str
    """Under which name the ledger knows its devices before it exists."""

    @property
    def key(self) -> tuple[str, str]:
        return self.claim.metadata.namespace, self.claim.metadata.name


@dataclass(slots=True, eq=False)
class Placement:
    """A pod that goes to a node, with the claims as they are to be."""

    entry: Entry
    needs: PodNeeds
    node: str
    claims: tuple[ResourceClaim, ...]
    """Those of the pod's claims that change, as they will be."""
    held: tuple[ResourceClaim, ...] = ()
    """Those that had devices before."""
    made: tuple[Made, ...] = ()
    """Claims to be created: from templates, and for extended resources."""
    generated: tuple[PodResourceClaimStatus, ...] = ()
    """What the pod's status is to say of claims from templates, if some of them are made here."""
    extended_status: PodExtendedResourceClaimStatus | None = None
    mapped: tuple[NodeAllocatableResourceClaimStatus, ...] = ()
    volumes: Taken | None = None
    """What its volume claims get that have no volume yet."""
    waits: bool = False
    """Whether others have to make devices or volumes ready before the pod is bound."""

    @property
    def pod(self) -> Pod:
        return self.entry.pod

    @property
    def devices(self) -> tuple[AllocationResult, ...]:
        """What the pod gets on its node besides what its claims had before."""
        had = {claim.metadata.uid for claim in self.held}
        new = [claim for claim in self.claims if claim.metadata.uid not in had]
        new += [item.claim for item in self.made]
        return tuple(c.status.allocation for c in new if c.status.allocation is not None)


def consumer(
    pod: Pod, claim: ResourceClaim, group: PodGroup | None = None
) -> ResourceClaimConsumerReference:
    """Who uses a claim if a pod does: the pod, or its group where that shares the claim."""
    return consumer_of(group if group is not None and shares(group, claim, pod) else pod)


def allocated(
    claim: ResourceClaim,
    allocation: AllocationResult | None,
    pod: Pod,
    timestamp: str,
    group: PodGroup | None = None,
) -> ResourceClaim:
    """The claim with devices, if it has none yet, and with the pod, or its group, among those that use it."""
    status = claim.status
    finalizers = claim.metadata.finalizers
    if allocation is not None:
        allocation = msgspec.structs.replace(allocation, allocation_timestamp=timestamp)
        if FINALIZER not in finalizers:
            finalizers = (*finalizers, FINALIZER)
    else:
        allocation = status.allocation
    reserved = status.reserved_for
    if not is_reserved_for(claim, pod):
        reserved = (*reserved, consumer(pod, claim, group))
    return msgspec.structs.replace(
        claim,
        metadata=msgspec.structs.replace(claim.metadata, finalizers=finalizers),
        status=ResourceClaimStatus(
            allocation=allocation, reserved_for=reserved, devices=status.devices
        ),
    )


def claim_write(known: ResourceClaim, wanted: ResourceClaim) -> PartsWrite[ResourceClaim]:
    """Turns a claim as the server has it into what it is to be, if nobody has changed it meanwhile."""
    parts: dict[tuple[str, ...], Json] = {}
    if wanted.metadata.finalizers != known.metadata.finalizers:
        parts["metadata", "finalizers"] = list(wanted.metadata.finalizers) or None
    if wanted.status.allocation != known.status.allocation:
        parts["status", "allocation"] = _json(wanted.status.allocation)
    if wanted.status.reserved_for != known.status.reserved_for:
        entries = [codec.to_dict(entry) for entry in wanted.status.reserved_for]
        parts["status", "reservedFor"] = entries or None
    if wanted.status.devices != known.status.devices:
        entries = [codec.to_dict(entry) for entry in wanted.status.devices]
        parts["status", "devices"] = entries or None
    return PartsWrite.of(RESOURCE_CLAIMS, known, parts, field_manager=MANAGER)


def creation_writes(claim: ResourceClaim) -> list[Write]:
    """Creates a claim that has its devices at once. The API takes no status with a creation, so it is two writes."""
    bare = msgspec.structs.replace(
        claim,
        metadata=msgspec.structs.replace(claim.metadata, finalizers=()),
        status=ResourceClaimStatus(),
    )
    return [CreateWrite(RESOURCE_CLAIMS, bare), claim_write(bare, claim)]


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
            # Claims are made for the pod as it was seen; if it has got some meanwhile, these must not be made.
            resource_version=metadata.resource_version if placement.generated else "",
            field_manager=MANAGER,
        )
    ]


def bind_write(placement: Placement) -> BindWrite:
    metadata = placement.pod.metadata
    return BindWrite(metadata.name, metadata.namespace, placement.node, metadata.uid)


def _json(allocation: AllocationResult | None) -> Json:
    return None if allocation is None else codec.to_dict(allocation)
