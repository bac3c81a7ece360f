"""What becomes of a volume when its claim comes and goes: available, bound, released, and then kept, reused or deleted by its policy."""

from __future__ import annotations

from drayman.api.storage import PersistentVolume, PersistentVolumeClaim
from drayman.api.struct import Json
from drayman.api.volume_binding import (
    AVAILABLE,
    BOUND,
    BOUND_BY_CONTROLLER,
    PROVISIONED_BY,
    RELEASED,
    is_set_aside,
)
from drayman.cluster.errors import NotFoundError
from drayman.cluster.informer import Notice
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import PERSISTENT_VOLUMES, VOLUME_CLAIMS
from drayman.cluster.writes import PartsWrite, Path
from drayman.controllers.workloads.reconciling import Key, Reconciler


class VolumeController(Reconciler[PersistentVolume]):
    """Sets the phase of volumes, and reclaims those whose claim is gone."""

    resource = PERSISTENT_VOLUMES
    component = "persistentvolume-controller"
    workers = 1

    def follow_others(self) -> None:
        self._claims = self.follow(VOLUME_CLAIMS, self._claim_changed)

    async def reconcile(self, key: Key) -> None:
        volume = self.find(key)
        if volume is None or volume.metadata.deletion_timestamp is not None:
            return
        ref = volume.spec.claim_ref
        if ref is None or not ref.uid:
            await self._set_phase(volume, AVAILABLE)
            return
        claim = await self._claim_of(volume)
        if claim is None:
            await self._reclaim(volume)
        elif claim.spec.volume_name == volume.metadata.name:
            await self._set_phase(volume, BOUND)
        elif claim.spec.volume_name:
            await self._let_go(volume)

    def _claim_changed(self, notice: Notice[PersistentVolumeClaim]) -> None:
        for claim in (notice.object, notice.old):
            if claim is not None and claim.spec.volume_name:
                self.queue.add(("", claim.spec.volume_name))

    async def _claim_of(self, volume: PersistentVolume) -> PersistentVolumeClaim | None:
        """The claim that a volume is meant for. Before it is considered gone, the server is asked."""
        ref = volume.spec.claim_ref
        if ref is None:
            return None
        claim = self._claims.get(ref.name, ref.namespace)
        if claim is None or not is_set_aside(volume, claim):
            try:
                claim = await self.client.get(VOLUME_CLAIMS, ref.name, ref.namespace)
            except NotFoundError:
                return None
        return claim if is_set_aside(volume, claim) else None

    async def _reclaim(self, volume: PersistentVolume) -> None:
        match volume.spec.persistent_volume_reclaim_policy:
            case "Delete":
                await self._set_phase(volume, RELEASED)
                await self._delete(volume)
            case "Recycle":  # there is nothing on it that would have to be wiped
                await self._let_go(volume)
            case _:
                await self._set_phase(volume, RELEASED)

    async def _let_go(self, volume: PersistentVolume) -> None:
        """The claim is gone, or has got another volume: this one is available to others."""
        annotations = dict(volume.metadata.annotations)
        if PROVISIONED_BY in annotations:
            await self._delete(volume)
            return
        annotations.pop(BOUND_BY_CONTROLLER, None)
        parts: dict[Path, Json] = {("spec", "claimRef"): None, ("status", "phase"): AVAILABLE}
        parts["metadata", "annotations"] = annotations or None
        await self._write(volume, parts)

    async def _delete(self, volume: PersistentVolume) -> None:
        options = DeleteOptions(uid=volume.metadata.uid)
        await self.client.delete(PERSISTENT_VOLUMES, volume.metadata.name, options=options)

    async def _set_phase(self, volume: PersistentVolume, phase: str) -> None:
        if volume.status.phase != phase:
            await self._write(volume, {("status", "phase"): phase})

    async def _write(self, volume: PersistentVolume, parts: dict[Path, Json]) -> None:
        write = PartsWrite.of(PERSISTENT_VOLUMES, volume, parts)
        (written,) = await self.client.write_many([write])
        if isinstance(written, PersistentVolume):
            self.wrote(written)
