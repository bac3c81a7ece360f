"""The life of a workload that is handed to a worker, told in its status on the manager.

It holds quota on the manager, is offered to workers (`nominatedClusterNames`), belongs to one of them (`clusterName`), and in the end to
none. The job is created on a worker only after the status names that worker, and the status names it until nothing of the workload is left
there. Quota on the manager is given back after that (`is_elsewhere`), so that a workload which is evicted does not begin again before it
has stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from msgspec.structs import replace

from drayman.api.kueue_workload import (
    FINISHED,
    PODS_READY,
    AdmissionCheckState,
    WorkloadSpec,
    WorkloadStatus,
)
from drayman.api.times import timestamp_at
from drayman.workloads.queued import life
from drayman.workloads.queued.conditions import setting
from drayman.workloads.queued.kinds import Ended


def is_elsewhere(status: WorkloadStatus) -> bool:
    """Whether another cluster may still have something of a workload."""
    return bool(status.cluster_name or status.nominated_cluster_names)


def wants_worker(spec: WorkloadSpec, status: WorkloadStatus) -> bool:
    """Whether a workload is to run on a worker, or to go on there."""
    return (
        spec.active
        and life.holds_quota(status)
        and not life.is_evicted(status)
        and not life.is_finished(status)
    )


def check_state(status: WorkloadStatus, check: str) -> AdmissionCheckState | None:
    return next((each for each in status.admission_checks if each.name == check), None)


def with_check(
    status: WorkloadStatus, check: str, state: str, message: str, now: float
) -> WorkloadStatus:
    """With what a check says; since when it says so only moves with its state."""
    return replace(
        status,
        admission_checks=tuple(
            _said(each, state, message, now) if each.name == check else each
            for each in status.admission_checks
        ),
    )


def _said(before: AdmissionCheckState, state: str, message: str, now: float) -> AdmissionCheckState:
    since = before.last_transition_time if before.state == state else timestamp_at(now)
    return replace(before, state=state, message=message, last_transition_time=since)


def offered(
    status: WorkloadStatus, check: str, clusters: Sequence[str], message: str, now: float
) -> WorkloadStatus:
    """Offered to these workers."""
    status = with_check(status, check, life.PENDING, message, now)
    return replace(status, nominated_cluster_names=tuple(clusters), cluster_name=None)


def taken(status: WorkloadStatus, check: str, cluster: str, now: float) -> WorkloadStatus:
    """A worker has admitted it: it is that worker's."""
    message = f'The workload got reservation on "{cluster}"'
    status = with_check(status, check, life.READY, message, now)
    return replace(status, nominated_cluster_names=(), cluster_name=cluster)


def to_be_tried_again(
    status: WorkloadStatus, check: str, message: str, now: float
) -> WorkloadStatus:
    """It has to begin elsewhere: it is evicted on the manager, and offered anew when it holds quota again."""
    return with_check(status, check, life.RETRY, message, now)


def nowhere(status: WorkloadStatus) -> WorkloadStatus:
    """Nothing of it is left on a worker."""
    return replace(status, nominated_cluster_names=(), cluster_name=None)


def as_seen_there(
    status: WorkloadStatus, there: WorkloadStatus, now: float, generation: int = 0
) -> WorkloadStatus:
    """With what its worker says about its pods: whether they are ready, and which have ended and need no quota any more."""
    ready = there.condition(PODS_READY)
    if ready is not None and life.is_admitted(status):
        said = (ready.status == "True", ready.reason, ready.message)
        status = setting(status, PODS_READY, *said, now, generation)
    return life.reclaimed(status, {each.name: each.count for each in there.reclaimable_pods})


def as_ended_there(
    status: WorkloadStatus, there: WorkloadStatus, now: float, generation: int = 0
) -> WorkloadStatus:
    """It has ended on its worker."""
    found = there.condition(FINISHED)
    assert found is not None
    ended = Ended(found.reason == "Succeeded", found.message)
    return life.finished(status, ended, now, generation)


# What its worker says.


class RemoteState(Enum):
    """What became of a workload on the worker that it belongs to."""

    RUNS = auto()
    """It is admitted there."""
    STOPS = auto()
    """It was evicted there, and still has pods: it must not begin elsewhere yet."""
    ENDED = auto()
    GONE = auto()
    """Somebody has deleted it there."""
    EVICTED = auto()
    """It was evicted there, and has no pods any more."""
    LOST = auto()
    """The worker has not answered for longer than it may."""
    SILENT = auto()
    """The worker does not answer, and may still."""


@dataclass(frozen=True, slots=True)
class Silence:
    """A worker that does not answer."""

    since: float


def remote_state(
    there: WorkloadStatus | Silence | None, now: float, lost_after: float
) -> RemoteState:
    """What follows from a workload's status on its worker; None if the worker has none."""
    if isinstance(there, Silence):
        return RemoteState.LOST if now - there.since >= lost_after else RemoteState.SILENT
    if there is None:
        return RemoteState.GONE
    if life.is_finished(there):
        return RemoteState.ENDED
    if life.is_admitted(there) and not life.is_evicted(there):
        return RemoteState.RUNS
    return RemoteState.STOPS if life.holds_quota(there) else RemoteState.EVICTED


def may_be_taken(there: WorkloadStatus | None) -> bool:
    """Whether a worker has admitted what it was offered."""
    return there is not None and remote_state(there, 0.0, 0.0) is RemoteState.RUNS
