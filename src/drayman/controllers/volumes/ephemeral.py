"""Makes the claims of volumes that live as long as their pod."""

from __future__ import annotations

from typing import Final

from drayman.api.core import Pod
from drayman.api.pods import is_leaving
from drayman.api.storage import PersistentVolumeClaim
from drayman.api.volume_binding import volume_claims_of
from drayman.cluster.errors import AlreadyExistsError
from drayman.cluster.informer import Notice
from drayman.cluster.resources import PODS, VOLUME_CLAIMS, JsonObject
from drayman.controllers.workloads.reconciling import Key, Reconciler
from drayman.workloads.volumes.ephemeral import claims_for

_CLAIM_VALUES: Final = VOLUME_CLAIMS.as_values()


class EphemeralVolumeController(Reconciler[Pod]):
    """Makes claims from the templates in pods."""

    resource = PODS
    component = "ephemeral-volume-controller"
    workers = 1

    def follow_others(self) -> None:
        self._claims = self.follow(VOLUME_CLAIMS, self._claim_changed)

    def concerns(self, value: Pod) -> bool:
        # Few pods have such volumes, and nothing else about pods is of interest here.
        return any(volume.ephemeral for volume in value.spec.volumes)

    def _claim_changed(self, notice: Notice[PersistentVolumeClaim]) -> None:
        """A pod may have waited for the claim of an earlier one of its name to go."""
        if notice.type != "DELETED":
            return
        metadata = notice.object.metadata
        for pod in self.in_namespace(metadata.namespace):
            if metadata.name in volume_claims_of(pod):
                self.queue.add((metadata.namespace, pod.metadata.name))

    async def reconcile(self, key: Key) -> None:
        pod = self.find(key)
        if pod is None or is_leaving(pod):
            return
        for body in claims_for(pod):
            if self._claims.get(body["metadata"]["name"], key[0]) is None:
                await self._make(body)

    async def _make(self, body: JsonObject) -> None:
        try:
            await self.client.create(_CLAIM_VALUES, body)
        except AlreadyExistsError:
            # Ours from a moment ago; or not this pod's, which the scheduler reports.
            return
