"""Pods that wait in a queue alone: each gets a Workload, is let go when that is admitted, and deleted when it is evicted.

A pod that waits is held by a gate. It cannot be held again once it runs, so what is evicted is deleted; whoever made the pod makes another,
which waits again.
"""

from __future__ import annotations

from drayman.api.core import Pod
from drayman.api.pods import is_leaving
from drayman.api.times import seconds_of
from drayman.cluster.errors import AlreadyExistsError
from drayman.cluster.informer import Notice
from drayman.cluster.resources import PODS, JsonObject
from drayman.controllers.quota.book import Known
from drayman.controllers.quota.groups import PodGroups
from drayman.controllers.quota.loop import Key, Loop
from drayman.controllers.quota.pod_writes import PodWrites
from drayman.controllers.quota.prebuilt import adopt
from drayman.controllers.quota.shared import Shared
from drayman.controllers.quota.standing import is_stopped, may_run, release_quota, why_not
from drayman.workloads.dispatching.life import is_elsewhere
from drayman.workloads.pod_state import is_ready
from drayman.workloads.queued import life
from drayman.workloads.queued.composing import CompositionError
from drayman.workloads.queued.names import PREBUILT
from drayman.workloads.queued.pods import (
    ended,
    group_of,
    is_gated,
    is_managed,
    is_over,
    owner_of,
    workload_for_pod,
)
from drayman.workloads.queued.starting import StartError


class QueuedPods:
    """All pods that queues hold or have let go."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._writes = PodWrites(shared)
        self.groups = PodGroups(shared, self._writes)
        self.loop = Loop("queued pods", self.reconcile)
        informer = shared.informers.informer(PODS)
        informer.add_handler(self._changed)
        self._cache = informer.cache

    def exists(self, namespace: str, name: str, uid: str) -> bool:
        found = self._cache.get(name, namespace)
        return found is not None and found.metadata.uid == uid

    def workload_changed(self, known_owners: list[str], namespace: str) -> None:
        """A Workload of pods of these names changed."""
        for name in known_owners:
            pod = self._cache.get(name, namespace)
            if pod is not None:
                self._queue(pod)

    def _changed(self, notice: Notice[Pod]) -> None:
        if is_managed(notice.object):
            self._queue(notice.object)

    def _queue(self, pod: Pod) -> None:
        namespace, group = pod.metadata.namespace, group_of(pod)
        if group:
            self.groups.loop.queue.add((namespace, group))
        else:
            self.loop.queue.add((namespace, pod.metadata.name))

    async def reconcile(self, key: Key) -> None:
        pod = self._cache.get(key[1], key[0])
        if pod is None or not is_managed(pod) or group_of(pod):
            return
        workload = await self._workload_of(pod)
        # What is evicted is deleted, and how it ends then is not how its work ended.
        evicted = is_leaving(pod) and workload is not None and life.is_evicted(workload.status)
        if ended(pod) is not None and not evicted:
            await self._finish(pod, workload)
        elif is_leaving(pod):
            await self._leave(key, pod, workload)
        elif workload is None:
            await self._enter(pod)
        elif workload.is_leaving and is_gated(pod):
            if not is_elsewhere(workload.status):
                await self._shared.book.let_go(workload)
        elif is_gated(pod):
            await self._held(pod, workload)
        else:
            await self._running(pod, workload)

    async def _workload_of(self, pod: Pod) -> Known | None:
        metadata = pod.metadata
        named = metadata.labels.get(PREBUILT)
        if named and not is_leaving(pod):
            body: JsonObject = {"metadata": {"name": metadata.name, "uid": metadata.uid}}
            owner = owner_of(body, controller=True)
            return await adopt(self._shared, metadata.namespace, named, owner)
        owned = self._shared.book.of_owner(metadata.uid)
        return owned[0] if owned else None

    async def _enter(self, pod: Pod) -> None:
        """Make the Workload of a pod that has none."""
        if not is_gated(pod):
            await self._writes.delete(pod, "Stopped", "its Workload does not exist any more")
            return
        if pod.metadata.labels.get(PREBUILT):
            return  # Somebody else makes it.
        body = await self._writes.body(pod)
        if body is None:
            return
        try:
            made = workload_for_pod(body, self._shared.importance(body, body["spec"]))
        except CompositionError as error:
            self._writes.record(pod, "Warning", "ErrWorkloadCompose", str(error))
            return

        def refused(why: str) -> None:
            self._writes.record(pod, "Warning", "ErrWorkloadCompose", why)

        try:
            known = await self._shared.book.create(made, refused)
        except AlreadyExistsError as error:
            refused(str(error))
            raise
        self._writes.record(
            pod, "Normal", "CreatedWorkload", f"Created Workload: {key_text(known)}"
        )

    async def _held(self, pod: Pod, workload: Known) -> None:
        if may_run(workload):
            if workload.status.cluster_name is not None:
                return  # Its copy runs there, and it shows how that is doing.
            try:
                await self._writes.let_go(pod, workload, workload.spec.pod_sets[0])
            except StartError as error:
                self._writes.record(pod, "Warning", "FailedToStart", str(error))
        elif is_stopped(workload):
            # Nothing of it runs: it keeps its place and waits again.
            await release_quota(self._shared, workload)
        elif not life.holds_quota(workload.status):
            await self._writes.keep_in_step([pod], workload)

    async def _running(self, pod: Pod, workload: Known) -> None:
        if not may_run(workload) or workload.is_leaving:
            if not life.is_finished(workload.status):
                await self._writes.delete(pod, "Stopped", why_not(workload))
            return
        status = life.pods_ready(
            workload.status, is_ready(pod), self._shared.clock(), workload.generation
        )
        await self._shared.book.write_status(workload, status)

    async def _finish(self, pod: Pod, workload: Known | None) -> None:
        how = ended(pod)
        if workload is not None and how is not None:
            if not life.is_finished(workload.status):
                status = life.finished(
                    workload.status, how, self._shared.clock(), workload.generation
                )
                workload = await self._shared.book.write_status(workload, status)
                note = f"Workload {workload.name} is declared finished"
                self._writes.record(pod, "Normal", "FinishedWorkload", note)
            await self._shared.book.let_go(workload)
        await self._writes.uncount(pod)

    async def _leave(self, key: Key, pod: Pod, workload: Known | None) -> None:
        """A pod that is being deleted holds its quota until it has had its time to end."""
        now = self._shared.clock()
        if workload is not None and is_elsewhere(workload.status) and is_gated(pod):
            # Its copy is stopped first.
            await self._shared.book.retire(workload)
        elif is_gated(pod) or is_over(pod, now):
            if workload is not None:
                await self._shared.book.delete(workload)
            await self._writes.uncount(pod)
        else:
            due = seconds_of(pod.metadata.deletion_timestamp) or now
            self.loop.queue.add_after(key, max(0.1, due - now))


def key_text(known: Known) -> str:
    return f"{known.key[0]}/{known.name}"
