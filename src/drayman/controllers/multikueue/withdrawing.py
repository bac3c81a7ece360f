"""Takes a workload back from a worker: what was made for it is stopped, and when nothing runs any more, removed with the Workload."""

from __future__ import annotations

from drayman.cluster.errors import NotFoundError
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import JsonObject, Resource
from drayman.controllers.multikueue.workers import Worker
from drayman.controllers.quota.loop import Key
from drayman.workloads.queued import life
from drayman.workloads.queued.places import Object


async def withdraw(worker: Worker, key: Key) -> bool:
    """One step towards a worker without anything of a workload. True when that is reached; each change there leads to the next step."""
    copy, objects = worker.copy(key), worker.objects_of(key)
    if copy is None and not objects:
        return True
    runs = copy is not None and life.holds_quota(copy.status) and not life.is_finished(copy.status)
    if copy is not None and objects and runs and not copy.is_leaving:
        if copy.spec.active:
            change: JsonObject = {"op": "add", "path": "/spec/active", "value": False}
            await worker.book.change(copy, [change])
        return False
    for resource, obj in objects:
        await remove(worker, resource, obj)
    if copy is not None:
        await worker.book.delete(copy)
    return False


async def remove(worker: Worker, resource: Resource[JsonObject], obj: Object) -> None:
    """Delete a copy. A job is gone when its pods are."""
    metadata = obj["metadata"]
    if "deletionTimestamp" in metadata:
        return
    options = DeleteOptions(uid=metadata["uid"], propagation="Foreground")
    try:
        await worker.client.delete(
            resource, metadata["name"], metadata["namespace"], options=options
        )
    except NotFoundError:
        return
