"""How a volume claim and a volume find each other.

A scheduler, the volume controller and provisioners communicate what is decided and done through annotations and references.
A claim is bound when it names its volume and says that the binding is complete. A scheduler begins that by entering the claim in a volume
that exists (`reserved_for`), or by naming the node for which one is to be provisioned (`for_node`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from drayman.api.core import Pod
from drayman.api.quantity import Quantity
from drayman.api.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeClaimReference,
)

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""On a claim: it has had its volume."""
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
"""On a claim or a volume: no person has chosen its counterpart."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""On a claim: the node for which a volume is to be provisioned. A provisioner that cannot do it takes the annotation off."""
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
BETA_STORAGE_PROVISIONER: Final = "volume.beta.kubernetes.io/storage-provisioner"
DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
BETA_DEFAULT_CLASS: Final = "storageclass.beta.kubernetes.io/is-default-class"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
"""The provisioner of classes whose volumes people make."""
WAIT_FOR_CONSUMER: Final = "WaitForFirstConsumer"
AVAILABLE: Final = "Available"
"""The phase of a volume that no claim has."""
BOUND: Final = "Bound"
"""The phase of a claim or a volume that has its counterpart."""
LOST: Final = "Lost"
"""The phase of a claim whose volume is gone."""
RELEASED: Final = "Released"
"""The phase of a volume whose claim is gone."""
FILESYSTEM: Final = "Filesystem"
STORAGE: Final = "storage"

_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_SET: Final = "yes"


def volume_claims_of(pod: Pod) -> Iterator[str]:
    """The names of the volume claims that a pod uses: those that it names, and those that are made for it."""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            yield ephemeral_claim(pod.metadata.name, volume.name)


def ephemeral_claim(pod: str, volume: str) -> str:
    """The name of the claim that is made for a volume of a pod."""
    return f"{pod}-{volume}"


def class_name_of(value: PersistentVolumeClaim | PersistentVolume) -> str:
    """The storage class of a claim or a volume; empty if it has none."""
    annotated = value.metadata.annotations.get(_CLASS_ANNOTATION)
    return annotated if annotated is not None else value.spec.storage_class_name or ""


def default_class(classes: Iterable[StorageClass]) -> StorageClass | None:
    """The class of claims that name none: of several marked as default, the newest, then the first by name."""
    marked = [
        each
        for each in classes
        if "true"
        in (
            each.metadata.annotations.get(DEFAULT_CLASS),
            each.metadata.annotations.get(BETA_DEFAULT_CLASS),
        )
    ]
    marked.sort(key=lambda each: each.metadata.name)
    return max(marked, key=lambda each: each.metadata.creation_timestamp or "", default=None)


def names_no_class(claim: PersistentVolumeClaim) -> bool:
    """Whether the default class is meant. An empty name means no class."""
    named = claim.spec.storage_class_name
    return named is None and _CLASS_ANNOTATION not in claim.metadata.annotations


def with_class(claim: PersistentVolumeClaim, storage_class: StorageClass) -> PersistentVolumeClaim:
    """The claim as the default class leaves it: unchanged if it names a class, or its volume."""
    if claim.spec.volume_name or not names_no_class(claim):
        return claim
    name = storage_class.metadata.name
    return replace(claim, spec=replace(claim.spec, storage_class_name=name))


def waits_for_consumer(storage_class: StorageClass | None) -> bool:
    """Whether claims of a class get a volume only when a pod that uses them has a node."""
    return storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_CONSUMER


def is_provisioned(storage_class: StorageClass) -> bool:
    """Whether volumes are provisioned for claims of a class."""
    return storage_class.provisioner not in ("", NO_PROVISIONER)


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether a claim is completely bound to its volume."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def is_set_aside(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume is meant for a claim, however that was decided."""
    ref = volume.spec.claim_ref
    if ref is None or (ref.namespace, ref.name) != (claim.metadata.namespace, claim.metadata.name):
        return False
    return not ref.uid or ref.uid == claim.metadata.uid


def requested(claim: PersistentVolumeClaim) -> Quantity:
    return claim.spec.resources.requests.get(STORAGE, Quantity.ZERO)


def capacity_of(volume: PersistentVolume) -> Quantity:
    return volume.spec.capacity.get(STORAGE, Quantity.ZERO)


def reference_to(claim: PersistentVolumeClaim) -> VolumeClaimReference:
    metadata = claim.metadata
    return VolumeClaimReference(
        api_version=claim.api_version,
        kind=claim.kind,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )


def reserved_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume with the claim entered in it; unchanged if it already is. One set aside by a person is not marked otherwise."""
    ref = volume.spec.claim_ref
    if ref is not None and is_set_aside(volume, claim) and ref.uid:
        return volume
    annotations = volume.metadata.annotations
    if ref is None and BOUND_BY_CONTROLLER not in annotations:
        annotations = {**annotations, BOUND_BY_CONTROLLER: _SET}
    return replace(
        volume,
        metadata=replace(volume.metadata, annotations=annotations),
        spec=replace(volume.spec, claim_ref=reference_to(claim)),
    )


def for_node(claim: PersistentVolumeClaim, node: str) -> PersistentVolumeClaim:
    """The claim as its provisioner is to see it; unchanged if it already says so."""
    if claim.metadata.annotations.get(SELECTED_NODE) == node:
        return claim
    annotations = {**claim.metadata.annotations, SELECTED_NODE: node}
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations))


def bound_to(claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim:
    """The claim with its volume. One whose volume a person has chosen does not get the annotation that says otherwise."""
    annotations = {**claim.metadata.annotations, BIND_COMPLETED: _SET}
    if not claim.spec.volume_name:
        annotations[BOUND_BY_CONTROLLER] = _SET
    return replace(
        claim,
        metadata=replace(claim.metadata, annotations=annotations),
        spec=replace(claim.spec, volume_name=volume.metadata.name),
    )
