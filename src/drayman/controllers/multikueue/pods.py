"""Pods that run in another cluster, alone or as a group: copied to their worker, and what becomes of them brought back.

The originals stay behind their gates. They are the owners of their Workload; one that comes later, in the place of one that failed, becomes
an owner, too, and is copied then.
"""

from __future__ import annotations

from typing import Final

from drayman.api.core import Pod
from drayman.api.pods import is_finished
from drayman.bounded import Bounded
from drayman.cluster.errors import AlreadyExistsError, NotFoundError
from drayman.cluster.event_buffer import Reference
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import PODS
from drayman.controllers.multikueue.withdrawing import remove
from drayman.controllers.multikueue.workers import POD_VALUES, Worker
from drayman.controllers.quota.book import Known
from drayman.controllers.quota.shared import Shared
from drayman.workloads.dispatching.names import COPY_OF, ORIGIN
from drayman.workloads.dispatching.pods import (
    is_wanted,
    pod_copy,
    shown_status,
    shows_copy,
    waiting_status,
)
from drayman.workloads.queued import life
from drayman.workloads.queued.names import annotations_of
from drayman.workloads.queued.places import Object

_MOST_SHOWN: Final = 100_000


class PodMirroring:
    """Pods of the manager, and their copies."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._cache = shared.informers.informer(PODS).cache
        self._shown: Bounded[str, tuple[str, str]] = Bounded(_MOST_SHOWN)
        """By the uid of an original, the worker and the version of the copy that it shows."""

    def covers(self, known: Known) -> bool:
        owners = known.workload.metadata.owner_references
        return any((owner.api_version, owner.kind) == ("v1", "Pod") for owner in owners)

    def is_here(self, known: Known) -> bool:
        return bool(self._originals(known))

    def _originals(self, known: Known) -> list[Pod]:
        found = []
        for owner in known.workload.metadata.owner_references:
            pod = self._cache.get(owner.name, known.key[0]) if owner.kind == "Pod" else None
            if pod is not None and pod.metadata.uid == owner.uid:
                found.append(pod)
        return found

    def obstacle(self, worker: Worker, known: Known, origin: str) -> str:
        for pod in self._originals(known):
            there = worker.find_pod(known.key[0], pod.metadata.name)
            if there is not None and there.metadata.labels.get(ORIGIN) != origin:
                return f"it has a Pod {pod.metadata.name} of its own"
        return ""

    async def create(self, worker: Worker, known: Known, origin: str) -> None:
        """Have a copy of each pod there, and none of others."""
        wanted = {pod.metadata.uid: pod for pod in self._originals(known) if is_wanted(pod)}
        present = {_original_of(each): each for each in worker.pods_of(known.key)}
        kept = {pod.metadata.uid for pod in self._originals(known) if is_finished(pod)}
        for uid, copy in present.items():
            if uid not in wanted and uid not in kept:
                await remove(worker, POD_VALUES, copy)
        for uid, pod in wanted.items():
            if uid not in present:
                await self._create(worker, known, pod, origin)

    async def _create(self, worker: Worker, known: Known, pod: Pod, origin: str) -> None:
        metadata = pod.metadata
        try:
            whole = await self._shared.client.get(POD_VALUES, metadata.name, metadata.namespace)
        except NotFoundError:
            return
        if whole["metadata"]["uid"] != metadata.uid:
            return
        try:
            await worker.client.create(POD_VALUES, pod_copy(whole, known.name, origin))
        except AlreadyExistsError:
            return  # An earlier one of the same name has not gone yet; when it has, this is called again.
        note = f"It runs in cluster {worker.name}: its log is there"
        recorder = self._shared.recorder
        recorder.record(Reference.to(PODS, pod), "Normal", "Dispatched", note, "Dispatched")

    async def bring_back(self, worker: Worker, known: Known) -> None:
        workload = worker.copy(known.key)
        has_ended = workload is not None and life.is_finished(workload.status)
        # What is being deleted ends by that, and begins anew unless the worker says that it was the end.
        present = {
            _original_of(each): each
            for each in worker.pods_of(known.key)
            if has_ended or "deletionTimestamp" not in each["metadata"]
        }
        for pod in self._originals(known):
            copy = present.get(pod.metadata.uid)
            if copy is None or is_finished(pod):
                continue
            version = (worker.name, str(copy["metadata"]["resourceVersion"]))
            if self._shown.get(pod.metadata.uid) != version:
                status = shown_status(copy.get("status") or {}, worker.name, self._shared.clock())
                await self._write(pod, status)
                self._shown[pod.metadata.uid] = version

    async def clear(self, known: Known) -> bool:
        for pod in self._originals(known):
            self._shown.pop(pod.metadata.uid, None)
            if shows_copy(pod) and not is_finished(pod):
                await self._write(pod, waiting_status(self._shared.clock()))
        return True

    async def _write(self, pod: Pod, status: Object) -> None:
        metadata = pod.metadata
        patch = merge_patch({"metadata": {"uid": metadata.uid}, "status": status})
        try:
            await self._shared.client.patch(
                POD_VALUES, metadata.name, patch, metadata.namespace, subresource="status"
            )
        except NotFoundError:
            return  # It is gone, and its Workload follows.


def _original_of(copy: Object) -> str:
    return annotations_of(copy).get(COPY_OF, "")
