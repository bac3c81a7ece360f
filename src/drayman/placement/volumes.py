"""Volumes as far as scheduling depends on them: claims, what they are or will be bound to, and which pods use them.

As with devices, a decision counts from the moment it is made (`take`), so that no volume is promised twice, and is taken back if it cannot
be written (`give_back`). The newest version of an object wins, whatever its source; while a write of ours is under way for it, our decision
counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from drayman.api.storage import (
    CSIDriver,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from drayman.api.volume_binding import class_name_of, for_node, reserved_for
from drayman.inventory.undo import UndoLog
from drayman.placement.fit import PodNeeds, VolumeChoice, claim_name

Key = tuple[str, str]
"""Namespace and name of a claim."""
T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)


class Taken(Struct, frozen=True):
    """What was decided about the volumes of one pod."""

    volumes: tuple[PersistentVolume, ...]
    """Those that change, as they will be."""
    claims: tuple[PersistentVolumeClaim, ...]
    """Likewise."""
    awaited: tuple[PersistentVolumeClaim, ...]
    """All claims of the pod that had no volume, including those that an earlier decision takes care of."""
    volume_of: Mapping[str, str]
    """The names of the volumes that claims get, by the name of the claim. For other claims a volume is provisioned."""


class Volumes:
    """Implements what `fit.volume_check` asks for."""

    def __init__(self, log: UndoLog | None = None) -> None:
        self._log = log or UndoLog()
        self._claims: dict[Key, PersistentVolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._by_class: dict[str, dict[str, None]] = {}  # names of volumes
        self._classes: dict[str, StorageClass] = {}
        self._drivers: dict[str, CSIDriver] = {}
        self._capacities: dict[str, dict[Key, CSIStorageCapacity]] = {}  # by class
        self._users: Counter[Key] = Counter()
        # As our writes will leave them.
        self._assumed_claims: dict[Key, PersistentVolumeClaim] = {}
        self._assumed_volumes: dict[str, PersistentVolume] = {}

    # Reading.

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        known = self._claims.get((namespace, name))
        if not self._assumed_claims or known is None:
            return known
        assumed = self._assumed_claims.get((namespace, name), known)
        return assumed if assumed.metadata.uid == known.metadata.uid else known

    def volume(self, name: str) -> PersistentVolume | None:
        known = self._volumes.get(name)
        if not self._assumed_volumes or known is None:
            return known
        assumed = self._assumed_volumes.get(name, known)
        return assumed if assumed.metadata.uid == known.metadata.uid else known

    def storage_class(self, name: str) -> StorageClass | None:
        return self._classes.get(name)

    def of_class(self, name: str) -> Iterator[PersistentVolume]:
        for each in self._by_class.get(name, ()):
            volume = self.volume(each)
            if volume is not None:
                yield volume

    def capacities(self, storage_class: StorageClass) -> Sequence[CSIStorageCapacity] | None:
        driver = self._drivers.get(storage_class.provisioner)
        if driver is None or not driver.spec.storage_capacity:
            return None
        return tuple(self._capacities.get(storage_class.metadata.name, {}).values())

    def in_use(self, namespace: str, name: str) -> bool:
        return self._users[namespace, name] > 0

    def known_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim | None:
        """The claim as last shown by the server; None if it is gone."""
        known = self._claims.get(_key(claim))
        return None if known is None or known.metadata.uid != claim.metadata.uid else known

    def known_volume(self, volume: PersistentVolume) -> PersistentVolume | None:
        known = self._volumes.get(volume.metadata.name)
        return None if known is None or known.metadata.uid != volume.metadata.uid else known

    # What the API server shows.

    def set_claim(self, claim: PersistentVolumeClaim) -> None:
        known = self._claims.get(_key(claim))
        if known is None or _is_news(known, claim):
            self._log.put(self._claims, _key(claim), claim)

    def remove_claim(self, claim: PersistentVolumeClaim) -> None:
        self._log.pop(self._claims, _key(claim))
        self._log.pop(self._assumed_claims, _key(claim))

    def set_volume(self, volume: PersistentVolume) -> None:
        name = volume.metadata.name
        known = self._volumes.get(name)
        if known is not None:
            if not _is_news(known, volume):
                return
            self._unfile(known)
        self._log.put(self._volumes, name, volume)
        self._file(volume)

    def remove_volume(self, volume: PersistentVolume) -> None:
        known = self._log.pop(self._volumes, volume.metadata.name)
        if known is not None:
            self._unfile(known)
        self._log.pop(self._assumed_volumes, volume.metadata.name)

    def set_class(self, storage_class: StorageClass) -> None:
        self._log.put(self._classes, storage_class.metadata.name, storage_class)

    def remove_class(self, storage_class: StorageClass) -> None:
        self._log.pop(self._classes, storage_class.metadata.name)

    def set_driver(self, driver: CSIDriver) -> None:
        self._log.put(self._drivers, driver.metadata.name, driver)

    def remove_driver(self, driver: CSIDriver) -> None:
        self._log.pop(self._drivers, driver.metadata.name)

    def set_capacity(self, capacity: CSIStorageCapacity) -> None:
        # Its class cannot be changed.
        of_class = self._capacities.get(capacity.storage_class_name)
        if of_class is None:
            of_class = {}
            self._log.put(self._capacities, capacity.storage_class_name, of_class)
        self._log.put(of_class, _key(capacity), capacity)

    def remove_capacity(self, capacity: CSIStorageCapacity) -> None:
        self._log.pop(self._capacities.get(capacity.storage_class_name, {}), _key(capacity))

    def add_pod(self, needs: PodNeeds) -> None:
        for volume in needs.shape.volumes:
            self._users[needs.namespace, claim_name(needs, volume)] += 1

    def remove_pod(self, needs: PodNeeds) -> None:
        for volume in needs.shape.volumes:
            key = (needs.namespace, claim_name(needs, volume))
            self._users[key] -= 1
            if self._users[key] <= 0:
                del self._users[key]

    # Deciding.

    def take(self, choice: VolumeChoice, node: str) -> Taken:
        """The claims of a pod get what was chosen for them. What an earlier decision has handled is not changed again."""
        volumes, claims = [], []
        for claim, volume in choice.bindings:
            wanted = reserved_for(volume, claim)
            if wanted is not volume:
                self._log.put(self._assumed_volumes, volume.metadata.name, wanted)
                volumes.append(wanted)
        for claim in choice.provisions:
            marked = for_node(claim, node)
            if marked is not claim:
                self._log.put(self._assumed_claims, _key(claim), marked)
                claims.append(marked)
        awaited = (*(claim for claim, _ in choice.bindings), *choice.provisions)
        volume_of = {c.metadata.name: v.metadata.name for c, v in choice.bindings}
        return Taken(tuple(volumes), tuple(claims), awaited, volume_of)

    def give_back(self, taken: Taken) -> None:
        """The decision is not carried out: any part of it that is not written no longer counts."""
        for volume in taken.volumes:
            self._settle(volume)
        for claim in taken.claims:
            self._settle(claim)

    def confirm(self, written: PersistentVolume | PersistentVolumeClaim) -> None:
        """A write succeeded; this is the object as the server stored it. An object deleted in the meantime stays deleted."""
        self._settle(written)
        if isinstance(written, PersistentVolume):
            if self.known_volume(written) is not None:
                self.set_volume(written)
        elif self.known_claim(written) is not None:
            self.set_claim(written)

    def _settle(self, changed: PersistentVolume | PersistentVolumeClaim) -> None:
        """No write of ours is under way any more for an object. There may be one for another that has its name by now."""
        uid = changed.metadata.uid
        if isinstance(changed, PersistentVolume):
            volume = self._assumed_volumes.get(changed.metadata.name)
            if volume is not None and volume.metadata.uid == uid:
                self._log.pop(self._assumed_volumes, changed.metadata.name)
        else:
            claim = self._assumed_claims.get(_key(changed))
            if claim is not None and claim.metadata.uid == uid:
                self._log.pop(self._assumed_claims, _key(changed))

    def _file(self, volume: PersistentVolume) -> None:
        self._log.note(self._unfile, volume)
        self._by_class.setdefault(class_name_of(volume), {})[volume.metadata.name] = None

    def _unfile(self, volume: PersistentVolume) -> None:
        self._log.note(self._file, volume)
        name = class_name_of(volume)
        filed = self._by_class[name]
        filed.pop(volume.metadata.name, None)
        if not filed:
            del self._by_class[name]


def _key(value: PersistentVolumeClaim | CSIStorageCapacity) -> Key:
    return value.metadata.namespace, value.metadata.name


def _is_news(known: T, shown: T) -> bool:
    if known.metadata.uid != shown.metadata.uid:
        return True
    return _version(known) <= _version(shown)


def _version(value: PersistentVolume | PersistentVolumeClaim) -> int:
    return int(value.metadata.resource_version or 0)
