"""Pods that have a node but are not bound yet, as their devices or volumes are still being made ready: what they wait for, and how long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import NamedTuple

from drayman.api.resource import ResourceClaim
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim
from drayman.placement.claim_book import ClaimKey
from drayman.placement.claims import binding_deadline, readiness
from drayman.placement.decision.placements import Placement
from drayman.placement.state import ClusterState
from drayman.scheduler.volumes import progress


class Awaited(NamedTuple):
    """An object that pods wait for."""

    resource: str
    namespace: str
    name: str


def awaited_claim(claim: ResourceClaim) -> Awaited:
    return Awaited("resourceclaims", claim.metadata.namespace, claim.metadata.name)


def awaited_volume_claim(claim: PersistentVolumeClaim) -> Awaited:
    return Awaited("persistentvolumeclaims", claim.metadata.namespace, claim.metadata.name)


def awaited_with(volume: PersistentVolume) -> Iterable[Awaited]:
    """A volume, and the claim that it is for."""
    yield Awaited("persistentvolumes", "", volume.metadata.name)
    meant_for = volume.spec.claim_ref
    if meant_for is not None:
        yield Awaited("persistentvolumeclaims", meant_for.namespace, meant_for.name)


class WaitingPods:
    """The pods that wait, by uid and by what they wait for."""

    def __init__(self) -> None:
        self._pods: dict[str, Awaiting] = {}
        self._by_awaited: dict[Awaited, dict[str, None]] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def get(self, uid: str) -> Awaiting | None:
        return self._pods.get(uid)

    def add(self, waiting: Awaiting) -> None:
        uid = waiting.placement.uid
        self.pop(uid)
        self._pods[uid] = waiting
        for each in waiting.awaited:
            self._by_awaited.setdefault(each, {})[uid] = None

    def pop(self, uid: str) -> Awaiting | None:
        waiting = self._pods.pop(uid, None)
        if waiting is not None:
            for each in waiting.awaited:
                uids = self._by_awaited[each]
                del uids[uid]
                if not uids:
                    del self._by_awaited[each]
        return waiting

    def clear(self) -> None:
        self._pods.clear()
        self._by_awaited.clear()

    def that_await(self, awaited: Awaited) -> Iterable[str]:
        return self._by_awaited.get(awaited, ())


@dataclass(frozen=True, slots=True, eq=False)
class Awaiting:
    """What one pod waits for."""

    placement: Placement
    ready_by: Mapping[ClaimKey, float]
    """The claims whose devices it uses, and when those have to be ready."""
    volumes_until: float

    @staticmethod
    def of(state: ClusterState, placement: Placement, now: float, timeout_s: float) -> Awaiting:
        latest = now + timeout_s
        ready_by: dict[ClaimKey, float] = {}
        for claim in (*placement.claims, *placement.held):
            key = (claim.metadata.namespace, claim.metadata.name)
            known = state.find_claim(*key)
            deadline = None if known is None else binding_deadline(known, timeout_s)
            ready_by[key] = latest if deadline is None else deadline
        return Awaiting(placement, ready_by, latest)

    @property
    def deadlines(self) -> Set[float]:
        """When to look at it again even if nothing happens."""
        devices = set(self.ready_by.values())
        return devices if self.placement.volumes is None else {*devices, self.volumes_until}

    @property
    def awaited(self) -> Set[Awaited]:
        """What may make a difference to it."""
        found = {Awaited("resourceclaims", *key) for key in self.ready_by}
        taken = self.placement.volumes
        if taken is not None:
            found.update(map(awaited_volume_claim, taken.awaited))
            found.update(
                Awaited("persistentvolumes", "", name) for name in taken.volume_of.values()
            )
        return found

    def outcome(self, state: ClusterState, now: float) -> tuple[bool, str]:
        """Whether everything is ready, and why it will not be."""
        pending, failure = self._devices(state, now)
        volumes = progress(state, self.placement)
        if volumes.failure and not failure:
            failure = f"volume binding failed: {volumes.failure}"
        if not failure and volumes.pending and now > self.volumes_until:
            failure = f"volume binding timeout: waiting for {', '.join(volumes.pending)}"
        return not (failure or pending or volumes.pending), failure

    def _devices(self, state: ClusterState, now: float) -> tuple[list[str], str]:
        """The devices that are not ready yet, and why they will not be."""
        pending: list[str] = []
        failure = ""
        is_late = False
        for (namespace, name), deadline in self.ready_by.items():
            claim = state.find_claim(namespace, name)
            if claim is None or claim.status.allocation is None:
                failure = f"resource claim {name} was deallocated while its devices were made ready"
                continue
            standing = readiness(claim)
            pending += standing.pending
            is_late = is_late or (bool(standing.pending) and now > deadline)
            if standing.failure:
                failure = f"device binding failed: {standing.failure}"
        if not failure and is_late:
            failure = f"device binding timeout: waiting for {', '.join(pending)}"
        return pending, failure
