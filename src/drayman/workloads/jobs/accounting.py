"""The status of a job, brought up to date with its pods without losing one or counting it twice.

Counting takes two steps, so that it survives a crash between any two writes. First the uids of ended pods go into the status, and only
when that is written are their finalizers taken off. Once a finalizer is off, the pod may vanish; its uid in the status stands
for it until the next write moves it into the counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec

from drayman.api.core import EventType, Pod
from drayman.api.jobs import Job, JobCondition, JobStatus, UncountedPods
from drayman.api.times import timestamp_at
from drayman.workloads.jobs.census import Census
from drayman.workloads.jobs.deciding import FAILING, SUCCEEDING, JobVerdict
from drayman.workloads.jobs.failures import has_failed, judge
from drayman.workloads.jobs.pods import index_of, is_tracked
from drayman.workloads.pod_state import is_ready

MOST_UNCOUNTED: Final = 500
"""Uids in a status: they must not make it too large, nor one job keep others waiting."""


@dataclass(frozen=True, slots=True)
class Note:
    """An event to record once the status is written."""

    type_: EventType
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Account:
    """A new status, and what may follow once it is written."""

    status: JobStatus
    countable: tuple[Pod, ...]
    """Pods that the status holds, whose finalizers can come off."""
    notes: tuple[Note, ...] = ()


def account(census: Census, verdict: JobVerdict | None, now: float) -> Account:
    """The status of a job with the pods as they are after this round's creations and deletions."""
    job = census.job
    status = _with_ended_counted(job, census.pods)
    tally = _Tally(census, status.uncounted_terminated_pods or UncountedPods(), verdict)
    completed = census.counted_indexes.with_indexes(tally.indexes)
    status = msgspec.structs.replace(
        status,
        active=len(census.active),
        ready=sum(map(is_ready, census.active)),
        terminating=census.terminating,
        uncounted_terminated_pods=UncountedPods(
            succeeded=tuple(tally.succeeded), failed=tuple(tally.failed)
        ),
    )
    if census.is_indexed:
        status = msgspec.structs.replace(
            status,
            succeeded=len(completed),
            completed_indexes=str(completed),
            failed_indexes=str(census.failed_indexes) if census.counts_by_index else None,
        )
    notes: tuple[Note, ...] = ()
    if verdict is None:
        status, notes = _with_suspension(job, status, now)
    else:
        status = _with(status, verdict.type_, "True", verdict.reason, verdict.message, now)
        is_counted = not (tally.is_full or tally.succeeded or tally.failed)
        if is_counted and not status.active and not status.terminating:
            status, notes = _ended(job, status, verdict, now)
    return Account(status, tuple(tally.countable), notes)


def _with_ended_counted(job: Job, pods: Iterable[Pod]) -> JobStatus:
    """The status with the pods in the counts that have lost their finalizer."""
    status = job.status
    old = status.uncounted_terminated_pods or UncountedPods()
    tracked = {pod.metadata.uid for pod in pods if is_tracked(pod)}
    succeeded = tuple(uid for uid in old.succeeded if uid in tracked)
    failed = tuple(uid for uid in old.failed if uid in tracked)
    return msgspec.structs.replace(
        status,
        succeeded=status.succeeded + len(old.succeeded) - len(succeeded),
        failed=status.failed + len(old.failed) - len(failed),
        uncounted_terminated_pods=UncountedPods(succeeded=succeeded, failed=failed),
    )


class _Tally:
    """Goes over the pods and notes those that have ended, each once."""

    def __init__(
        self, census: Census, uncounted: UncountedPods, verdict: JobVerdict | None
    ) -> None:
        self._census = census
        self._verdict = verdict
        self.succeeded = list(uncounted.succeeded)
        self.failed = list(uncounted.failed)
        self._known = {*uncounted.succeeded, *uncounted.failed}
        self.indexes: list[int] = []
        self.countable: list[Pod] = []
        self.is_full = False
        held_back = {pod.metadata.uid for pod in census.last_failures.values()}
        for pod in census.pods:
            if not is_tracked(pod) or not self._may_go(pod, held_back):
                continue
            self.countable.append(pod)
            if pod.metadata.uid not in self._known:
                self._note(pod)
            if len(self.indexes) + len(self.succeeded) + len(self.failed) >= MOST_UNCOUNTED:
                self.is_full = True
                break

    def _may_go(self, pod: Pod, held_back: set[str]) -> bool:
        """Whether a pod's finalizer is no longer needed."""
        job = self._census.job
        if job.metadata.deletion_timestamp is not None or self._verdict is not None:
            return True
        if pod.status.phase == "Succeeded":
            return True
        return has_failed(job, pod) and pod.metadata.uid not in held_back

    def _note(self, pod: Pod) -> None:
        job, census = self._census.job, self._census
        index = index_of(pod, census.completions) if census.is_indexed else None
        if census.is_indexed and index is None:
            return
        if pod.status.phase == "Succeeded":
            if index is None:
                self.succeeded.append(pod.metadata.uid)
            elif index not in census.counted_indexes:
                self.indexes.append(index)
        elif self._is_failure(pod) and judge(job.spec.pod_failure_policy, pod).counts:
            self.failed.append(pod.metadata.uid)

    def _is_failure(self, pod: Pod) -> bool:
        """What still runs when a job fails has failed too."""
        ended_by_failure = self._verdict is not None and self._verdict.type_ == FAILING
        return ended_by_failure or has_failed(self._census.job, pod)


def _with_suspension(job: Job, status: JobStatus, now: float) -> tuple[JobStatus, tuple[Note, ...]]:
    """When a job begins, is held back and goes on."""
    if job.metadata.deletion_timestamp is not None:
        return status, ()
    held = any(c.type_ == "Suspended" and c.status == "True" for c in status.conditions)
    if job.spec.suspend:
        if held:
            return status, ()
        status = _with(status, "Suspended", "True", "JobSuspended", "Job suspended", now)
        status = msgspec.structs.replace(status, start_time=None)
        return status, (Note("Normal", "Suspended", "Job suspended"),)
    moment = timestamp_at(now)
    if held:
        status = _with(status, "Suspended", "False", "JobResumed", "Job resumed", now)
        status = msgspec.structs.replace(status, start_time=moment)
        return status, (Note("Normal", "Resumed", "Job resumed"),)
    if status.start_time is None:
        status = msgspec.structs.replace(status, start_time=moment)
    return status, ()


def _ended(
    job: Job, status: JobStatus, verdict: JobVerdict, now: float
) -> tuple[JobStatus, tuple[Note, ...]]:
    if verdict.type_ != SUCCEEDING:
        status = _with(status, "Failed", "True", verdict.reason, verdict.message, now)
        return status, (Note("Warning", verdict.reason, verdict.message),)
    status = _with(status, "Complete", "True", verdict.reason, verdict.message, now)
    status = msgspec.structs.replace(status, completion_time=timestamp_at(now))
    notes = [Note("Normal", "Completed", "Job completed")]
    if job.spec.completions is not None and status.succeeded > job.spec.completions:
        surplus = "Too many succeeded pods running after completion count reached"
        notes.insert(0, Note("Warning", "TooManySucceededPods", surplus))
    return status, tuple(notes)


def _with(
    status: JobStatus, type_: str, value: str, reason: str, message: str, now: float
) -> JobStatus:
    """The status with a condition set; one that is as it was keeps its times."""
    if any(c.type_ == type_ and c.status == value for c in status.conditions):
        return status
    moment = timestamp_at(now)
    new = JobCondition(
        type_=type_,
        status=value,
        last_probe_time=moment,
        last_transition_time=moment,
        reason=reason,
        message=message,
    )
    others = tuple(c for c in status.conditions if c.type_ != type_)
    return msgspec.structs.replace(status, conditions=(*others, new))
