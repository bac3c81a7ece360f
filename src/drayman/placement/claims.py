"""Which claims a pod uses, and whether they are in a state in which the pod can be scheduled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from typing import Final, Literal

from msgspec.structs import replace

from drayman.api.claim_generation import is_made_for, owning_pod
from drayman.api.core import NodeSelector, Pod, PodResourceClaim
from drayman.api.meta import OwnerReference
from drayman.api.pod_groups import GROUP_API, PodGroup
from drayman.api.pods import entries_of, entry_claims, group_key, has_claims, is_finished
from drayman.api.resource import (
    AllocatedDeviceStatus,
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from drayman.api.times import seconds_of
from drayman.inventory.identity import DeviceId
from drayman.placement.alignment import without_note

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
EXTENDED_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
MOST_CONSUMERS: Final = 256
BINDING_TIMEOUT_S: Final = 600.0
"""How long drivers may take to make devices ready, unless the scheduler is configured otherwise."""

FindClaim = Callable[[str, str], ResourceClaim | None]
"""By namespace and name."""
MakeClaim = Callable[[Pod, PodResourceClaim], ResourceClaim | None]
"""A claim, not yet created, for an entry of a pod; None if there can be none."""


class ClaimLack(Enum):
    """What a pod lacks before nodes can be looked for."""

    CLAIM = "claim"  # a claim that it names does not exist
    GENERATED = "generated"  # a claim is still to be made from a template
    DELETING = "deleting"  # a claim is being deleted
    FOREIGN = "foreign"  # the claim listed for it was made for another pod
    GROUP = "group"  # the pod group that it is in does not exist
    SHARE = "share"  # a share of a GPU that no class offers
    SHARE_INVALID = "share invalid"  # an annotation that asks for one in a wrong way
    CONTESTED = "contested"  # a device of a claim is, or was, another claim's too


class ClaimsNotReadyError(Exception):
    """A claim of the pod does not exist, is being deleted, or belongs to another pod. The message is for the pod's owner.

    `name` is the name of what is missing: a claim, a group, or the template of a claim that is still to be made.
    """

    def __init__(self, message: str, lack: ClaimLack, name: str) -> None:
        super().__init__(message)
        self.lack = lack
        self.name = name


def claims_of(
    pod: Pod, find: FindClaim, make: MakeClaim | None = None
) -> tuple[ResourceClaim, ...]:
    """The claims that the pod's entries stand for, in order. Raises ClaimsNotReadyError.

    `make` is called for claims that are still to be made from templates.
    """
    if not pod.spec.resource_claims:
        return ()
    claims = []
    for entry, name in entry_claims(pod):
        if entry.resource_claim_name:
            claims.append(_existing(pod, entry.resource_claim_name, find))
            continue
        if not entry.resource_claim_template_name:
            raise ClaimsNotReadyError(
                f"entry {entry.name} of the pod names neither a claim nor a template",
                ClaimLack.CLAIM,
                entry.name,
            )
        if name is None:
            draft = None if make is None else make(pod, entry)
            if draft is not None:
                claims.append(draft)
                continue
            raise ClaimsNotReadyError(
                f"waiting for the claim of entry {entry.name} to be made from"
                f" template {entry.resource_claim_template_name}",
                ClaimLack.GENERATED,
                entry.resource_claim_template_name,
            )
        if not name:
            continue  # the entry needs no claim
        claim = _existing(pod, name, find)
        if not is_made_for(claim, pod):
            raise ClaimsNotReadyError(
                f"resource claim {claim.metadata.name} of entry {entry.name} was not made for this pod",
                ClaimLack.FOREIGN,
                claim.metadata.name,
            )
        claims.append(claim)
    return tuple(claims)


def _existing(pod: Pod, name: str, find: FindClaim) -> ResourceClaim:
    claim = find(pod.metadata.namespace, name)
    if claim is None:
        raise ClaimsNotReadyError(f'resource claim "{name}" does not exist', ClaimLack.CLAIM, name)
    if claim.metadata.deletion_timestamp is not None:
        raise ClaimsNotReadyError(
            f'resource claim "{name}" is being deleted', ClaimLack.DELETING, name
        )
    return claim


def claims_used_by(pod: Pod, find: FindClaim) -> Iterator[ResourceClaim]:
    """The claims that a pod uses and does not just name: reserved for it and, where they are generated, made for it.

    The one for extended resources is among them, and so are those that are being deleted.
    """
    for entry, name in entry_claims(pod):
        claim = find(pod.metadata.namespace, name) if name else None
        if claim is None or not is_reserved_for(claim, pod):
            continue
        if entry.resource_claim_template_name is None or is_made_for(claim, pod):
            yield claim
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        claim = find(pod.metadata.namespace, extended.resource_claim_name)
        if claim is not None and is_made_for(claim, pod) and is_reserved_for(claim, pod):
            yield claim


def extended_for(claim: ResourceClaim) -> OwnerReference | None:
    """The pod for whose extended resources a claim was made."""
    return owning_pod(claim) if EXTENDED_CLAIM in claim.metadata.annotations else None


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a pod may use a claim: it is reserved for the pod, or for the group that the pod is in."""
    uid, group = pod.metadata.uid, group_key(pod)
    for consumer in claim.status.reserved_for:
        if consumer.uid == uid:
            return True
        if group is not None and is_group(consumer, group[1]):
            return True
    return False


def runs_with(pod: Pod, namespace: str, consumer: ResourceClaimConsumerReference) -> bool:
    """Whether a pod on a node uses a claim of this namespace by the reservation for a consumer: for itself, or for its group."""
    if not pod.spec.node_name or is_finished(pod) or pod.metadata.namespace != namespace:
        return False
    if resource_of(consumer) == "pods":
        return pod.metadata.uid == consumer.uid
    group = group_key(pod)
    return group is not None and is_group(consumer, group[1]) and has_claims(pod)


def pods_holding(claim: ResourceClaim) -> tuple[ResourceClaimConsumerReference, ...] | None:
    """The pods that hold a claim: when all of them are gone, it gives back its devices. None if it keeps them whichever pods go.

    The reservation for a group ends with the group and not with its pods, and consumers that are not known here stay
    (`workloads/claims/releasing.py`).
    """
    consumers = claim.status.reserved_for
    return consumers if all(resource_of(each) == "pods" for each in consumers) else None


def consumer_of(user: Pod | PodGroup) -> ResourceClaimConsumerReference:
    """How a claim refers to its user."""
    metadata = user.metadata
    if isinstance(user, PodGroup):
        return ResourceClaimConsumerReference(
            api_group=GROUP_API, resource="podgroups", name=metadata.name, uid=metadata.uid
        )
    return ResourceClaimConsumerReference(resource="pods", name=metadata.name, uid=metadata.uid)


def without_devices(claim: ResourceClaim) -> ResourceClaim:
    """The claim once it has given back its devices: nothing uses it, and nothing is said about them."""
    return replace(without_note(claim), status=ResourceClaimStatus())


def without_user(claim: ResourceClaim, pod: Pod) -> ResourceClaim:
    """The claim without the reservation for a pod. It keeps its devices; a reservation for the pod's group stays."""
    users = tuple(user for user in claim.status.reserved_for if user.uid != pod.metadata.uid)
    return replace(claim, status=replace(claim.status, reserved_for=users))


def resource_of(
    consumer: ResourceClaimConsumerReference,
) -> Literal["pods", "podgroups"] | None:
    """What a claim is reserved for: a pod or a group of pods. None for consumers that are not known here."""
    if not consumer.api_group and consumer.resource == "pods":
        return "pods"
    if consumer.api_group == GROUP_API and consumer.resource == "podgroups":
        return "podgroups"
    return None


def is_group(consumer: ResourceClaimConsumerReference, name: str) -> bool:
    """Whether a claim is reserved for the group of this name, in the claim's namespace."""
    return consumer.name == name and resource_of(consumer) == "podgroups"


def shares(group: PodGroup, claim: ResourceClaim, pod: Pod) -> bool:
    """Whether a claim that a pod uses is one of its group: the pod's entry for it is also an entry of the group."""
    return any(
        entry in group.spec.resource_claims for entry in entries_of(pod, claim.metadata.name)
    )


def only_node_of(selector: NodeSelector | None) -> str | None:
    """The one node that an allocation is tied to by name, if any."""
    if selector is None or len(selector.node_selector_terms) != 1:
        return None
    term = selector.node_selector_terms[0]
    for requirement in term.match_fields:
        if (requirement.key, requirement.operator) == ("metadata.name", "In"):
            return requirement.values[0] if len(requirement.values) == 1 else None
    return None


class Readiness:
    """What the drivers say about the devices of a claim that must be made ready before a pod may be bound."""

    __slots__ = ("failure", "pending")

    def __init__(self, pending: tuple[str, ...] = (), failure: str = "") -> None:
        self.pending = pending  # devices with conditions that are not yet true
        self.failure = failure  # empty: no driver reports a failure

    @property
    def is_ready(self) -> bool:
        return not self.pending and not self.failure


READY: Final = Readiness()


def readiness(claim: ResourceClaim) -> Readiness:
    """Whether all binding conditions of the claim's devices are met."""
    allocation = claim.status.allocation
    if allocation is None or not needs_binding(allocation):
        return READY
    pending: list[str] = []
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        name = str(DeviceId.of(result))
        status = _status_of(claim.status.devices, result.driver, result.pool, result.device)
        conditions = {} if status is None else {c.type_: c for c in status.conditions}
        for failing in result.binding_failure_conditions:
            condition = conditions.get(failing)
            if condition is not None and condition.status == "True":
                why = f": {condition.message}" if condition.message else ""
                return Readiness(failure=f"device {name} reports {failing}{why}")
        for wanted in result.binding_conditions:
            condition = conditions.get(wanted)
            if condition is None or condition.status != "True":
                pending.append(f"{name} ({wanted})")
                break
    return Readiness(tuple(pending)) if pending else READY


def binding_deadline(claim: ResourceClaim, timeout_s: float) -> float | None:
    """When the devices of a claim have to be ready, counted from their allocation: another attempt does not restart it.

    None where the allocation does not say when it was made: then there is no end.
    """
    allocation = claim.status.allocation
    since = None if allocation is None else seconds_of(allocation.allocation_timestamp)
    return None if since is None else since + timeout_s


def is_late(claim: ResourceClaim, now: float, timeout_s: float) -> bool:
    """Whether devices that are not ready should have been by now."""
    deadline = binding_deadline(claim, timeout_s)
    return deadline is not None and deadline < now


def needs_binding(allocation: AllocationResult) -> bool:
    return any(result.binding_conditions for result in allocation.devices.results)


def _status_of(
    devices: tuple[AllocatedDeviceStatus, ...], driver: str, pool: str, device: str
) -> AllocatedDeviceStatus | None:
    for status in devices:
        if (status.driver, status.pool, status.device) == (driver, pool, device):
            return status
    return None
