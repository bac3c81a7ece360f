"""Lets deleted volume claims and volumes go once nothing uses them.

The server gives each a finalizer, so that a volume is not pulled from under a running pod. It is taken off here when no pod on a node uses
the claim, and no claim names the volume.
"""

from __future__ import annotations

import time
from typing import Final

from drayman.api.core import Pod
from drayman.api.pods import is_finished
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim
from drayman.api.volume_binding import volume_claims_of
from drayman.cluster.client import Client
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.resources import PERSISTENT_VOLUMES, PODS, VOLUME_CLAIMS
from drayman.controllers.workloads.protection import Protection, is_leaving
from drayman.controllers.workloads.reconciling import Clock, Key

_CLAIM_PROTECTION: Final = "kubernetes.io/pvc-protection"
_VOLUME_PROTECTION: Final = "kubernetes.io/pv-protection"


def _uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether a pod uses a claim: it has a node and has not ended. One without a node would only wait for a claim that is being deleted."""
    if not pod.spec.volumes or not pod.spec.node_name or is_finished(pod):
        return False
    named = (volume.persistent_volume_claim for volume in pod.spec.volumes)
    if any(source is not None and source.claim_name == claim.metadata.name for source in named):
        return True
    # One that was made for a pod is its own; an earlier pod of the same name may have left one behind.
    owners = claim.metadata.owner_references
    return claim.metadata.name in volume_claims_of(pod) and any(
        o.uid == pod.metadata.uid for o in owners
    )


class VolumeClaimProtectionController(Protection[PersistentVolumeClaim]):
    """Lets claims go when the last pod that uses them has ended."""

    resource = VOLUME_CLAIMS
    component = "pvc-protection-controller"
    workers = 1

    def __init__(self, client: Client, informers: Informers, *, clock: Clock = time.time) -> None:
        super().__init__(client, informers, clock=clock)
        self._pods = informers.informer(PODS)
        self._pods.add_handler(self._pod_changed)

    async def reconcile(self, key: Key) -> None:
        claim = self.find(key)
        if claim is None or not is_leaving(claim, _CLAIM_PROTECTION):
            return
        # Deleted claims are rare, so no index is kept for them.
        if not any(
            pod.metadata.namespace == key[0] and _uses(pod, claim) for pod in self._pods.cache
        ):
            await self.unprotect(claim, _CLAIM_PROTECTION)

    def _pod_changed(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        if not pod.spec.volumes or (notice.type != "DELETED" and not is_finished(pod)):
            return
        for name in volume_claims_of(pod):
            self.queue.add((pod.metadata.namespace, name))


class VolumeProtectionController(Protection[PersistentVolume]):
    """Lets volumes go when no claim has them."""

    resource = PERSISTENT_VOLUMES
    component = "pv-protection-controller"
    workers = 1

    def __init__(self, client: Client, informers: Informers, *, clock: Clock = time.time) -> None:
        super().__init__(client, informers, clock=clock)
        self._claims = informers.informer(VOLUME_CLAIMS)
        self._claims.add_handler(self._claim_changed)

    async def reconcile(self, key: Key) -> None:
        volume = self.find(key)
        if volume is None or not is_leaving(volume, _VOLUME_PROTECTION):
            return
        if not any(claim.spec.volume_name == key[1] for claim in self._claims.cache):
            await self.unprotect(volume, _VOLUME_PROTECTION)

    def _claim_changed(self, notice: Notice[PersistentVolumeClaim]) -> None:
        if notice.type == "DELETED" and notice.object.spec.volume_name:
            self.queue.add(("", notice.object.spec.volume_name))
