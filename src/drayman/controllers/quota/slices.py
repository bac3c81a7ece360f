"""Elastic Jobs at work (`workloads/queued/slices.py`): larger slices are made and take the place of smaller ones, and pods are let go."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from drayman.api.core import Pod
from drayman.api.kueue_workload import PodSet
from drayman.cluster.errors import AlreadyExistsError
from drayman.cluster.informer import Notice
from drayman.cluster.patches import json_patch
from drayman.cluster.resources import JOBS, PODS, JsonObject
from drayman.controllers.quota.book import Known
from drayman.controllers.quota.loop import Key, Loop
from drayman.controllers.quota.shared import Shared
from drayman.controllers.quota.standing import may_run
from drayman.quota.admissions import shrunk
from drayman.quota.claims.records import uses_of
from drayman.workloads.queued import life
from drayman.workloads.queued.composing import pod_set_body, pod_sets_of, workload_for
from drayman.workloads.queued.kinds import JOB
from drayman.workloads.queued.names import ELASTIC, PODS_THERE, REPLACES
from drayman.workloads.queued.places import Object, read
from drayman.workloads.queued.slices import (
    REPLACED,
    Slices,
    is_held,
    slice_name,
    slices_of,
    to_be_let_go,
)
from drayman.workloads.queued.starting import same_pod_sets

_BY_JOB: Final = "quota:elastic-pods"


class JobSlices:
    """The Workloads of elastic Jobs."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared

    async def current(self, obj: Object) -> Known | None:
        """The Workload that a Job runs with, or waits for. What others have become of no use for is finished or deleted."""
        found = self._of(obj)
        for each in found.replaced:
            text = f"Replaced to accommodate a larger slice of Job {obj['metadata']['name']}"
            now = self._shared.clock()
            status = life.over(each.status, REPLACED, text, now, each.generation)
            await self._shared.book.let_go(await self._shared.book.write_status(each, status))
        for each in found.surplus:
            await self._shared.book.delete(each)
        return found.current

    def _of(self, obj: Object) -> Slices[Known]:
        return slices_of(self._shared.book.of_owner(obj["metadata"]["uid"]))

    async def end(self, obj: Object) -> None:
        """The Job has ended: what it would have grown to is not needed."""
        growing = self._of(obj).growing
        if growing is not None:
            await self._shared.book.delete(growing)

    async def resize(self, obj: Object, workload: Known) -> None:
        """Have what a running Job asks for: a larger slice beside its own, or a smaller one. Raises CompositionError."""
        (wanted,) = pod_sets_of(JOB, obj)
        have, growing = admitted_count(workload), self._of(obj).growing
        if wanted.count > have:
            await self._grow(obj, workload, growing, have)
            return
        if growing is not None:
            await self._shared.book.delete(growing)
        # What is on a node is charged until it ends.
        needed = min(max(wanted.count, self._shared.book.pods_on_nodes(workload)), have)
        if needed < have or workload.spec.pod_sets[0].count > have:
            await self._shrink(workload, needed)

    async def _grow(self, obj: Object, workload: Known, growing: Known | None, have: int) -> None:
        (pod_set,) = workload.spec.pod_sets
        (wanted,) = pod_sets_of(JOB, obj)
        larger = with_count(pod_set, wanted.count)
        if growing is not None:
            if not same_pod_sets([larger], growing.spec.pod_sets):
                change: JsonObject = {
                    "op": "add",
                    "path": "/spec/podSets",
                    "value": [pod_set_body(larger)],
                }
                await self._shared.book.change(growing, [change])
            return
        template = read(obj, ("spec", "template", "spec")) or {}
        body = workload_for(
            JOB,
            obj,
            self._shared.importance(obj, template),
            copied=self._shared.configuration.copied_labels,
            name=slice_name(JOB, obj),
            annotations={
                ELASTIC: "true",
                REPLACES: "/".join(workload.key),
                PODS_THERE: str(have),
            },
        )
        # The template of a Job that runs has what its flavors have added.
        body["spec"]["podSets"] = [pod_set_body(larger)]
        try:
            made = await self._shared.book.create(
                body,
                lambda why: self._shared.book.record(
                    workload, "Warning", "ErrWorkloadCompose", why
                ),
            )
        except AlreadyExistsError:
            return  # Of this very generation; the cache will show it.
        note = f"Created Workload: {made.key[0]}/{made.name}, for {wanted.count} pods"
        self._shared.book.record(workload, "Normal", "CreatedWorkload", note)

    async def _shrink(self, workload: Known, count: int) -> None:
        status = workload.status
        assert status.admission is not None
        (pod_set,) = workload.spec.pod_sets
        metadata = workload.workload.metadata
        claims = uses_of(metadata.namespace, metadata.annotations)
        admission = shrunk(status.admission, pod_set.name, count, claims)
        status = life.with_admission(status, admission)
        workload = await self._shared.book.write_status(workload, status)
        if pod_set.count != count:
            value = [pod_set_body(with_count(pod_set, count))]
            change: JsonObject = {"op": "add", "path": "/spec/podSets", "value": value}
            await self._shared.book.change(workload, [change])


def with_count(pod_set: PodSet, count: int) -> PodSet:
    return PodSet(
        name=pod_set.name,
        template=pod_set.template,
        count=count,
        topology_request=pod_set.topology_request,
    )


def admitted_count(workload: Known) -> int:
    """With how many pods a Job of one pod set may run."""
    admission = workload.status.admission
    assigned = () if admission is None else admission.pod_set_assignments
    return sum(each.count or 0 for each in assigned)


def _job_uids(pod: Pod) -> Iterable[str]:
    return [owner.uid for owner in pod.metadata.owner_references if owner.kind == "Job"]


class ElasticPods:
    """Lets as many pods of elastic Jobs go as they have quota for."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self.loop = Loop("pods of elastic jobs", self.attend, workers=1)
        informer = shared.informers.informer(PODS, indexers={_BY_JOB: _job_uids})
        informer.add_handler(self._changed)
        self._pods = informer.cache
        self._jobs = shared.informers.informer(JOBS).cache

    def _changed(self, notice: Notice[Pod]) -> None:
        """Also what ends makes room for others of its Job."""
        metadata = notice.object.metadata
        for owner in metadata.owner_references:
            job = self._jobs.get(owner.name, metadata.namespace) if owner.kind == "Job" else None
            if is_held(notice.object) or (
                job is not None and job.metadata.annotations.get(ELASTIC) == "true"
            ):
                self.loop.queue.add((metadata.namespace, owner.name))

    async def attend(self, key: Key) -> None:
        job = self._jobs.get(key[1], key[0])
        if job is None:
            return
        current = slices_of(self._shared.book.of_owner(job.metadata.uid)).current
        if current is None or not may_run(current):
            return
        pods = self._pods.by_index(_BY_JOB, job.metadata.uid)
        for pod in to_be_let_go(pods, admitted_count(current)):
            await self._let_go(pod)

    async def _let_go(self, pod: Pod) -> None:
        metadata = pod.metadata
        gates = [{"name": gate.name} for gate in pod.spec.scheduling_gates if gate.name != ELASTIC]
        operations: list[JsonObject] = [
            {
                "op": "replace",
                "path": "/metadata/resourceVersion",
                "value": metadata.resource_version,
            },
            {"op": "add", "path": "/spec/schedulingGates", "value": gates},
        ]
        await self._shared.client.patch(
            PODS, metadata.name, json_patch(operations), metadata.namespace
        )
