"""The job of a workload: created on its worker, and what becomes of it brought back to the manager.

A job on the manager whose own controller leaves it alone (`managedBy`) shows the status of its copy while that runs. Others show how it
ended: until then they stay suspended, and their status is their own controller's.
"""

from __future__ import annotations

from typing import Protocol

from drayman.cluster.errors import NotFoundError
from drayman.cluster.patches import json_patch
from drayman.cluster.resources import JsonObject
from drayman.controllers.multikueue.withdrawing import remove
from drayman.controllers.multikueue.workers import Jobs, Worker, resource_of
from drayman.controllers.quota.book import Known
from drayman.controllers.quota.loop import Key
from drayman.controllers.quota.shared import Shared
from drayman.workloads.dispatching.copies import job_copy
from drayman.workloads.dispatching.names import COPY_OF, ORIGIN, is_left_to_dispatcher
from drayman.workloads.queued.kinds import BY_KIND, QueuedKind
from drayman.workloads.queued.names import annotations_of, labels_of
from drayman.workloads.queued.places import Object


class Mirroring(Protocol):
    """What can be handed over, of some kinds."""

    def covers(self, known: Known) -> bool:
        """Whether a Workload is for something of these kinds, here or gone."""

    def is_here(self, known: Known) -> bool:
        """Whether what a Workload was made for exists."""

    def obstacle(self, worker: Worker, known: Known, origin: str) -> str:
        """What a worker has in its place; empty if nothing is in the way."""

    async def create(self, worker: Worker, known: Known, origin: str) -> None:
        """Have it on its worker."""

    async def bring_back(self, worker: Worker, known: Known) -> None:
        """Show on the manager what became of it."""

    async def clear(self, known: Known) -> bool:
        """Nothing of it runs elsewhere: it is as if it had never begun. True when that is so, or there is nothing to show it."""


class JobMirroring:
    """Jobs of the manager, and their copies."""

    def __init__(self, shared: Shared, jobs: Jobs) -> None:
        self._shared = shared
        self._jobs = jobs

    def job_of(self, known: Known) -> tuple[QueuedKind, Object] | None:
        """What a Workload was made for; None if that is of a kind that cannot be handed over, or gone."""
        for owner in known.workload.metadata.owner_references:
            kind = BY_KIND.get((owner.api_version.rpartition("/")[0], owner.kind))
            if kind is not None:
                found = self._jobs.find(kind, (known.key[0], owner.name))
                if found is not None and found["metadata"].get("uid") == owner.uid:
                    return kind, found
        return None

    def covers(self, known: Known) -> bool:
        return any(
            (owner.api_version.rpartition("/")[0], owner.kind) in BY_KIND
            for owner in known.workload.metadata.owner_references
        )

    def is_here(self, known: Known) -> bool:
        return self.job_of(known) is not None

    def obstacle(self, worker: Worker, known: Known, origin: str) -> str:
        found = self.job_of(known)
        if found is None:
            return ""
        kind, job = found
        there = worker.jobs.find(kind, _key(job))
        if there is None or labels_of(there).get(ORIGIN) == origin:
            return ""
        return f"it has a {kind.kind} {job['metadata']['name']} of its own"

    async def create(self, worker: Worker, known: Known, origin: str) -> None:
        found = self.job_of(known)
        if found is None:
            return
        kind, job = found
        there = worker.jobs.find(kind, _key(job))
        if there is not None:
            if annotations_of(there).get(COPY_OF) != job["metadata"]["uid"]:
                await remove(
                    worker, resource_of(kind), there
                )  # Of an earlier job of the same name.
            return
        metadata = job["metadata"]
        whole = await self._shared.client.get(
            resource_of(kind), metadata["name"], metadata["namespace"]
        )
        body = job_copy(kind, whole, known.name, known.spec.pod_sets, origin)
        await worker.client.create(resource_of(kind), body)
        note = f"Its pods run in cluster {worker.name}: their logs are there"
        self._shared.record(resource_of(kind), whole, "Normal", "Dispatched", note)

    async def bring_back(self, worker: Worker, known: Known) -> None:
        found = self.job_of(known)
        if found is None:
            return
        kind, job = found
        there = worker.jobs.find(kind, _key(job))
        if there is None or annotations_of(there).get(COPY_OF) != job["metadata"]["uid"]:
            return
        has_ended = kind.ended(there) is not None
        shows = is_left_to_dispatcher(kind, job) and not kind.is_suspended(job)
        if (shows or has_ended) and kind.ended(job) is None:
            await self._write(kind, job, there.get("status") or {})

    async def clear(self, known: Known) -> bool:
        found = self.job_of(known)
        if found is None or not is_left_to_dispatcher(*found):
            return True
        kind, job = found
        if kind.ended(job) is not None:
            return True
        if not kind.is_suspended(job):
            return False  # Whoever starts and stops jobs here has not stopped it yet; then this is called again.
        await self._write(kind, job, {})
        return True

    async def _write(self, kind: QueuedKind, job: Object, status: Object) -> None:
        if (job.get("status") or {}) == status:
            return
        metadata = job["metadata"]
        version: JsonObject = {
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": metadata["resourceVersion"],
        }
        patch = json_patch([version, {"op": "add", "path": "/status", "value": status}])
        try:
            await self._shared.client.patch(
                resource_of(kind),
                metadata["name"],
                patch,
                metadata["namespace"],
                subresource="status",
            )
        except NotFoundError:
            return  # It is gone, and its Workload follows.


def _key(job: Object) -> Key:
    metadata = job["metadata"]
    return metadata.get("namespace", ""), metadata["name"]
