"""Writes about pods that wait in queues: letting one go, deleting one, and taking off the finalizer that keeps it countable."""

from __future__ import annotations

from collections.abc import Sequence

from drayman.api.core import EventType, Pod
from drayman.api.kueue_workload import PodSet
from drayman.cluster.breaks import Breaks
from drayman.cluster.errors import NotFoundError
from drayman.cluster.event_buffer import Reference
from drayman.cluster.options import DeleteOptions
from drayman.cluster.patches import json_patch
from drayman.cluster.resources import PODS, JsonObject
from drayman.controllers.quota.book import Known
from drayman.controllers.quota.shared import Shared
from drayman.workloads.queued.names import FINALIZER, QUEUE
from drayman.workloads.queued.pods import release
from drayman.workloads.queued.starting import additions_for

_VALUES = PODS.as_values()


class PodWrites:
    """What is written about pods."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    async def body(self, pod: Pod) -> JsonObject | None:
        """A pod with all of its fields, as it is now; None if it is gone or is another one."""
        metadata = pod.metadata
        try:
            found = await self._shared.client.get(_VALUES, metadata.name, metadata.namespace)
        except NotFoundError:
            return None
        return found if found["metadata"]["uid"] == metadata.uid else None

    async def bodies(self, pods: Sequence[Pod]) -> dict[str, JsonObject]:
        """Pods by uid. Those that are gone are left out."""
        found, breaks = {}, Breaks()
        for pod in pods:
            await breaks.between()  # an answer in the same process comes without one
            body = await self.body(pod)
            if body is not None:
                found[pod.metadata.uid] = body
        return found

    async def let_go(self, pod: Pod, workload: Known, pod_set: PodSet) -> None:
        """Have a pod start. Raises StartError where it says otherwise than what was admitted."""
        status = workload.status
        assert status.admission is not None
        added = {
            each.name: each
            for each in additions_for(
                workload.name,
                workload.spec.pod_sets,
                status.admission,
                self._shared.flavors(),
                status.admission_checks,
            )
        }
        body = await self.body(pod)
        if body is None:
            return
        await self._patch(body, release(body, added[pod_set.name]))
        queue = status.admission.cluster_queue
        self.record(pod, "Normal", "Started", f"Admitted by clusterQueue {queue}")

    async def keep_in_step(self, pods: Sequence[Pod], workload: Known) -> None:
        """A Workload that waits is in the queue that its pods name. If they disagree, or name none any more, it stays where it is."""
        queues = {pod.metadata.labels.get(QUEUE, "") for pod in pods}
        if len(queues) != 1 or not queues.isdisjoint(("", workload.spec.queue_name)):
            return
        change = {"op": "add", "path": "/spec/queueName", "value": queues.pop()}
        await self._shared.book.change(workload, [change])
        note = f"Updated not matching Workload: {workload.name}"
        self.record(pods[0], "Normal", "UpdatedWorkload", note)

    async def delete(self, pod: Pod, reason: str, why: str) -> None:
        """Delete exactly this pod. One that is gone is not an error."""
        options = DeleteOptions(uid=pod.metadata.uid)
        try:
            await self._shared.client.delete(
                PODS, pod.metadata.name, pod.metadata.namespace, options=options
            )
        except NotFoundError:
            return
        self.record(pod, "Normal", reason, why)

    async def uncount(self, pod: Pod) -> None:
        """Take off the finalizer: how the pod ended has been noted."""
        if FINALIZER not in pod.metadata.finalizers:
            return
        kept = [each for each in pod.metadata.finalizers if each != FINALIZER]
        metadata = pod.metadata
        version: JsonObject = {
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": metadata.resource_version,
        }
        change: JsonObject = {"op": "add", "path": "/metadata/finalizers", "value": kept}
        try:
            await self._shared.client.patch(
                PODS, metadata.name, json_patch([version, change]), metadata.namespace
            )
        except NotFoundError:
            return

    def record(self, pod: Pod, type_: EventType, reason: str, note: str) -> None:
        self._shared.recorder.record(Reference.to(PODS, pod), type_, reason, note, reason)

    async def _patch(self, body: JsonObject, changes: Sequence[JsonObject]) -> None:
        metadata = body["metadata"]
        version: JsonObject = {
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": metadata["resourceVersion"],
        }
        await self._shared.client.patch(
            _VALUES, metadata["name"], json_patch([version, *changes]), metadata["namespace"]
        )
