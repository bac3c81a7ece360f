"""Takes a workload back from a worker: its job is stopped, and when it has no pods any more, job and Workload are removed."""

from __future__ import annotations

from drayman.cluster.errors import NotFoundError
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import JsonObject
from drayman.controllers.multikueue.workers import Worker, resource_of
from drayman.controllers.quota.loop import Key
from drayman.workloads.queued import life
from drayman.workloads.queued.kinds import QueuedKind
from drayman.workloads.queued.places import Object


async def withdraw(worker: Worker, key: Key) -> bool:
    """One step towards a worker without anything of a workload. True when that is reached; each change there leads to the next step."""
    copy, jobs = worker.copy(key), worker.jobs_of(key)
    if copy is None and not jobs:
        return True
    runs = copy is not None and life.holds_quota(copy.status) and not life.is_finished(copy.status)
    if copy is not None and jobs and runs and not copy.is_leaving:
        if copy.spec.active:
            change: JsonObject = {"op": "add", "path": "/spec/active", "value": False}
            await worker.book.change(copy, [change])
        return False
    for kind, job in jobs:
        await remove_job(worker, kind, job)
    if copy is not None:
        await worker.book.delete(copy)
    return False


async def remove_job(worker: Worker, kind: QueuedKind, job: Object) -> None:
    """Delete a job. It is gone when its pods are."""
    metadata = job["metadata"]
    if "deletionTimestamp" in metadata:
        return
    options = DeleteOptions(uid=metadata["uid"], propagation="Foreground")
    try:
        await worker.client.delete(
            resource_of(kind), metadata["name"], metadata["namespace"], options=options
        )
    except NotFoundError:
        return
