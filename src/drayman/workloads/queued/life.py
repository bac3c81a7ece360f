"""The life of a Workload, told in its status: it waits, holds quota, is admitted, is evicted, waits again, and ends.

Each function returns the status that follows from another one and an event. Quota that is to be given back stays reserved until nothing
runs any more, so that it is never given to two: eviction (`evicted`) is an announcement, and `released` follows when the pods are gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from drayman.api.kueue_workload import (
    ADMITTED,
    DEACTIVATION_TARGET,
    EVICTED,
    FINISHED,
    PODS_READY,
    PREEMPTED,
    QUOTA_RESERVED,
    REQUEUED,
    Admission,
    AdmissionCheckState,
    EvictionCount,
    PodSetRequest,
    ReclaimablePods,
    RequeueState,
    SchedulingStats,
    WorkloadSpec,
    WorkloadStatus,
)
from drayman.api.times import timestamp_at
from drayman.workloads.queued.conditions import (
    BY_CLUSTER_QUEUE,
    BY_LOCAL_QUEUE,
    BY_NODE,
    BY_PREEMPTION,
    DEACTIVATED,
    WAIT_FOR_RECOVERY,
    WAIT_FOR_START,
    dropping,
    reason_of,
    setting,
    since,
)
from drayman.workloads.queued.kinds import Ended

PENDING, READY, RETRY, REJECTED = "Pending", "Ready", "Retry", "Rejected"
"""The states of a check."""
DRIFT: Final = "QuotaDrift"
"""Condition: devices cost more than is reserved for them. It is not charged."""
BACKOFF_FINISHED: Final = "BackoffFinished"
REACTIVATED: Final = "Reactivated"
NO_RESERVATION: Final = "NoReservation"
_ALL_READY: Final = "All pods reached readiness and the workload is running"
_NOT_READY: Final = "Not all pods are ready or succeeded"
_LOST: Final = "At least one pod has failed or is not ready any more"
_OVER: Final = {
    BY_CLUSTER_QUEUE: (
        "ClusterQueueRestarted",
        "The ClusterQueue was restarted after being stopped",
    ),
    BY_LOCAL_QUEUE: ("LocalQueueRestarted", "The LocalQueue was restarted after being stopped"),
}
"""How it is said that the reason of an eviction is over, where it was not a matter of time."""
_AGAIN_AT_ONCE: Final = frozenset({BY_PREEMPTION, BY_NODE, DRIFT})
"""After these, a Workload is queued again as soon as it has stopped; after others, when what they are about is over."""


def holds_quota(status: WorkloadStatus) -> bool:
    return status.is_true(QUOTA_RESERVED) and status.admission is not None


def is_admitted(status: WorkloadStatus) -> bool:
    return status.is_true(ADMITTED)


def is_evicted(status: WorkloadStatus) -> bool:
    return status.is_true(EVICTED)


def is_finished(status: WorkloadStatus) -> bool:
    return status.is_true(FINISHED)


def may_run(status: WorkloadStatus, spec: WorkloadSpec) -> bool:
    """Whether the pods of a Workload may run: it is admitted, active and not evicted."""
    return is_admitted(status) and holds_quota(status) and not is_evicted(status) and spec.active


# Waiting.


def refused(
    status: WorkloadStatus,
    reason: str,
    message: str,
    requests: Sequence[PodSetRequest],
    now: float,
    generation: int = 0,
) -> WorkloadStatus:
    """It was tried and got no quota."""
    status = setting(status, QUOTA_RESERVED, False, reason, message, now, generation)
    status = setting(
        status, ADMITTED, False, NO_RESERVATION, "The workload has no reservation", now, generation
    )
    return replace(status, resource_requests=tuple(requests), admission=None)


# Quota, checks, admission.


def reserved(
    status: WorkloadStatus, admission: Admission, now: float, generation: int = 0
) -> WorkloadStatus:
    """It was given quota. What an earlier eviction left is history from now on."""
    status = back_in_queue(status, now, generation)
    message = f"Quota reserved in ClusterQueue {admission.cluster_queue}"
    status = setting(status, QUOTA_RESERVED, True, "QuotaReserved", message, now, generation)
    for type_ in (EVICTED, PREEMPTED):
        old = status.condition(type_)
        if old is not None and old.status == "True":
            text = f"Previously: {old.message}"
            status = setting(status, type_, False, "QuotaReserved", text, now, generation)
    return replace(status, admission=admission, resource_requests=())


def with_admission(status: WorkloadStatus, admission: Admission) -> WorkloadStatus:
    """With another amount of what it was given."""
    return replace(status, admission=admission)


def with_checks(status: WorkloadStatus, required: Sequence[str], now: float) -> WorkloadStatus:
    """With a state for each check that it needs, and none for others."""
    known = {each.name: each for each in status.admission_checks}
    states = tuple(
        known.get(name)
        or AdmissionCheckState(name=name, state=PENDING, last_transition_time=timestamp_at(now))
        for name in required
    )
    return status if states == status.admission_checks else replace(status, admission_checks=states)


def are_checks_ready(status: WorkloadStatus) -> bool:
    return all(each.state == READY for each in status.admission_checks)


def admitted(status: WorkloadStatus, now: float, generation: int = 0) -> WorkloadStatus:
    """Quota and all checks are there."""
    return setting(status, ADMITTED, True, ADMITTED, "The workload is admitted", now, generation)


def not_yet_admitted(status: WorkloadStatus, now: float, generation: int = 0) -> WorkloadStatus:
    """Quota is there, and checks are not."""
    waiting = [each.name for each in status.admission_checks if each.state != READY]
    text = f"The workload waits for the admission checks: {', '.join(waiting)}"
    return setting(status, ADMITTED, False, "UnsatisfiedAdmissionChecks", text, now, generation)


def granted(
    status: WorkloadStatus,
    admission: Admission,
    checks: Sequence[str],
    now: float,
    generation: int = 0,
) -> WorkloadStatus:
    """It was given quota for which its queue has these checks: it is admitted at once if nothing else has to be checked."""
    status = with_checks(reserved(status, admission, now, generation), checks, now)
    if are_checks_ready(status):
        return admitted(status, now, generation)
    return not_yet_admitted(status, now, generation)


def retried_after(status: WorkloadStatus) -> int:
    """After how many seconds checks that ask for another try want it."""
    return max(
        (
            each.requeue_after_seconds or 0
            for each in status.admission_checks
            if each.state == RETRY
        ),
        default=0,
    )


# What devices cost once they are known.


def drifted(status: WorkloadStatus, excess: str, now: float, generation: int = 0) -> WorkloadStatus:
    """Its devices cost more than it is charged, by this much; empty: they do not, or no longer."""
    if excess:
        text = f"The devices that were allocated cost more than is reserved for them: {excess} more"
        return setting(status, DRIFT, True, "DevicesCostMore", text, now, generation)
    if not has_drifted(status):
        return status
    text = "The devices that were allocated cost what is reserved for them, or less"
    return setting(status, DRIFT, False, "WithinReservation", text, now, generation)


def has_drifted(status: WorkloadStatus) -> bool:
    return status.is_true(DRIFT)


# Readiness.


def pods_ready(
    status: WorkloadStatus, ready: bool, now: float, generation: int = 0
) -> WorkloadStatus:
    """What is known about its pods while it is admitted."""
    if ready:
        return setting(status, PODS_READY, True, "Started", _ALL_READY, now, generation)
    lost = status.is_true(PODS_READY) or reason_of(status, PODS_READY) == WAIT_FOR_RECOVERY
    reason, message = (WAIT_FOR_RECOVERY, _LOST) if lost else (WAIT_FOR_START, _NOT_READY)
    return setting(status, PODS_READY, False, reason, message, now, generation)


def readiness_timer(status: WorkloadStatus) -> tuple[str, float] | None:
    """What an admitted Workload whose pods are not ready waits for, and since when."""
    begun = since(status, ADMITTED)
    if not is_admitted(status) or status.is_true(PODS_READY) or begun is None:
        return None
    lost = since(status, PODS_READY)
    if reason_of(status, PODS_READY) == WAIT_FOR_RECOVERY and lost is not None:
        return WAIT_FOR_RECOVERY, lost
    return WAIT_FOR_START, begun


def reclaimed(status: WorkloadStatus, pods: Mapping[str, int]) -> WorkloadStatus:
    """With pods that have ended and are not replaced. Those that were noted stay."""
    known = {each.name: each.count for each in status.reclaimable_pods}
    merged = {name: max(known.get(name, 0), pods.get(name, 0)) for name in {**known, **pods}}
    if merged == known:
        return status
    counts = tuple(
        ReclaimablePods(name=name, count=count) for name, count in sorted(merged.items()) if count
    )
    return replace(status, reclaimable_pods=counts)


# Eviction.


def evicted(
    status: WorkloadStatus,
    reason: str,
    message: str,
    now: float,
    *,
    cause: str = "",
    generation: int = 0,
) -> WorkloadStatus:
    """It has to give up its quota. It keeps it until nothing of it runs."""
    status = setting(status, EVICTED, True, reason, message, now, generation)
    stats = {
        (each.reason, each.underlying_cause): each.count
        for each in (status.scheduling_stats or SchedulingStats()).evictions
    }
    stats[reason, cause] = stats.get((reason, cause), 0) + 1
    counts = tuple(
        EvictionCount(reason=why, underlying_cause=behind, count=count)
        for (why, behind), count in stats.items()
    )
    return replace(status, scheduling_stats=SchedulingStats(evictions=counts))


def preempted(
    status: WorkloadStatus, reason: str, message: str, now: float, generation: int = 0
) -> WorkloadStatus:
    """It has to give up its quota for another one."""
    status = evicted(status, BY_PREEMPTION, message, now, generation=generation)
    return setting(status, PREEMPTED, True, reason, message, now, generation)


def released(
    status: WorkloadStatus, why_waiting: str, message: str, now: float, generation: int = 0
) -> WorkloadStatus:
    """Nothing of it runs any more: its quota is free. `why_waiting` is the reason that it has none now."""
    begun = since(status, ADMITTED)
    ran = 0
    if is_admitted(status) and begun is not None:
        ran = max(0, int(now - begun))
    past = status.accumulated_past_execution_time_seconds or 0
    reason = reason_of(status, EVICTED)
    status = setting(status, QUOTA_RESERVED, False, why_waiting, message, now, generation)
    status = setting(
        status, ADMITTED, False, NO_RESERVATION, "The workload has no reservation", now, generation
    )
    status = dropping(status, PODS_READY, DRIFT)
    status = requeued(
        status, reason in _AGAIN_AT_ONCE, reason or why_waiting, message, now, generation
    )
    return replace(
        status,
        admission=None,
        reclaimable_pods=(),
        accumulated_past_execution_time_seconds=past + ran or None,
        admission_checks=tuple(_asked_again(each, now) for each in status.admission_checks),
    )


def _asked_again(check: AdmissionCheckState, now: float) -> AdmissionCheckState:
    """A check of a workload that has lost its quota. One that rejects it goes on saying why."""
    if check.state in (PENDING, REJECTED):
        return check
    return replace(
        check,
        state=PENDING,
        message="Reset to Pending after eviction. Previously: " + check.state,
        last_transition_time=timestamp_at(now),
        requeue_after_seconds=None,
        pod_set_updates=(),
    )


def requeued(
    status: WorkloadStatus,
    value: bool,
    reason: str,
    message: str,
    now: float,
    generation: int = 0,
) -> WorkloadStatus:
    """Whether it is in its queue again after an eviction."""
    return setting(status, REQUEUED, value, reason, message, now, generation)


def back_in_queue(status: WorkloadStatus, now: float, generation: int = 0) -> WorkloadStatus:
    """In its queue again, if it was not: what it was evicted for is over."""
    why = waits_to_be_requeued(status)
    if not why:
        return status
    reason, message = _OVER.get(why, (BACKOFF_FINISHED, "The workload backoff was finished"))
    status = requeued(status, True, reason, message, now, generation)
    count = (status.requeue_state or RequeueState()).count
    return replace(status, requeue_state=None if count is None else RequeueState(count=count))


def waits_to_be_requeued(status: WorkloadStatus) -> str:
    """Why an evicted Workload is not in its queue again; empty if it is."""
    found = status.condition(REQUEUED)
    return found.reason if found is not None and found.status == "False" else ""


def backed_off(
    status: WorkloadStatus, now: float, base: float, most: float, jitter: float = 0.0
) -> WorkloadStatus:
    """With one more try counted, and not before its back-off is over: it doubles from try to try. A later time stays."""
    state = status.requeue_state or RequeueState()
    count = (state.count or 0) + 1
    # 2**40 seconds is past any limit.
    wait = min(base * 2.0 ** min(count - 1, 40), most) * (1.0 + jitter)
    at = timestamp_at(now + wait)
    if state.requeue_at is not None and state.requeue_at > at:
        at = state.requeue_at
    return replace(status, requeue_state=RequeueState(count=count, requeue_at=at))


def not_before(status: WorkloadStatus, at: float) -> WorkloadStatus:
    """Not queued again before a time. A later one stays."""
    state = status.requeue_state or RequeueState()
    moment = timestamp_at(at)
    if state.requeue_at is not None and state.requeue_at > moment:
        return status
    return replace(status, requeue_state=replace(state, requeue_at=moment))


def exceeds(status: WorkloadStatus, limit: int | None) -> bool:
    """Whether one more try would be more than allowed."""
    count = (status.requeue_state or RequeueState()).count or 0
    return limit is not None and count + 1 > limit


# Deactivation and the end.


def to_be_deactivated(
    status: WorkloadStatus, cause: str, message: str, now: float, generation: int = 0
) -> WorkloadStatus:
    """It is going to be made inactive, which happens in its spec."""
    return setting(status, DEACTIVATION_TARGET, True, cause, message, now, generation)


def deactivation_cause(status: WorkloadStatus) -> str:
    return reason_of(status, DEACTIVATION_TARGET) if status.is_true(DEACTIVATION_TARGET) else ""


def reactivated(status: WorkloadStatus, now: float, generation: int = 0) -> WorkloadStatus:
    """Made active again: what was counted against it is forgotten."""
    status = dropping(status, DEACTIVATION_TARGET)
    message = "The workload was reactivated"
    status = requeued(status, True, REACTIVATED, message, now, generation)
    return replace(
        status,
        requeue_state=None,
        accumulated_past_execution_time_seconds=None,
        admission_checks=tuple(
            replace(each, state=PENDING, message="") for each in status.admission_checks
        ),
    )


def finished(
    status: WorkloadStatus, ended: Ended, now: float, generation: int = 0
) -> WorkloadStatus:
    """What it was for has ended. Its admission stays as a record, its quota is free."""
    reason = "Succeeded" if ended.succeeded else "Failed"
    return over(status, reason, ended.message, now, generation)


def over(
    status: WorkloadStatus, reason: str, message: str, now: float, generation: int = 0
) -> WorkloadStatus:
    """It is done with, for a reason that need not lie in what it was for."""
    return setting(status, FINISHED, True, reason, message, now, generation)


def running_seconds(status: WorkloadStatus, now: float) -> float:
    """How long it has been admitted, over all its admissions."""
    begun = since(status, ADMITTED)
    past = float(status.accumulated_past_execution_time_seconds or 0)
    return past + (max(0.0, now - begun) if is_admitted(status) and begun is not None else 0.0)


def is_stopped_by_queue(status: WorkloadStatus) -> bool:
    """Whether it waits because a queue was stopped."""
    return waits_to_be_requeued(status).endswith("QueueStopped")


def is_deactivated(status: WorkloadStatus) -> bool:
    return waits_to_be_requeued(status) == DEACTIVATED
