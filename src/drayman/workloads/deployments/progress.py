"""The status of a deployment: its counts, whether enough of it serves, and whether it makes progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from drayman.api.times import seconds_of, timestamp_at
from drayman.api.workloads import Deployment, DeploymentStatus, ReplicaSet, WorkloadCondition
from drayman.workloads.conditions import (
    Conditions,
    find,
    with_condition,
    without,
)
from drayman.workloads.deployments.sizes import limits_of

PROGRESSING: Final = "Progressing"
AVAILABLE_REASON: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"
_NO_DEADLINE: Final = 2**31 - 1


def has_deadline(deployment: Deployment) -> bool:
    return deployment.spec.progress_deadline_seconds not in (None, _NO_DEADLINE)


def counted(
    deployment: Deployment, sets: Sequence[ReplicaSet], new: ReplicaSet | None, now: float
) -> DeploymentStatus:
    """The counts of all replica sets, and whether enough pods are available."""
    available = sum(s.status.available_replicas for s in sets)
    least = deployment.spec.replicas - limits_of(deployment).unavailable
    enough = available >= least
    conditions = with_condition(
        deployment.status.conditions,
        "Available",
        "True" if enough else "False",
        "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        f"Deployment {'has' if enough else 'does not have'} minimum availability.",
        now,
        updates=True,
    )
    return msgspec.structs.replace(
        deployment.status,
        observed_generation=deployment.metadata.generation,
        replicas=sum(s.status.replicas for s in sets),
        updated_replicas=0 if new is None else new.status.replicas,
        ready_replicas=sum(s.status.ready_replicas for s in sets),
        available_replicas=available,
        unavailable_replicas=max(0, sum(s.spec.replicas for s in sets) - available),
        terminating_replicas=sum(s.status.terminating_replicas or 0 for s in sets),
        conditions=conditions,
    )


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    wanted = deployment.spec.replicas
    return (
        status.updated_replicas == status.replicas == status.available_replicas == wanted
        and status.observed_generation >= deployment.metadata.generation
    )


def with_progress(
    deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None, now: float
) -> DeploymentStatus:
    """The status with what is known of the progress: done, under way or stuck."""
    if not has_deadline(deployment):
        return _set(status, without(status.conditions, PROGRESSING))
    current = find(status.conditions, PROGRESSING)
    settled = status.replicas == status.updated_replicas and (
        current is not None and current.reason == AVAILABLE_REASON
    )
    if settled:
        return status
    what = (
        f'Deployment "{deployment.metadata.name}"'
        if new is None
        else f'ReplicaSet "{new.metadata.name}"'
    )
    if is_complete(deployment, status):
        message = f"{what} has successfully progressed."
        return _progressing(status, "True", AVAILABLE_REASON, message, now)
    if _has_moved(deployment.status, status):
        # The time of the update counts here, so the condition is renewed even where it says the same.
        renewed = WorkloadCondition(
            type_=PROGRESSING,
            status="True",
            reason="ReplicaSetUpdated",
            message=f"{what} is progressing.",
            last_update_time=timestamp_at(now),
            last_transition_time=current.last_transition_time
            if current is not None and current.status == "True"
            else timestamp_at(now),
        )
        return _set(status, (*without(status.conditions, PROGRESSING), renewed))
    if _is_stuck(deployment, current, now):
        message = f"{what} has timed out progressing."
        return _progressing(status, "False", TIMED_OUT, message, now)
    return status


def with_failure(status: DeploymentStatus, sets: Sequence[ReplicaSet]) -> DeploymentStatus:
    """The status with the failure that a replica set reports, if one does."""
    rest = without(status.conditions, "ReplicaFailure")
    for replica_set in reversed(sets):
        failure = find(replica_set.status.conditions, "ReplicaFailure")
        if failure is not None:
            copied = msgspec.structs.replace(failure, last_update_time=failure.last_transition_time)
            return _set(status, (*rest, copied))
    return _set(status, rest)


def with_pause(deployment: Deployment, now: float) -> Conditions:
    """The conditions with what a pause, or its end, means for the progress."""
    conditions = deployment.status.conditions
    current = find(conditions, PROGRESSING)
    reason = "" if current is None else current.reason
    if not has_deadline(deployment) or reason == TIMED_OUT:
        return conditions
    if deployment.spec.paused and reason != PAUSED:
        change = (PAUSED, "Deployment is paused")
    elif not deployment.spec.paused and reason == PAUSED:
        change = ("DeploymentResumed", "Deployment is resumed")
    else:
        return conditions
    return with_condition(conditions, PROGRESSING, "Unknown", *change, now, updates=True)


def until_stuck(deployment: Deployment, status: DeploymentStatus, now: float) -> float | None:
    """Seconds until a deployment that makes no progress counts as stuck; None where it is done or cannot be."""
    current = find(status.conditions, PROGRESSING)
    limit = deployment.spec.progress_deadline_seconds
    if limit is None or not has_deadline(deployment) or current is None:
        return None
    if current.last_update_time is None or current.reason in (AVAILABLE_REASON, TIMED_OUT, PAUSED):
        return None
    # A second more, since times are given in whole seconds.
    return max(0.0, seconds_of(current.last_update_time) + limit - now) + 1.0


def _is_stuck(deployment: Deployment, current: WorkloadCondition | None, now: float) -> bool:
    limit = deployment.spec.progress_deadline_seconds
    if current is None or limit is None or current.reason in (AVAILABLE_REASON, PAUSED):
        return False
    if current.reason == TIMED_OUT:
        return True
    since = current.last_update_time
    return since is not None and seconds_of(since) + limit < now


def _has_moved(old: DeploymentStatus, new: DeploymentStatus) -> bool:
    return (
        new.updated_replicas > old.updated_replicas
        or new.replicas - new.updated_replicas < old.replicas - old.updated_replicas
        or new.ready_replicas > old.ready_replicas
        or new.available_replicas > old.available_replicas
    )


def _progressing(
    status: DeploymentStatus, value: str, reason: str, message: str, now: float
) -> DeploymentStatus:
    return _set(
        status,
        with_condition(status.conditions, PROGRESSING, value, reason, message, now, updates=True),
    )


def _set(status: DeploymentStatus, conditions: Conditions) -> DeploymentStatus:
    return msgspec.structs.replace(status, conditions=conditions)
