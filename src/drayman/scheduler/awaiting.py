"""A pod that has a node but is not bound yet, because its devices or volumes are still being made ready: what it waits for and how long."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from drayman.api.resource import ResourceClaim
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim
from drayman.api.times import seconds_of
from drayman.placement.claim_book import ClaimKey
from drayman.placement.claims import readiness
from drayman.placement.decision.placements import Placement
from drayman.placement.state import ClusterState
from drayman.scheduler.volumes import concerns, progress


@dataclass(frozen=True, slots=True, eq=False)
class Awaiting:
    """What one pod waits for."""

    placement: Placement
    claims: tuple[ClaimKey, ...]
    """Those whose devices it uses."""
    devices_until: float
    """Counted from their allocation: another attempt does not restart it."""
    volumes_until: float

    @staticmethod
    def of(state: ClusterState, placement: Placement, now: float, timeout_s: float) -> Awaiting:
        claims = tuple(
            (claim.metadata.namespace, claim.metadata.name)
            for claim in (*placement.claims, *placement.held)
        )
        found = (state.find_claim(*key) for key in claims)
        started = (
            seconds_of(claim.status.allocation.allocation_timestamp)
            for claim in found
            if claim is not None and claim.status.allocation is not None
        )
        since = min((begun for begun in started if begun is not None), default=now)
        return Awaiting(placement, claims, since + timeout_s, now + timeout_s)

    @property
    def deadlines(self) -> Set[float]:
        """When to look at it again even if nothing happens."""
        if self.placement.volumes is None:
            return {self.devices_until}
        return {self.devices_until, self.volumes_until}

    def awaits(self, claim: ResourceClaim) -> bool:
        return (claim.metadata.namespace, claim.metadata.name) in self.claims

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
        for namespace, name in self.claims:
            claim = state.find_claim(namespace, name)
            if claim is None or claim.status.allocation is None:
                failure = f"resource claim {name} was deallocated while its devices were made ready"
                continue
            standing = readiness(claim)
            pending += standing.pending
            if standing.failure:
                failure = f"device binding failed: {standing.failure}"
        if not failure and pending and now > self.devices_until:
            failure = f"device binding timeout: waiting for {', '.join(pending)}"
        return pending, failure
