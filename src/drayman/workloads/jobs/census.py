"""How a job stands: its pods counted, each once, whether the status has them yet or not.

A pod that has ended is in exactly one of three places: with the job's finalizer and not in the status; by its uid among the status'
uncounted pods; or in the status' counts, when the finalizer is gone. Indexed successes skip the second place, since the index itself shows
whether it was counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from drayman.api.core import Pod
from drayman.api.jobs import Job, JobCondition, UncountedPods
from drayman.api.pods import is_active, is_terminating
from drayman.workloads.jobs.failures import has_failed, judge
from drayman.workloads.jobs.indexes import NONE, IndexSet
from drayman.workloads.jobs.pods import (
    FAILURES,
    IGNORED_FAILURES,
    count_in,
    index_of,
    is_tracked,
)
from drayman.workloads.pod_state import finished_at

_OURS: Final = (None, "kubernetes.io/job-controller")


def wanted_at_once(job: Job, succeeded: int) -> int | None:
    """How many pods a job is to have at the same time; None for one that begins no more, and lets the others finish."""
    spec = job.spec
    if spec.completions is None:
        return None if succeeded else spec.parallelism
    return max(0, min(spec.completions - succeeded, spec.parallelism))


def is_ours(job: Job) -> bool:
    """Whether the job controller is to run a job. Others are left to the controller they name."""
    return job.spec.managed_by in _OURS


def end_of(job: Job) -> JobCondition | None:
    """The condition that says that a job is over."""
    for condition in job.status.conditions:
        if condition.type_ in ("Complete", "Failed") and condition.status == "True":
            return condition
    return None


@dataclass(frozen=True)
class Census:
    """A job and its pods at one moment. Everything else follows from the two."""

    job: Job
    pods: tuple[Pod, ...]

    @property
    def is_indexed(self) -> bool:
        return self.job.spec.completion_mode == "Indexed"

    @property
    def completions(self) -> int:
        return self.job.spec.completions or 0

    @property
    def counts_by_index(self) -> bool:
        return self.is_indexed and self.job.spec.backoff_limit_per_index is not None

    @cached_property
    def uncounted(self) -> UncountedPods:
        return self.job.status.uncounted_terminated_pods or UncountedPods()

    @cached_property
    def active(self) -> tuple[Pod, ...]:
        return tuple(filter(is_active, self.pods))

    @cached_property
    def terminating(self) -> int:
        return sum(map(is_terminating, self.pods))

    @cached_property
    def new_succeeded(self) -> tuple[Pod, ...]:
        """Succeeded pods that the status does not have."""
        known = {*self.uncounted.succeeded, *self.uncounted.failed}
        return tuple(
            pod
            for pod in self._tracked
            if pod.status.phase == "Succeeded" and pod.metadata.uid not in known
        )

    @cached_property
    def new_failed(self) -> tuple[Pod, ...]:
        """Failed pods that the status does not have, those that the policy ignores included."""
        known = set(self.uncounted.failed)
        return tuple(
            pod
            for pod in self._tracked
            if has_failed(self.job, pod) and pod.metadata.uid not in known
        )

    @cached_property
    def succeeded(self) -> int:
        if self.is_indexed:
            return len(self.succeeded_indexes)
        known = self.job.status.succeeded + len(self.uncounted.succeeded)
        return known + len(self.new_succeeded)

    @cached_property
    def failed(self) -> int:
        policy = self.job.spec.pod_failure_policy
        new = sum(judge(policy, pod).counts for pod in self.new_failed)
        return self.job.status.failed + len(self.uncounted.failed) + new

    @cached_property
    def counted_indexes(self) -> IndexSet:
        """The indexes that the status says are complete."""
        return IndexSet.parse(self.job.status.completed_indexes, self.completions)

    @cached_property
    def succeeded_indexes(self) -> IndexSet:
        return self.counted_indexes.with_indexes(self.indexes(self.new_succeeded))

    @cached_property
    def failed_indexes(self) -> IndexSet:
        """The indexes that have used up their attempts."""
        if not self.counts_by_index:
            return NONE
        known = IndexSet.parse(self.job.status.failed_indexes or "", self.completions)
        return known.with_indexes(self.indexes(filter(self._ends_index, self._tracked)))

    @cached_property
    def last_failures(self) -> dict[int, Pod]:
        """The last failed pod of each index that is to be tried again.

        It remembers how often the index has failed, so it has to stay until another pod does.
        """
        if not self.counts_by_index:
            return {}
        settled = (self.succeeded_indexes | self.failed_indexes).with_indexes(
            self.indexes(self.active)
        )
        found: dict[int, Pod] = {}
        for pod in self._tracked:
            index = index_of(pod, self.completions)
            if index is None or index in settled or not has_failed(self.job, pod):
                continue
            if index not in found or _attempt(found[index]) <= _attempt(pod):
                found[index] = pod
        return found

    def indexes(self, pods: Iterable[Pod]) -> set[int]:
        found = (index_of(pod, self.completions) for pod in pods)
        return {index for index in found if index is not None}

    @cached_property
    def _tracked(self) -> tuple[Pod, ...]:
        return tuple(filter(is_tracked, self.pods))

    def _ends_index(self, pod: Pod) -> bool:
        if not has_failed(self.job, pod):
            return False
        judgement = judge(self.job.spec.pod_failure_policy, pod)
        if judgement.action == "FailIndex":
            return True
        limit = self.job.spec.backoff_limit_per_index
        return judgement.counts and limit is not None and count_in(pod, FAILURES) >= limit


def carried_out(before: Census, given_up: Iterable[Pod], pods: Iterable[Pod]) -> Census:
    """The pods after a decision was carried out, without those that ended by themselves meanwhile.

    The decision did not know of them. If they were counted with it, no other would ask whether they end the job, or delay the next attempt.
    """
    job = before.job
    known = {pod.metadata.uid: pod for pod in before.pods}
    expected = {pod.metadata.uid for pod in given_up}
    found = []
    for pod in pods:
        earlier = known.get(pod.metadata.uid)
        if pod.metadata.uid in expected or not _has_ended(job, pod):
            found.append(pod)
        elif earlier is not None:
            found.append(pod if _has_ended(job, earlier) else earlier)
    return Census(job, tuple(found))


def _has_ended(job: Job, pod: Pod) -> bool:
    return pod.status.phase == "Succeeded" or has_failed(job, pod)


def _attempt(pod: Pod) -> tuple[int, float]:
    return count_in(pod, FAILURES) + count_in(pod, IGNORED_FAILURES), finished_at(pod)
