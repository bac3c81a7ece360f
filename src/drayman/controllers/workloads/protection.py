"""Lets deleted volume claims, volumes and groups of pods go once nothing uses them.

The server gives each a finalizer: a volume must not be pulled from under a running pod, nor the claims that a group shares. It is taken off
here when no pod on a node uses the claim, no claim names the volume, and the pods of the group have ended. Deleted objects are rare, so no
index is kept for them.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, TypeVar

from drayman.api.core import Pod
from drayman.api.pod_groups import PodGroup
from drayman.api.pods import group_key, is_finished
from drayman.api.storage import PersistentVolume, PersistentVolumeClaim
from drayman.api.volume_binding import volume_claims_of
from drayman.cluster.informer import Notice
from drayman.cluster.patches import strategic_merge_patch
from drayman.cluster.resources import PERSISTENT_VOLUMES, POD_GROUPS, PODS, VOLUME_CLAIMS
from drayman.controllers.workloads.holdings import HasMetadata
from drayman.controllers.workloads.reconciling import Key, Reconciler

T = TypeVar("T", bound=HasMetadata)


class Protection(Reconciler[T]):
    """Takes one finalizer off what has been deleted and is no longer used."""

    finalizer: ClassVar[str]
    workers = 1

    @abstractmethod
    def is_used(self, value: T) -> bool:
        """Whether an object that has been deleted has to stay."""

    async def reconcile(self, key: Key) -> None:
        value = self.find(key)
        if value is None:
            return
        metadata = value.metadata
        if metadata.deletion_timestamp is None or self.finalizer not in metadata.finalizers:
            return
        if not self.is_used(value):
            change = {"uid": metadata.uid, "$deleteFromPrimitiveList/finalizers": [self.finalizer]}
            await self.client.patch(
                self.resource,
                metadata.name,
                strategic_merge_patch({"metadata": change}),
                metadata.namespace or None,
            )


class VolumeClaimProtectionController(Protection[PersistentVolumeClaim]):
    """Lets claims go when the last pod that uses them has ended."""

    resource = VOLUME_CLAIMS
    component = "pvc-protection-controller"
    finalizer = "kubernetes.io/pvc-protection"

    def follow_others(self) -> None:
        self._pods = self.follow(PODS, self._pod_changed)

    def is_used(self, value: PersistentVolumeClaim) -> bool:
        namespace = value.metadata.namespace
        return any(pod.metadata.namespace == namespace and _uses(pod, value) for pod in self._pods)

    def _pod_changed(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        if not pod.spec.volumes or (notice.type != "DELETED" and not is_finished(pod)):
            return
        for name in volume_claims_of(pod):
            self.queue.add((pod.metadata.namespace, name))


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


class VolumeProtectionController(Protection[PersistentVolume]):
    """Lets volumes go when no claim has them."""

    resource = PERSISTENT_VOLUMES
    component = "pv-protection-controller"
    finalizer = "kubernetes.io/pv-protection"

    def follow_others(self) -> None:
        self._claims = self.follow(VOLUME_CLAIMS, self._claim_changed)

    def is_used(self, value: PersistentVolume) -> bool:
        return any(claim.spec.volume_name == value.metadata.name for claim in self._claims)

    def _claim_changed(self, notice: Notice[PersistentVolumeClaim]) -> None:
        if notice.type == "DELETED" and notice.object.spec.volume_name:
            self.queue.add(("", notice.object.spec.volume_name))


class PodGroupProtectionController(Protection[PodGroup]):
    """Lets groups go when the last of their pods has ended."""

    resource = POD_GROUPS
    component = "podgroup-protection-controller"
    finalizer = "scheduling.k8s.io/podgroup-protection"

    def follow_others(self) -> None:
        self._pods = self.follow(PODS, self._pod_changed)

    def is_used(self, value: PodGroup) -> bool:
        key = (value.metadata.namespace, value.metadata.name)
        return any(group_key(pod) == key and not is_finished(pod) for pod in self._pods)

    def _pod_changed(self, notice: Notice[Pod]) -> None:
        pod = notice.object
        group = group_key(pod)
        if group is not None and (notice.type == "DELETED" or is_finished(pod)):
            self.queue.add(group)
