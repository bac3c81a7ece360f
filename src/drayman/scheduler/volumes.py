"""Volumes that a pod gets together with its node: what is written for them, and how far they have come.

The scheduler only starts this. It enters the claim in an existing volume, or names the node for which one is to be provisioned; the volume
controller and the provisioners do the rest, and the pod is bound when every claim says that it has its volume. A provisioner that cannot
make a volume for the node removes the name of the node from the claim: then the pod is placed again.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from drayman.api import codec
from drayman.api.storage import PersistentVolumeClaim
from drayman.api.struct import Json
from drayman.api.volume_binding import SELECTED_NODE, is_bound, is_set_aside
from drayman.cluster.resources import PERSISTENT_VOLUMES, VOLUME_CLAIMS
from drayman.cluster.writes import Parts, PartsWrite, Write
from drayman.placement.decision.placements import Placement
from drayman.placement.fit.volume_matching import reaches
from drayman.placement.state import ClusterState
from drayman.placement.volumes import Taken
from drayman.scheduler.writes import MANAGER

_ANNOTATIONS: Final = ("metadata", "annotations")
_CLAIM_REF: Final = ("spec", "claimRef")


class VolumeProgress(Struct, frozen=True):
    """How far the volumes of a pod have come."""

    pending: tuple[str, ...] = ()
    """The claims that have no volume yet."""
    failure: str = ""
    """Why they will not get one for the node."""


_DONE: Final = VolumeProgress()


def volume_writes(taken: Taken) -> list[Write]:
    """The writes that start the binding, unless the volumes and claims have changed in the meantime."""
    writes: list[Write] = []
    for volume in taken.volumes:
        parts: dict[tuple[str, ...], Json] = {}
        if volume.spec.claim_ref is not None:
            parts[_CLAIM_REF] = codec.to_dict(volume.spec.claim_ref)
        if volume.metadata.annotations:
            parts[_ANNOTATIONS] = dict(volume.metadata.annotations)
        writes.append(PartsWrite.of(PERSISTENT_VOLUMES, volume, parts, field_manager=MANAGER))
    for claim in taken.claims:
        annotated: Parts = {_ANNOTATIONS: dict(claim.metadata.annotations)}
        writes.append(PartsWrite.of(VOLUME_CLAIMS, claim, annotated, field_manager=MANAGER))
    return writes


def progress(state: ClusterState, placement: Placement) -> VolumeProgress:
    """How far the volumes of a decision have come, according to the server."""
    if placement.volumes is None:
        return _DONE
    pending: list[str] = []
    for awaited in placement.volumes.awaited:
        found = _progress_of(state, placement, awaited)
        if found.failure:
            return found
        pending += found.pending
    return VolumeProgress(tuple(pending))


def _progress_of(
    state: ClusterState, placement: Placement, awaited: PersistentVolumeClaim
) -> VolumeProgress:
    name, volumes = awaited.metadata.name, state.volumes
    claim = volumes.claim(awaited.metadata.namespace, name)
    node = state.nodes.get(placement.node)
    if claim is None or claim.metadata.uid != awaited.metadata.uid:
        return VolumeProgress(failure=f"volume claim {name} does not exist any more")
    if node is None:
        return VolumeProgress(failure=f"node {placement.node} does not exist any more")
    if claim.spec.volume_name:
        volume = volumes.volume(claim.spec.volume_name)
        if volume is None:  # it will be shown eventually, or the claim loses it again
            return VolumeProgress((name,))
        if not reaches(volume, node.facts):
            volume_name = volume.metadata.name
            return VolumeProgress(
                failure=f"volume {volume_name} of volume claim {name} cannot be reached from node"
                f" {placement.node}"
            )
        return _DONE if is_bound(claim) else VolumeProgress((name,))
    return VolumeProgress((name,), _lost(state, placement, claim))


def _lost(state: ClusterState, placement: Placement, claim: PersistentVolumeClaim) -> str:
    """Why the binding that the scheduler started will not complete; empty if it may."""
    name = claim.metadata.name
    taken = placement.volumes
    if taken is not None and name in taken.volume_of:
        volume_name = taken.volume_of[name]
        volume = state.volumes.volume(volume_name)
        if volume is None or not is_set_aside(volume, claim):
            return f"volume {volume_name} is no longer meant for volume claim {name}"
        return ""
    if claim.metadata.annotations.get(SELECTED_NODE) != placement.node:
        return f"no volume could be provisioned for volume claim {name} on node {placement.node}"
    return ""
