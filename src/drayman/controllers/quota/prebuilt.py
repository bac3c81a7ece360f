"""Workloads that somebody has made before the object that they are for (`kueue.x-k8s.io/prebuilt-workload-name`)."""

from __future__ import annotations

from drayman.cluster.resources import JsonObject
from drayman.controllers.quota.book import Known
from drayman.controllers.quota.shared import Shared
from drayman.workloads.queued.places import Object


async def adopt(shared: Shared, namespace: str, name: str, owner: Object) -> Known | None:
    """The Workload of that name, which belongs to the owner from now on; None if there is none, or it is somebody else's."""
    found = shared.book.find((namespace, name))
    if found is None:
        return None
    owners = {each.uid for each in found.workload.metadata.owner_references}
    if owner["uid"] in owners:
        return found
    if owners:
        return None
    change: JsonObject = {"op": "add", "path": "/metadata/ownerReferences", "value": [owner]}
    return await shared.book.change(found, [change])
