"""Volumes that tie a pod to nodes.

A claim that is bound to a volume restricts the pod to the nodes that can reach the volume. Binding volumes is not done here: a pod with
a claim that is not bound waits, and is told why.
"""

from __future__ import annotations

from typing import Final, Protocol

from msgspec import Struct

from drayman.api.errors import SelectorError
from drayman.api.nodeselector import compile_selector
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from drayman.placement.fit.needs import PodNeeds, VolumeRef
from drayman.placement.fit.node import NodeFacts
from drayman.placement.fit.verdict import FITS, Cause, Verdict

UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"
NOTHING_TO_BIND: Final = "node(s) didn't find available persistent volumes to bind"
VOLUME_AFFINITY: Final = "node(s) didn't match PersistentVolume's node affinity"
VOLUME_GONE: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
VOLUME_ZONE: Final = "node(s) had no available volume zone"
ONE_POD_ONLY: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
    " already in-use by another pod"
)

_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_ZONES: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels that say where a volume is, with the name that a node has for the same."""

_ZONE_DELIMITER: Final = "__"


class VolumeView(Protocol):
    """The claims and volumes there are."""

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None: ...

    def volume(self, name: str) -> PersistentVolume | None: ...

    def storage_class(self, name: str) -> StorageClass | None: ...

    def in_use(self, namespace: str, name: str) -> bool:
        """Whether a placed pod uses a claim."""
        ...


class VolumeCheck(Struct, frozen=True):
    """The volumes of one pod. `refusal` is FITS unless the pod cannot go anywhere."""

    refusal: Verdict = FITS
    volumes: tuple[PersistentVolume, ...] = ()

    def verdict(self, facts: NodeFacts) -> Verdict:
        if self.refusal is not FITS:
            return self.refusal
        for volume in self.volumes:
            if not _reaches(volume, facts):
                return Verdict.refusal(Cause.VOLUME_ELSEWHERE, VOLUME_AFFINITY)
        for volume in self.volumes:
            if not _same_zone(volume, facts):
                return Verdict.refusal(Cause.VOLUME_ELSEWHERE, VOLUME_ZONE)
        return FITS


def volume_check(needs: PodNeeds, view: VolumeView) -> VolumeCheck:
    """Where the volumes of a pod can be reached."""
    volumes = []
    for ref in needs.shape.volumes:
        found = _resolve(needs, ref, view)
        if isinstance(found, Verdict):
            return VolumeCheck(found)
        volumes.append(found)
    return VolumeCheck(volumes=tuple(volumes))


def _resolve(needs: PodNeeds, ref: VolumeRef, view: VolumeView) -> PersistentVolume | Verdict:
    """The volume behind a reference, or why there is none to go by."""
    name = f"{needs.name}-{ref.claim}" if ref.ephemeral else ref.claim
    claim = view.claim(needs.namespace, name)
    if claim is None:
        return Verdict.refusal(Cause.VOLUME_UNBOUND, _absent(name, ref))
    if problem := _problem(needs, claim, ref):
        return Verdict.refusal(Cause.VOLUME_UNBOUND, problem)
    if not claim.spec.volume_name or _BIND_COMPLETED not in claim.metadata.annotations:
        return Verdict.refusal(Cause.VOLUME_UNBOUND, _why_unbound(claim, view))
    if "ReadWriteOncePod" in claim.spec.access_modes and view.in_use(needs.namespace, name):
        return Verdict.refusal(Cause.VOLUME_IN_USE, ONE_POD_ONLY, resolvable=True)
    volume = view.volume(claim.spec.volume_name)
    if volume is None:
        return Verdict.refusal(Cause.VOLUME_UNBOUND, VOLUME_GONE)
    return volume


def _absent(name: str, ref: VolumeRef) -> str:
    if ref.ephemeral:
        return (
            f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        )
    return f'persistentvolumeclaim "{name}" not found'


def _problem(needs: PodNeeds, claim: PersistentVolumeClaim, ref: VolumeRef) -> str:
    name = claim.metadata.name
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    owners = claim.metadata.owner_references
    if ref.ephemeral and not any(o.controller and o.uid == needs.uid for o in owners):
        pod = f"{needs.namespace}/{needs.name}"
        return f"PVC {needs.namespace}/{name} was not created for pod {pod} (pod is not owner)"
    return ""


def _why_unbound(claim: PersistentVolumeClaim, view: VolumeView) -> str:
    annotated = claim.metadata.annotations.get(_CLASS_ANNOTATION)
    name = annotated if annotated is not None else claim.spec.storage_class_name or ""
    storage_class = view.storage_class(name) if name else None
    mode = None if storage_class is None else storage_class.volume_binding_mode
    waits = mode == "WaitForFirstConsumer" and not claim.spec.volume_name
    return NOTHING_TO_BIND if waits else UNBOUND


def _reaches(volume: PersistentVolume, facts: NodeFacts) -> bool:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    try:
        terms = compile_selector(affinity.required).terms
    except SelectorError:
        return False
    return any(term.matches(facts.labels, facts.name) for term in terms)


def _same_zone(volume: PersistentVolume, facts: NodeFacts) -> bool:
    if not any(key in facts.labels for key in _ZONES):
        return True
    for key, today in _ZONES.items():
        zones = volume.metadata.labels.get(key)
        if zones is not None:
            own = facts.labels.get(key, facts.labels.get(today))
            if own not in zones.split(_ZONE_DELIMITER):
                return False
    return True
