"""What is about to leave a cluster by itself: pods that are being deleted, and devices that claims of deleted pods still have.

Nobody has to be driven out for room that comes by itself. Devices come free a moment after their pod is gone, when its claim is; in that
moment a workload that waited for the pod must not look for another victim.
"""

from __future__ import annotations

from collections.abc import Iterable

from drayman.api.claim_generation import owning_pod
from drayman.api.core import Pod
from drayman.api.pods import is_finished
from drayman.api.resource import ResourceClaim
from drayman.placement.state import ClusterState
from drayman.placement.trial import Trial


class Departing:
    """Follows the pods and claims of a cluster state."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._pods: dict[str, Pod] = {}  # by uid
        self._claims: dict[str, ResourceClaim] = {}  # by uid

    def begin(self, pods: Iterable[Pod]) -> None:
        """All pods of the cluster, as they are when this begins."""
        there = {pod.metadata.uid: pod for pod in pods}
        for pod in there.values():
            self.see(pod)
        for claim in self._state.allocated_claims():
            owner = owning_pod(claim)
            if owner is not None and owner.uid not in there:
                self._claims[claim.metadata.uid] = claim

    def see(self, pod: Pod) -> None:
        """A pod as the server shows it."""
        if is_finished(pod):
            self.lose(pod)
        elif pod.metadata.deletion_timestamp is not None:
            self._pods[pod.metadata.uid] = pod

    def lose(self, pod: Pod) -> None:
        """A pod is gone, or has ended."""
        self._pods.pop(pod.metadata.uid, None)
        for claim in self._state.claims_used_by(pod):
            owner = owning_pod(claim)
            if owner is not None and owner.uid == pod.metadata.uid:
                self._claims[claim.metadata.uid] = claim

    def see_claim(self, claim: ResourceClaim) -> None:
        """A claim as the server shows it."""
        if claim.status.allocation is None:
            self.lose_claim(claim)

    def lose_claim(self, claim: ResourceClaim) -> None:
        self._claims.pop(claim.metadata.uid, None)

    def leave(self, trial: Trial) -> None:
        """In a trial of the state: all of it is gone."""
        for uid, pod in self._pods.items():
            if trial.counts(uid):
                trial.evict(uid, self._state.claims_used_by(pod))
        for claim in self._claims.values():
            trial.free(claim)
