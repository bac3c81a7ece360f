"""Runs jobs: decides by `deciding`, writes pods, accounts by `accounting`, and takes finalizers off what is counted."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Final, TypeVar

from drayman.api import codec
from drayman.api.core import Pod
from drayman.api.jobs import Job, JobCondition
from drayman.api.meta import controller_of
from drayman.api.pod_groups import PodGroup, Workload
from drayman.api.times import seconds_of
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, NotFoundError
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.options import DeleteOptions
from drayman.cluster.patches import strategic_merge_patch
from drayman.cluster.resources import JOBS, POD_GROUPS, PODS, WORKLOADS, JsonObject, Resource
from drayman.cluster.together import Bundle, write_together
from drayman.cluster.writes import PatchWrite
from drayman.controllers.workloads.owning_pods import PodOwner
from drayman.controllers.workloads.reconciling import Clock, Key
from drayman.workloads.jobs.accounting import account
from drayman.workloads.jobs.census import Census, carried_out, end_of, is_ours
from drayman.workloads.jobs.deciding import FAILING, JobDecision, decide
from drayman.workloads.jobs.failures import BackoffTimes, FailureRow
from drayman.workloads.jobs.groups import (
    body_of,
    group_name,
    group_of,
    in_group,
    is_of,
    may_begin,
    wants_group,
    workload_of,
)
from drayman.workloads.jobs.pods import FINALIZER, is_tracked, pod_of

G = TypeVar("G", PodGroup, Workload)

_STRAYS: Final = ""
"""The name, which no job has, under which pods of a namespace that have lost their job are looked at."""


class JobController(PodOwner[Job]):
    """Runs jobs to their end."""

    resource = JOBS
    component = "job-controller"
    adopted_with_finalizer = FINALIZER

    def __init__(
        self,
        client: Client,
        informers: Informers,
        *,
        clock: Clock = time.time,
        backoff: BackoffTimes | None = None,
        makes_groups: bool = False,
    ) -> None:
        """With `makes_groups`, the pods of a job that all run at the same time are a group."""
        self._makes_groups = makes_groups
        self._backoff = backoff or BackoffTimes()
        self._rows: dict[str, FailureRow] = {}
        """Failures in a row by the job's uid. Kept in memory alone: after a restart a job may try again at once."""
        self._owners: dict[Key, set[str]] = {}
        """The uids of jobs, present and gone, that tracked pods name as their controller."""
        super().__init__(client, informers, clock=clock)

    def selects(self, value: Job) -> bool:
        return end_of(value) is None and is_ours(value)

    async def reconcile(self, key: Key) -> None:
        if key[1] == _STRAYS:
            await self._untrack([pod for pod in self.holdings.loose(key[0]) if is_tracked(pod)])
            return
        job = self.find(key)
        await self._let_orphans_go(key, "" if job is None else job.metadata.uid)
        if job is None or not is_ours(job):
            return
        end = end_of(job)
        if end is not None:
            await self._clean_up(key, job, end)
        else:
            await self._advance(key, job)

    def object_changed(self, notice: Notice[Job]) -> None:
        if notice.type == "DELETED":
            self._rows.pop(notice.object.metadata.uid, None)

    def owned_changed(self, notice: Notice[Pod]) -> None:
        if notice.type == "DELETED" or not is_tracked(notice.object):
            return
        metadata = notice.object.metadata
        owner = controller_of(metadata)
        if owner is None:
            self.queue.add((metadata.namespace, _STRAYS))
        elif owner.kind == self.resource.kind:
            self._owners.setdefault((metadata.namespace, owner.name), set()).add(owner.uid)

    async def _advance(self, key: Key, job: Job) -> None:
        pods = await self.claim(job)
        row = self._rows.get(job.metadata.uid, FailureRow())
        now = self.clock()
        census = Census(job, tuple(pods))
        decision = decide(census, row, self._backoff, now)
        refusal = await self._carry_out(job, decision)
        verdict = decision.verdict if refusal is None else None
        census = carried_out(census, decision.delete, self.holdings.of(job.metadata.uid))
        found = account(census, verdict, now)
        if found.status != job.status:
            await self.write_status(job, found.status)
        known = self.find(key)
        if known is not None and known.metadata.uid == job.metadata.uid:
            # Otherwise it was deleted in the meantime, and nothing would remove its row.
            self._rows[job.metadata.uid] = decision.row
        for note in found.notes:
            self.record(job, note.type_, note.reason, note.message)
        await self._untrack(found.countable)
        if found.countable:
            self.queue.add(key)
        if decision.wait is not None:
            self.queue.add_after(key, decision.wait)
        if refusal is not None:
            raise refusal

    async def _carry_out(self, job: Job, decision: JobDecision) -> ClusterError | None:
        """Writes the pods. A refusal must not keep pods that have ended from being counted."""
        try:
            if decision.verdict is None or decision.verdict.type_ != FAILING:
                # Pods that a job gives up because it does not need them are not failures. Without the finalizer they are never counted,
                # even if this process ends first.
                await self._untrack(decision.delete)
            await self.delete_pods(job, decision.delete)
            seeds = self.allowed(job, decision.create, job.spec.template)
            bodies = [pod_of(job, seed) for seed in seeds]
            if bodies and self._makes_groups and wants_group(job):
                bodies = await self._grouped(job, bodies)
            await self.create_pods(job, bodies)
        except ClusterError as error:
            return error
        return None

    async def _grouped(self, job: Job, bodies: list[JsonObject]) -> list[JsonObject]:
        """The pods of a job, in the group of the job. A job that was begun without one goes on without."""
        group = await self._existing(POD_GROUPS, job)
        if group is None:
            if not may_begin(job, self.holdings.of(job.metadata.uid)):
                return bodies
            if await self._existing(WORKLOADS, job) is None:
                await self._make(WORKLOADS, job, workload_of(job))
            group = await self._make(POD_GROUPS, job, group_of(job))
        return [in_group(body, group.metadata.name) for body in bodies]

    async def _existing(self, resource: Resource[G], job: Job) -> G | None:
        """What was made for a job, by this process or the one before it. If something else has its name, making it is refused."""
        try:
            found = await self.client.get(resource, group_name(job), job.metadata.namespace)
        except NotFoundError:
            return None
        return found if is_of(found, job) else None

    async def _make(self, resource: Resource[G], job: Job, value: G) -> G:
        try:
            made = await self.client.create(resource.as_values(), body_of(value))
        except ClusterError as error:
            note = f"Error creating {resource.kind}: {error}"
            self.record(job, "Warning", "FailedCreate", note)
            raise
        note = f"Created {resource.kind} {value.metadata.name}"
        self.record(job, "Normal", f"{resource.kind}Created", note)
        return codec.convert(type(value), made)

    async def _clean_up(self, key: Key, job: Job, end: JobCondition) -> None:
        """What is left to do for a job that has ended: free its pods, and remove it when its time is up."""
        self._rows.pop(job.metadata.uid, None)
        await self._untrack([pod for pod in self.holdings.of(job.metadata.uid) if is_tracked(pod)])
        lifetime = job.spec.ttl_seconds_after_finished
        if lifetime is None or job.metadata.deletion_timestamp is not None:
            return
        if end.last_transition_time is None:
            return
        left = seconds_of(end.last_transition_time) + lifetime - self.clock()
        if left > 0:
            self.queue.add_after(key, left)
            return
        options = DeleteOptions(uid=job.metadata.uid, propagation="Foreground")
        await self.client.delete(JOBS, job.metadata.name, job.metadata.namespace, options=options)

    async def _let_orphans_go(self, key: Key, present: str) -> None:
        """Frees pods whose controller is a job of this name that no longer exists."""
        for uid in self._owners.get(key, set()) - {present}:
            await self._untrack([pod for pod in self.holdings.of(uid) if is_tracked(pod)])
            self._owners[key].discard(uid)
        if key in self._owners and not self._owners[key]:
            del self._owners[key]

    async def _untrack(self, pods: Sequence[Pod]) -> None:
        """Takes the job's finalizer off pods. One that is gone is skipped."""
        bundles = (
            Bundle([_untracking(pod)], partial(self._untracking_refused, pod), self._untracked)
            for pod in pods
            if is_tracked(pod)
        )
        await write_together(self.client, bundles)

    def _untracked(self, answers: Sequence[object]) -> None:
        (pod,) = answers
        if isinstance(pod, Pod):
            self.holdings.wrote(pod)

    def _untracking_refused(self, pod: Pod, error: ClusterError) -> None:
        if not isinstance(error, NotFoundError):
            raise error
        self.holdings.deleted(pod, None)


def _untracking(pod: Pod) -> PatchWrite[Pod]:
    change = {"uid": pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}
    patch = strategic_merge_patch({"metadata": change})
    return PatchWrite(PODS, pod.metadata.name, patch, pod.metadata.namespace)
