"""Volumes as far as scheduling depends on them: claims, what they are bound to, and who uses them."""

from __future__ import annotations

from collections import Counter

from drayman.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from drayman.placement.fit import PodNeeds, VolumeRef


class Volumes:
    """Implements what `fit.volume_check` asks for."""

    def __init__(self) -> None:
        self._claims: dict[tuple[str, str], PersistentVolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._classes: dict[str, StorageClass] = {}
        self._users: Counter[tuple[str, str]] = Counter()

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self._claims.get((namespace, name))

    def volume(self, name: str) -> PersistentVolume | None:
        return self._volumes.get(name)

    def storage_class(self, name: str) -> StorageClass | None:
        return self._classes.get(name)

    def in_use(self, namespace: str, name: str) -> bool:
        return self._users[namespace, name] > 0

    def set_claim(self, claim: PersistentVolumeClaim) -> None:
        self._claims[claim.metadata.namespace, claim.metadata.name] = claim

    def remove_claim(self, claim: PersistentVolumeClaim) -> None:
        self._claims.pop((claim.metadata.namespace, claim.metadata.name), None)

    def set_volume(self, volume: PersistentVolume) -> None:
        self._volumes[volume.metadata.name] = volume

    def remove_volume(self, volume: PersistentVolume) -> None:
        self._volumes.pop(volume.metadata.name, None)

    def set_class(self, storage_class: StorageClass) -> None:
        self._classes[storage_class.metadata.name] = storage_class

    def remove_class(self, storage_class: StorageClass) -> None:
        self._classes.pop(storage_class.metadata.name, None)

    def add_pod(self, needs: PodNeeds) -> None:
        for volume in needs.shape.volumes:
            self._users[needs.namespace, _name_of(volume, needs)] += 1

    def remove_pod(self, needs: PodNeeds) -> None:
        for volume in needs.shape.volumes:
            key = (needs.namespace, _name_of(volume, needs))
            self._users[key] -= 1
            if self._users[key] <= 0:
                del self._users[key]


def _name_of(volume: VolumeRef, needs: PodNeeds) -> str:
    return f"{needs.name}-{volume.claim}" if volume.ephemeral else volume.claim
