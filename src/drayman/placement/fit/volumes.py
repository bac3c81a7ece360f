"""Volumes that tie a pod to nodes.

A claim that is bound to a volume restricts the pod to the nodes that can reach the volume. A claim whose class waits for a pod has no
volume yet: then a node will do if there is a volume for the claim that can be reached from there, or if one can be provisioned for it.
Which one is also decided here (`VolumeCheck.choose`); binding it is left to the scheduler and to the controllers that complete the binding.
A claim that is bound independently of pods is waited for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from drayman.api.errors import SelectorError
from drayman.api.labels import matches
from drayman.api.storage import (
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from drayman.api.volume_binding import (
    LOST,
    SELECTED_NODE,
    class_name_of,
    ephemeral_claim,
    is_bound,
    is_provisioned,
    requested,
    waits_for_consumer,
)
from drayman.placement.fit.needs import PodNeeds, VolumeRef
from drayman.placement.fit.node import NodeFacts
from drayman.placement.fit.verdict import FITS, Cause, Verdict
from drayman.placement.fit.volume_matching import Candidates, candidates, reaches

UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"
NOTHING_TO_BIND: Final = "node(s) didn't find available persistent volumes to bind"
NO_SPACE: Final = "node(s) did not have enough free storage"
VOLUME_AFFINITY: Final = "node(s) didn't match PersistentVolume's node affinity"
VOLUME_GONE: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
VOLUME_ZONE: Final = "node(s) had no available volume zone"
ONE_POD_ONLY: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
    " already in-use by another pod"
)

_ZONES: Final = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Labels that say where a volume is, with the node label for the same thing."""

_ZONE_DELIMITER: Final = "__"
_ELSEWHERE: Final = Verdict.refusal(Cause.VOLUME_ELSEWHERE, NOTHING_TO_BIND)
_NOTHING: Final = Verdict.refusal(Cause.VOLUME_LACKING, NOTHING_TO_BIND)
_NO_SPACE: Final = Verdict.refusal(Cause.VOLUME_LACKING, NO_SPACE)


class VolumeView(Protocol):
    """The claims and volumes there are."""

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None: ...

    def volume(self, name: str) -> PersistentVolume | None: ...

    def storage_class(self, name: str) -> StorageClass | None: ...

    def of_class(self, name: str) -> Iterable[PersistentVolume]:
        """The volumes of a class."""
        ...

    def capacities(self, storage_class: StorageClass) -> Sequence[CSIStorageCapacity] | None:
        """What can still be provisioned for a class, and where; None if its provisioner does not say."""
        ...

    def in_use(self, namespace: str, name: str) -> bool:
        """Whether a placed pod uses a claim."""
        ...


class VolumeChoice(Struct, frozen=True):
    """What a pod's claims without a volume get on a node."""

    bindings: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()
    """Those for which a volume is to be made."""


class OpenClaim(Struct, frozen=True):
    """A claim that gets its volume together with the pod."""

    claim: PersistentVolumeClaim
    storage_class: StorageClass
    candidates: Candidates
    capacities: Sequence[CSIStorageCapacity] | None

    @property
    def selected_node(self) -> str | None:
        """The node for which a volume is being made."""
        return self.claim.metadata.annotations.get(SELECTED_NODE)

    def provision_verdict(self, facts: NodeFacts) -> Verdict:
        """Whether a volume can be made for a node."""
        if self.candidates.set_aside is not None:
            return _ELSEWHERE
        if not is_provisioned(self.storage_class) or not allows(self.storage_class, facts):
            return _NOTHING
        if self.capacities is None or any(map(self._suffices, self._reachable(facts))):
            return FITS
        return _NO_SPACE

    def _reachable(self, facts: NodeFacts) -> Iterable[CSIStorageCapacity]:
        for capacity in self.capacities or ():
            try:
                if matches(capacity.node_topology, facts.labels):
                    yield capacity
            except SelectorError:
                continue  # upstream ignores it

    def _suffices(self, capacity: CSIStorageCapacity) -> bool:
        # The maximum size of a single volume is more precise, where it is given.
        limit = capacity.maximum_volume_size or capacity.capacity
        return limit is not None and not limit < requested(self.claim)


class VolumeCheck(Struct, frozen=True):
    """The volumes of one pod. `refusal` is FITS unless the pod cannot go anywhere."""

    refusal: Verdict = FITS
    volumes: tuple[PersistentVolume, ...] = ()
    """Those that it has."""
    open: tuple[OpenClaim, ...] = ()
    """The smallest first, so that it does not take what a larger one needs."""

    @property
    def is_indifferent(self) -> bool:
        """Whether the volumes can be used from all nodes."""
        return self.refusal is FITS and not self.open and not any(map(_has_place, self.volumes))

    def verdict(self, facts: NodeFacts) -> Verdict:
        if self.refusal is not FITS:
            return self.refusal
        for volume in self.volumes:
            if not reaches(volume, facts):
                return Verdict.refusal(Cause.VOLUME_ELSEWHERE, VOLUME_AFFINITY)
        if self.open:
            found = self.choose(facts)
            if isinstance(found, Verdict):
                return found
        for volume in self.volumes:
            if not _same_zone(volume, facts):
                return Verdict.refusal(Cause.VOLUME_ELSEWHERE, VOLUME_ZONE)
        return FITS

    def choose(self, facts: NodeFacts) -> VolumeChoice | Verdict:
        """What the claims without a volume would get on a node, or why one of them gets none."""
        bindings: list[tuple[PersistentVolumeClaim, PersistentVolume]] = []
        provisions: list[PersistentVolumeClaim] = []
        promised: set[str] = set()
        for item in self.open:
            if item.selected_node is None:
                volume = item.candidates.on(facts, promised)
                if volume is not None:
                    promised.add(volume.metadata.name)
                    bindings.append((item.claim, volume))
                    continue
            elif item.selected_node != facts.name:
                return _ELSEWHERE
            verdict = item.provision_verdict(facts)
            if verdict is not FITS:
                return verdict
            provisions.append(item.claim)
        return VolumeChoice(tuple(bindings), tuple(provisions))


NO_VOLUMES: Final = VolumeCheck()


def volume_check(needs: PodNeeds, view: VolumeView) -> VolumeCheck:
    """Where the volumes of a pod can be reached, and where it can get those that it still lacks."""
    volumes: list[PersistentVolume] = []
    opened: dict[str, OpenClaim] = {}
    for ref in needs.shape.volumes:
        found = _resolve(needs, ref, view)
        if isinstance(found, Verdict):
            return VolumeCheck(found)
        if isinstance(found, OpenClaim):
            opened[found.claim.metadata.name] = found
        else:
            volumes.append(found)
    smallest_first = sorted(opened.values(), key=lambda item: requested(item.claim))
    return VolumeCheck(volumes=tuple(volumes), open=tuple(smallest_first))


def claim_name(needs: PodNeeds, ref: VolumeRef) -> str:
    """The name of the claim behind a volume of a pod."""
    return ephemeral_claim(needs.name, ref.claim) if ref.ephemeral else ref.claim


def allows(storage_class: StorageClass, facts: NodeFacts) -> bool:
    """Whether volumes of a class may be made for a node. A class that does not restrict this allows all."""
    terms = storage_class.allowed_topologies
    return not terms or any(
        all(facts.labels.get(each.key) in each.values for each in term.match_label_expressions)
        for term in terms
        if term.match_label_expressions
    )


def _resolve(
    needs: PodNeeds, ref: VolumeRef, view: VolumeView
) -> PersistentVolume | OpenClaim | Verdict:
    """The volume behind a reference, what it takes to get one, or why there is none."""
    name = claim_name(needs, ref)
    claim = view.claim(needs.namespace, name)
    if claim is None:
        return Verdict.refusal(Cause.VOLUME_UNBOUND, _absent(name, ref))
    if problem := _problem(needs, claim, ref):
        return Verdict.refusal(Cause.VOLUME_UNBOUND, problem)
    if "ReadWriteOncePod" in claim.spec.access_modes and view.in_use(needs.namespace, name):
        return Verdict.refusal(Cause.VOLUME_IN_USE, ONE_POD_ONLY, resolvable=True)
    if not is_bound(claim):
        return _open(claim, view)
    volume = view.volume(claim.spec.volume_name)
    if volume is None:
        return Verdict.refusal(Cause.VOLUME_UNBOUND, VOLUME_GONE)
    return volume


def _open(claim: PersistentVolumeClaim, view: VolumeView) -> OpenClaim | Verdict:
    name = class_name_of(claim)
    storage_class = view.storage_class(name) if name else None
    if storage_class is None or not waits_for_consumer(storage_class) or claim.spec.volume_name:
        return Verdict.refusal(Cause.VOLUME_UNBOUND, UNBOUND)
    capacities = view.capacities(storage_class)
    return OpenClaim(claim, storage_class, candidates(claim, view.of_class(name)), capacities)


def _absent(name: str, ref: VolumeRef) -> str:
    if ref.ephemeral:
        return (
            f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        )
    return f'persistentvolumeclaim "{name}" not found'


def _problem(needs: PodNeeds, claim: PersistentVolumeClaim, ref: VolumeRef) -> str:
    name = claim.metadata.name
    if claim.status.phase == LOST:
        volume = claim.spec.volume_name
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    owners = claim.metadata.owner_references
    if ref.ephemeral and not any(o.controller and o.uid == needs.uid for o in owners):
        pod = f"{needs.namespace}/{needs.name}"
        return f"PVC {needs.namespace}/{name} was not created for pod {pod} (pod is not owner)"
    return ""


def _has_place(volume: PersistentVolume) -> bool:
    affinity = volume.spec.node_affinity
    return (affinity is not None and affinity.required is not None) or any(
        key in volume.metadata.labels for key in _ZONES
    )


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
