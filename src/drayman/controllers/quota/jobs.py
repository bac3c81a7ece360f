"""Jobs and their like in queues: each gets a Workload, is started when that is admitted, and stopped and restored when it is not any more.

What is to be done follows from the job and its Workload alone, so it does not matter when this is called, how often, or by which process.
An evicted job is suspended first; its templates can be restored when its own controller has noticed, and its quota is free when nothing of
it runs. The pod set's label in a template says that it was started and has not been restored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from drayman.api import codec
from drayman.api.jobs import Job
from drayman.api.kueue_workload import PodSet
from drayman.api.meta import controller_of as owner_of
from drayman.bounded import Bounded
from drayman.cluster.errors import AlreadyExistsError
from drayman.cluster.informer import Notice
from drayman.cluster.patches import json_patch
from drayman.cluster.resources import JOBS, JsonObject, generic
from drayman.controllers.quota.ancestors import Ancestors
from drayman.controllers.quota.book import Known
from drayman.controllers.quota.loop import Key, Loop
from drayman.controllers.quota.prebuilt import adopt
from drayman.controllers.quota.shared import Shared
from drayman.controllers.quota.slices import JobSlices, admitted_count
from drayman.controllers.quota.standing import is_stopped, may_run, release_quota, why_not
from drayman.controllers.quota.view import DELETED
from drayman.placement.gangs.dialects.kueue import POD_SET
from drayman.workloads.dispatching.life import is_elsewhere
from drayman.workloads.dispatching.names import is_left_to_dispatcher
from drayman.workloads.queued import life
from drayman.workloads.queued.composing import (
    CompositionError,
    owner_reference,
    pod_set_body,
    pod_sets_of,
    workload_for,
)
from drayman.workloads.queued.conditions import OUT_OF_SYNC
from drayman.workloads.queued.entering import controller_of, is_below_queued
from drayman.workloads.queued.kinds import JOB, Ended, QueuedKind
from drayman.workloads.queued.names import ELASTIC, PREBUILT, PRIORITY_CLASS, labels_of, queue_of
from drayman.workloads.queued.places import Object, read
from drayman.workloads.queued.slices import is_elastic, resized
from drayman.workloads.queued.starting import (
    Additions,
    StartError,
    additions_for,
    as_started,
    restore,
    same_pod_sets,
    start,
    suspend,
)

_SOON_S: Final = 0.1
"""After which the cache should show an owner that exists."""
_MOST_DECODED: Final = 1 << 10
"""Jobs whose decoded form is kept: pods of one Job ask for it one by one."""

Listener = Callable[[str, str, str], None]
"""Is called when an object has changed: its namespace, its uid, and the uid of what made it; empty if nothing did, or if it is gone."""


class QueuedJobs:
    """The jobs of one kind."""

    def __init__(self, shared: Shared, kind: QueuedKind, ancestors: Ancestors) -> None:
        self._shared = shared
        self._kind = kind
        self._ancestors = ancestors
        self._slices = JobSlices(shared)
        self.resource = generic(kind.api_version, kind.plural, kind.kind)
        self.loop = Loop(f"queued {kind.plural}", self.reconcile)
        self._listeners: list[Listener] = []
        self._find: Callable[[Key], Object | None]
        if kind is JOB:
            jobs = shared.informers.informer(JOBS)
            jobs.add_handler(self._job_changed)
            self._decoded: Bounded[str, tuple[Job, Object]] = Bounded(_MOST_DECODED)
            self._find = lambda key: self._as_object(jobs.cache.get(key[1], key[0]))
        else:
            optional = replace(self.resource, optional=True)
            objects = shared.informers.informer(optional)
            objects.add_handler(self._object_changed)
            self._find = lambda key: objects.cache.get(key[1], key[0])
        ancestors.add(kind, self.resource, self._find)

    def exists(self, namespace: str, name: str, uid: str) -> bool:
        found = self._find((namespace, name))
        return found is not None and found["metadata"].get("uid") == uid

    def workload_changed(self, owner_name: str, namespace: str) -> None:
        """A Workload of an object of this kind changed."""
        self.loop.queue.add((namespace, owner_name))

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def _job_changed(self, notice: Notice[Job]) -> None:
        metadata = notice.object.metadata
        self.loop.queue.add((metadata.namespace, metadata.name))
        owner = None if notice.type == DELETED else owner_of(metadata)
        for listener in self._listeners:
            listener(metadata.namespace, metadata.uid, "" if owner is None else owner.uid)

    def _object_changed(self, notice: Notice[JsonObject]) -> None:
        metadata = notice.object["metadata"]
        namespace = metadata.get("namespace", "")
        self.loop.queue.add((namespace, metadata["name"]))
        owner = None if notice.type == DELETED else controller_of(notice.object)
        for listener in self._listeners:
            listener(namespace, metadata["uid"], "" if owner is None else str(owner.get("uid")))

    def _as_object(self, job: Job | None) -> Object | None:
        if job is None:
            return None
        known = self._decoded.get(job.metadata.uid)
        if known is None or known[0] is not job:
            known = self._decoded[job.metadata.uid] = (job, codec.to_dict(job))
        return known[1]

    # What is to be done.

    async def reconcile(self, key: Key) -> None:
        obj = self._find(key)
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return
        if not self._waits(obj):
            await self._wait_with_ancestor(obj)
            return
        if await self._ancestors.is_late(obj):
            self.loop.queue.add_after(key, _SOON_S)
            return
        workload = await self._workload_of(obj)
        ended = self._kind.ended(obj)
        if ended is not None:
            if is_elastic(self._kind, obj):
                await self._slices.end(obj)
            await self._finish(obj, workload, ended)
        elif workload is None:
            await self._enter(obj)
        elif workload.is_leaving:
            await self._leave(obj, workload)
        elif life.is_finished(workload.status):
            await self._shared.book.let_go(workload)
        elif self._contradicts(obj, workload):
            await self._end_out_of_sync(obj, workload)
        elif self._kind.is_suspended(obj):
            await self._suspended(obj, workload)
        else:
            await self._running(obj, workload)

    def _waits(self, obj: Object) -> bool:
        intake = self._shared.configuration.intake
        namespace = obj["metadata"].get("namespace", "")
        find = self._ancestors.finder(namespace)
        if self._kind.framework not in intake.frameworks or is_below_queued(obj, intake, find):
            return False
        labels = self._shared.namespace_labels(namespace)
        return intake.namespaces.matches(labels) and bool(queue_of(obj) or intake.without_queue)

    async def _wait_with_ancestor(self, obj: Object) -> None:
        """Suspend an object that was made by one which waits. Whoever made it resumes it."""
        if self._kind.is_suspended(obj) or self._kind.ended(obj) is not None:
            return
        above = self._ancestors.charged_owner(obj, self._shared.configuration.intake)
        if above is None:
            return
        owned = self._shared.book.of_owner(above["metadata"]["uid"])
        if not any(may_run(each) for each in owned):
            await self._suspend(obj, f"{above['metadata']['name']}, which it is part of, waits")

    async def _workload_of(self, obj: Object) -> Known | None:
        """The Workload of an object. Others that it owns are deleted."""
        named = labels_of(obj).get(PREBUILT)
        if named:
            namespace = obj["metadata"]["namespace"]
            return await adopt(self._shared, namespace, named, owner_reference(self._kind, obj))
        if is_elastic(self._kind, obj):
            return await self._slices.current(obj)
        owned = self._shared.book.of_owner(obj["metadata"]["uid"])
        if len(owned) > 1:
            owned.sort(key=lambda each: (not life.holds_quota(each.status), each.name))
            for surplus in owned[1:]:
                await self._shared.book.delete(surplus)
                self._record(
                    obj, "DeletedWorkload", f"Deleted not matching Workload: {surplus.name}"
                )
        return owned[0] if owned else None

    # Coming in.

    async def _enter(self, obj: Object) -> None:
        """Hold an object that has no Workload, and make one."""
        if labels_of(obj).get(PREBUILT):
            if not self._kind.is_suspended(obj):
                await self._suspend(obj, "its Workload does not exist")
            return
        if not self._kind.is_suspended(obj):
            await self._suspend(obj, "it has no Workload yet")
            return
        try:
            first = self._kind.places(obj)
            spec = read(obj, (*first[0].template, "spec")) if first else None
            importance = self._shared.importance(obj, spec or {})
            copied = self._shared.configuration.copied_labels
            elastic = {ELASTIC: "true"} if is_elastic(self._kind, obj) else None
            body = workload_for(self._kind, obj, importance, copied=copied, annotations=elastic)
        except CompositionError as error:
            self._record(obj, "ErrWorkloadCompose", str(error), warning=True)
            return

        def refused(why: str) -> None:
            self._record(obj, "ErrWorkloadCompose", why, warning=True)

        try:
            made = await self._shared.book.create(body, refused)
        except AlreadyExistsError as error:
            # One of that name that the object does not own is not ours to take; if it is, the cache will show it.
            refused(str(error))
            raise
        self._record(obj, "CreatedWorkload", f"Created Workload: {made.key[0]}/{made.name}")

    async def _leave(self, obj: Object, workload: Known) -> None:
        """Somebody deletes the Workload: the object is stopped and restored, and then gets another one."""
        if not self._kind.is_suspended(obj):
            await self._suspend(obj, "its Workload is being deleted")
        elif not await self._restore(obj, workload) and not (
            self._kind.is_active(obj) or is_elsewhere(workload.status)
        ):
            await self._shared.book.let_go(workload)

    async def _finish(self, obj: Object, workload: Known | None, ended: Ended) -> None:
        if workload is None or self._shared.book.holds_back(workload):
            return
        if not life.is_finished(workload.status):
            status = life.finished(
                workload.status, ended, self._shared.clock(), workload.generation
            )
            workload = await self._shared.book.write_status(workload, status)
            self._record(obj, "FinishedWorkload", f"Workload {workload.name} is declared finished")
        await self._shared.book.let_go(workload)

    def _contradicts(self, obj: Object, workload: Known) -> bool:
        """Whether an object does not describe what the Workload that was made for it beforehand has."""
        if not labels_of(obj).get(PREBUILT) or self._was_started(obj):
            return False
        try:
            sets = pod_sets_of(self._kind, obj)
        except CompositionError:
            return True
        return self._kind.is_suspended(obj) and not same_pod_sets(sets, workload.spec.pod_sets)

    async def _end_out_of_sync(self, obj: Object, workload: Known) -> None:
        """It is not for us to change a Workload that somebody else has made."""
        if self._shared.book.holds_back(workload):
            return
        text = f"The prebuilt workload is not what {self._kind.kind} {obj['metadata']['name']} describes"
        now, generation = self._shared.clock(), workload.generation
        status = life.over(workload.status, OUT_OF_SYNC, text, now, generation)
        await self._shared.book.write_status(workload, status)
        self._record(obj, "FinishedWorkload", text, warning=True)

    # Held.

    async def _suspended(self, obj: Object, workload: Known) -> None:
        status = workload.status
        if may_run(workload):
            if status.cluster_name is None or is_left_to_dispatcher(self._kind, obj):
                await self._start(obj, workload)
            # Otherwise its own controller would run it here, while it runs elsewhere: it stays suspended.
        elif await self._restore(obj, workload):
            return
        elif life.holds_quota(status):
            if is_stopped(workload) and not self._kind.is_active(obj):
                await release_quota(self._shared, workload)
        else:
            await self._keep_in_step(obj, workload)

    async def _restore(self, obj: Object, workload: Known) -> bool:
        """Give an object back its templates. True while that is still to be done."""
        if not self._was_started(obj):
            return False
        if not self._kind.may_restore(obj):
            return True  # Its own controller has not noticed yet that it was suspended; when it has, this is called again.
        changes = restore(self._kind, obj, workload.spec.pod_sets)
        if not changes:
            return False
        await self._patch(obj, changes)
        return True

    def _was_started(self, obj: Object) -> bool:
        return any(
            POD_SET in (read(obj, (*place.template, "metadata", "labels")) or {})
            for place in self._kind.places(obj)
        )

    async def _keep_in_step(self, obj: Object, workload: Known) -> None:
        """A Workload that waits follows its object."""
        try:
            wanted = pod_sets_of(self._kind, obj)
        except CompositionError as error:
            self._record(obj, "ErrWorkloadCompose", str(error), warning=True)
            return
        changes: list[JsonObject] = []
        if not same_pod_sets(wanted, workload.spec.pod_sets):
            value = [pod_set_body(each) for each in wanted]
            changes.append({"op": "add", "path": "/spec/podSets", "value": value})
        if queue_of(obj) != workload.spec.queue_name:
            changes.append({"op": "add", "path": "/spec/queueName", "value": queue_of(obj)})
        changes += self._other_importance(obj, workload)
        await self._change(obj, workload, changes)

    async def _change(self, obj: Object, workload: Known, changes: Sequence[JsonObject]) -> Known:
        if not changes:
            return workload
        changed = await self._shared.book.change(workload, changes)
        self._record(obj, "UpdatedWorkload", f"Updated not matching Workload: {workload.name}")
        return changed

    def _other_importance(self, obj: Object, workload: Known) -> list[JsonObject]:
        """The changes if an object names another class of queues than its Workload."""
        name, known = labels_of(obj).get(PRIORITY_CLASS), workload.spec.priority_class_ref
        if not name or (known is not None and known.name == name):
            return []
        try:
            importance = self._shared.importance(obj, {})
        except CompositionError as error:
            self._record(obj, "ErrWorkloadCompose", str(error), warning=True)
            return []
        assert importance.source is not None
        return [
            {"op": "add", "path": "/spec/priority", "value": importance.priority},
            {
                "op": "add",
                "path": "/spec/priorityClassRef",
                "value": codec.to_dict(importance.source),
            },
        ]

    # Started.

    async def _start(self, obj: Object, workload: Known) -> None:
        """Let an admitted object run."""
        if self._was_started(obj):
            # It was stopped after it had been started and has a new admission: the old one is taken out first.
            await self._restore(obj, workload)
            return
        try:
            sets = pod_sets_of(self._kind, obj)
            if not same_pod_sets(sets, workload.spec.pod_sets):
                if not self._kind.is_active(obj):
                    await self._start_over(obj, workload)
                return
            changes = start(self._kind, obj, self._additions(workload))
        except (CompositionError, StartError) as error:
            ended = Ended(False, f"it cannot be started: {error}")
            await self._finish(obj, workload, ended)
            return
        await self._patch(obj, changes)
        admission = workload.status.admission
        queue = "" if admission is None else admission.cluster_queue
        self._record(obj, "Started", f"Admitted by clusterQueue {queue}")

    def _additions(self, workload: Known) -> Sequence[Additions]:
        """Raises StartError."""
        status = workload.status
        assert status.admission is not None
        return additions_for(
            workload.name,
            workload.spec.pod_sets,
            status.admission,
            self._shared.flavors(),
            status.admission_checks,
            (ELASTIC,) if _is_slice(workload) else (),
        )

    async def _running(self, obj: Object, workload: Known) -> None:
        if not may_run(workload):
            await self._suspend(obj, why_not(workload))
            return
        if not self._runs_as_admitted(obj, workload):
            await self._suspend(obj, "its pods are not those that were admitted")
            return
        workload = await self._change(obj, workload, self._other_importance(obj, workload))
        if workload.status.cluster_name is not None:
            return  # What its pods do is known in the cluster where they are.
        if _is_slice(workload):
            await self._run_elastic(obj, workload)
            return
        status, now = workload.status, self._shared.clock()
        status = life.pods_ready(status, self._kind.are_pods_ready(obj), now, workload.generation)
        status = life.reclaimed(
            status, _within(self._kind.reclaimable(obj), workload.spec.pod_sets)
        )
        await self._shared.book.write_status(workload, status)

    async def _run_elastic(self, obj: Object, workload: Known) -> None:
        """Its readiness is that of the pods that it has quota for. What ends of them is followed by others, so nothing is reclaimed."""
        ready = self._kind.are_pods_ready(resized(obj, admitted_count(workload)))
        now = self._shared.clock()
        status = life.pods_ready(workload.status, ready, now, workload.generation)
        workload = await self._shared.book.write_status(workload, status)
        try:
            await self._slices.resize(obj, workload)
        except CompositionError as error:
            self._record(obj, "ErrWorkloadCompose", str(error), warning=True)

    def _runs_as_admitted(self, obj: Object, workload: Known) -> bool:
        try:
            wanted = as_started(workload.spec.pod_sets, self._additions(workload))
            if _is_slice(workload):
                obj = resized(obj, wanted[0].count)
            return same_pod_sets(pod_sets_of(self._kind, obj), wanted)
        except (CompositionError, StartError):
            return False

    async def _start_over(self, obj: Object, workload: Known) -> None:
        """An object that is not what was admitted gets another Workload."""
        await self._shared.book.delete(workload)
        self._record(obj, "DeletedWorkload", f"Deleted not matching Workload: {workload.name}")

    # Writing.

    async def _suspend(self, obj: Object, why: str) -> None:
        await self._patch(obj, [suspend(self._kind)])
        self._record(obj, "Stopped", f"Suspended: {why}")

    async def _patch(self, obj: Object, changes: Sequence[JsonObject]) -> None:
        metadata = obj["metadata"]
        version: JsonObject = {
            "op": "replace",
            "path": "/metadata/resourceVersion",
            "value": metadata["resourceVersion"],
        }
        patch = json_patch([version, *changes])
        await self._shared.client.patch(
            self.resource, metadata["name"], patch, metadata["namespace"]
        )

    def _record(self, obj: Object, reason: str, note: str, *, warning: bool = False) -> None:
        self._shared.record(self.resource, obj, "Warning" if warning else "Normal", reason, note)


def _is_slice(workload: Known) -> bool:
    return workload.workload.metadata.annotations.get(ELASTIC) == "true"


def _within(pods: Mapping[str, int], pod_sets: Sequence[PodSet]) -> dict[str, int]:
    """Numbers of pods that are not more than there are."""
    most = {each.name: each.count for each in pod_sets}
    return {name: min(number, most[name]) for name, number in pods.items() if name in most}
