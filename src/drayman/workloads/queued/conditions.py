"""The conditions of Workloads and queues: setting one, and the words that Kueue uses."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from drayman.api.kueue_workload import WorkloadStatus
from drayman.api.meta import Condition
from drayman.api.times import seconds_of, timestamp_at

WAITING_FOR_REPLACEMENT: Final = "WaitingForReplacementPods"

# Why something was evicted.
BY_PREEMPTION: Final = "Preempted"
BY_TIMEOUT: Final = "PodsReadyTimeout"
BY_CHECK: Final = "AdmissionCheck"
BY_CLUSTER_QUEUE: Final = "ClusterQueueStopped"
BY_LOCAL_QUEUE: Final = "LocalQueueStopped"
BY_NODE: Final = "NodeFailures"
DEACTIVATED: Final = "Deactivated"

# What is behind it.
WAIT_FOR_START: Final = "WaitForStart"
WAIT_FOR_RECOVERY: Final = "WaitForRecovery"
LIMIT_EXCEEDED: Final = "RequeuingLimitExceeded"
TIME_EXCEEDED: Final = "MaximumExecutionTimeExceeded"
OF_CHECK: Final = "AdmissionCheck"

# Why something is over, besides how it ended.
OWNER_NOT_FOUND: Final = "OwnerNotFound"
OUT_OF_SYNC: Final = "OutOfSync"

_LONGEST: Final = 32768


def with_condition(
    conditions: tuple[Condition, ...],
    type_: str,
    value: bool,
    reason: str,
    message: str,
    now: float,
    generation: int = 0,
) -> tuple[Condition, ...]:
    """The conditions with one set, in its place. Since when it holds only moves with its value."""
    status = "True" if value else "False"
    old = next((each for each in conditions if each.type_ == type_), None)
    since = old.last_transition_time if old is not None and old.status == status else None
    new = Condition(
        type_=type_,
        status=status,
        reason=reason,
        message=message[:_LONGEST],
        last_transition_time=since or timestamp_at(now),
        observed_generation=generation,
    )
    if old is None:
        return (*conditions, new)
    return tuple(new if each.type_ == type_ else each for each in conditions)


def setting(
    status: WorkloadStatus,
    type_: str,
    value: bool,
    reason: str,
    message: str,
    now: float,
    generation: int = 0,
) -> WorkloadStatus:
    changed = with_condition(status.conditions, type_, value, reason, message, now, generation)
    return replace(status, conditions=changed)


def dropping(status: WorkloadStatus, *types: str) -> WorkloadStatus:
    """The status without some conditions."""
    return replace(
        status, conditions=tuple(each for each in status.conditions if each.type_ not in types)
    )


def since(status: WorkloadStatus, type_: str) -> float | None:
    """Since when a condition is as it is, in seconds since the epoch; None if there is none."""
    found = status.condition(type_)
    return None if found is None else seconds_of(found.last_transition_time)


def reason_of(status: WorkloadStatus, type_: str) -> str:
    """Why a condition is as it is; empty if there is none."""
    found = status.condition(type_)
    return "" if found is None else found.reason
