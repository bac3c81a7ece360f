"""What to do about a volume claim. Pure: `claims` carries out the result.

A claim whose class waits for a pod gets nothing before a scheduler has chosen: a volume then names it, or it carries the name of a node.
Any other claim gets the smallest volume that fits, and where there is none a new one, if its class provisions.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from drayman.api.core import EventType
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from drayman.api.volume_binding import (
    SELECTED_NODE,
    class_name_of,
    is_bound,
    is_provisioned,
    is_set_aside,
    waits_for_consumer,
)
from drayman.placement.fit.volume_matching import candidates, mismatch
from drayman.placement.volumes import Volumes


class Bind(Struct, frozen=True):
    """The claim gets this volume, or has it and is to say so."""

    volume: PersistentVolume


class Provision(Struct, frozen=True):
    """A volume is made for the claim."""

    storage_class: StorageClass


class Wait(Struct, frozen=True):
    """Nothing can be done for the claim, for a reason that is reported."""

    reason: str
    note: str
    type: EventType = "Warning"


class Lose(Struct, frozen=True):
    """The claim had a volume and has none any more."""

    reason: str
    note: str


Step = Bind | Provision | Wait | Lose

_FIRST_CONSUMER: Final = Wait(
    "WaitForFirstConsumer",
    "waiting for first consumer to be created before binding",
    "Normal",
)
_NO_CLASS: Final = Wait(
    "FailedBinding",
    "no persistent volumes available for this claim and no storage class is set",
    "Normal",
)
_GONE: Final = Lose(
    "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
)
_MISBOUND: Final = Lose(
    "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly"
)


def next_step(claim: PersistentVolumeClaim, volumes: Volumes) -> Step:
    """What to do about a claim."""
    if claim.spec.volume_name:
        return _with_volume(claim, volumes.volume(claim.spec.volume_name))
    name = class_name_of(claim)
    storage_class = volumes.storage_class(name) if name else None
    found = candidates(claim, volumes.of_class(name))
    if waits_for_consumer(storage_class):
        if found.set_aside is not None:
            return Bind(found.set_aside)
        if SELECTED_NODE not in claim.metadata.annotations:
            return _FIRST_CONSUMER
    else:
        volume = found.first()
        if volume is not None:
            return Bind(volume)
    return _provided(claim, name, storage_class)


def _with_volume(claim: PersistentVolumeClaim, volume: PersistentVolume | None) -> Step:
    """For a claim that names its volume: it has got it, or a person has chosen it."""
    name = claim.spec.volume_name
    if volume is None:
        if is_bound(claim):
            return _GONE
        return Wait("FailedBinding", f'volume "{name}" not found')
    if is_set_aside(volume, claim):
        return Bind(volume)
    if volume.spec.claim_ref is not None:
        if is_bound(claim):
            return _MISBOUND
        return Wait("FailedBinding", f'volume "{name}" already bound to a different claim.')
    unfit = None if is_bound(claim) else mismatch(claim, volume)
    if unfit is None:
        return Bind(volume)
    return Wait("VolumeMismatch", f'Cannot bind to requested volume "{name}": it is {unfit.value}')


def _provided(
    claim: PersistentVolumeClaim, name: str, storage_class: StorageClass | None
) -> Provision | Wait:
    if not name:
        return _NO_CLASS
    if storage_class is None:
        return Wait("ProvisioningFailed", f'storageclass.storage.k8s.io "{name}" not found')
    if not is_provisioned(storage_class):
        provisioner = storage_class.provisioner
        return Wait("ProvisioningFailed", f"no volume plugin matched name: {provisioner}")
    if claim.spec.selector is not None:
        return Wait("ProvisioningFailed", "claim Selector is not supported")
    return Provision(storage_class)
