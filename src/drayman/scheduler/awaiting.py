"""A pod that has a node but is not bound yet, because its devices or volumes are still being made ready: what it waits for and how long."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from drayman.api.resource import ResourceClaim
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim
from drayman.placement.claim_book import ClaimKey
from drayman.placement.claims import binding_deadline, readiness
from drayman.placement.decision.placements import Placement
from drayman.placement.state import ClusterState
from drayman.scheduler.volumes import concerns, progress


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

    def awaits(self, claim: ResourceClaim) -> bool:
        return (claim.metadata.namespace, claim.metadata.name) in self.ready_by

    def awaits_volume_claim(self, claim: PersistentVolumeClaim) -> bool:
        taken, metadata = self.placement.volumes, claim.metadata
        return taken is not None and any(
            (each.metadata.namespace, each.metadata.name) == (metadata.namespace, metadata.name)
            for each in taken.awaited
        )

    def awaits_volume(self, state: ClusterState, volume: PersistentVolume) -> bool:
        taken = self.placement.volumes
        return taken is not None and concerns(state, taken, volume)

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
