"""Conditions of workloads: what is true of them, since when and why."""

from __future__ import annotations

from collections.abc import Iterable

from drayman.api.times import timestamp_at
from drayman.api.workloads import WorkloadCondition

Conditions = tuple[WorkloadCondition, ...]


def find(conditions: Iterable[WorkloadCondition], type_: str) -> WorkloadCondition | None:
    for condition in conditions:
        if condition.type_ == type_:
            return condition
    return None


def without(conditions: Conditions, type_: str) -> Conditions:
    return tuple(condition for condition in conditions if condition.type_ != type_)


def with_condition(
    conditions: Conditions,
    type_: str,
    status: str,
    reason: str,
    message: str,
    now: float,
    *,
    updates: bool = False,
) -> Conditions:
    """The conditions with one set. Nothing changes where status and reason are as before.

    The time of transition only moves with the status. `updates` also keeps the time of the last update.
    """
    old = find(conditions, type_)
    if old is not None and (old.status, old.reason) == (status, reason):
        return conditions
    moment = timestamp_at(now)
    unmoved = old is not None and old.status == status
    new = WorkloadCondition(
        type_=type_,
        status=status,
        reason=reason,
        message=message,
        last_update_time=moment if updates else None,
        last_transition_time=old.last_transition_time if old is not None and unmoved else moment,
    )
    return (*without(conditions, type_), new)
