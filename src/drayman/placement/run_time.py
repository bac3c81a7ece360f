"""How long a pod is left alone once it runs: `drayman.dev/min-runtime` on the pod, or on the Job that makes it.

A pod that has run for less is not preempted. The time counts from when its node started it, or else from when it was bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.api.core import Pod
from drayman.api.times import parse_duration, seconds_of, time_left

MIN_RUNTIME: Final = "drayman.dev/min-runtime"
_SCHEDULED: Final = "PodScheduled"


class InvalidRunTimeError(ValueError):
    """The annotation is not a duration."""


def min_runtime_of(pod: Pod, of_job: Mapping[str, str]) -> float | None:
    """In seconds; None if neither the pod nor its Job, which states `of_job`, says anything. Raises InvalidRunTimeError."""
    text = pod.metadata.annotations.get(MIN_RUNTIME)
    is_own = text is not None
    if text is None:
        text = of_job.get(MIN_RUNTIME)
    if not text:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        whose = "" if is_own else "of its job: "
        raise InvalidRunTimeError(f"{whose}metadata.annotations[{MIN_RUNTIME}]: {error}") from error


def run_time_fault(pod: Pod, of_job: Mapping[str, str]) -> str:
    """What is wrong with what is said; empty if nothing is."""
    try:
        min_runtime_of(pod, of_job)
    except InvalidRunTimeError as error:
        return f"{error}. The pod may be preempted at any time."
    return ""


def left_alone_until(pod: Pod, of_job: Mapping[str, str], now: float) -> float | None:
    """Until when a pod on a node is not to be preempted; None if it may be. What makes no sense protects nothing."""
    try:
        least = min_runtime_of(pod, of_job)
    except InvalidRunTimeError:
        return None  # reported in an event
    if least is None:
        return None
    since = started_at(pod)
    left = least if since is None else time_left(since, least, now)
    return now + left if left else None


def started_at(pod: Pod) -> float | None:
    """When a pod began to run on its node, as far as that is known."""
    if pod.status.start_time is not None:
        return seconds_of(pod.status.start_time)
    for condition in pod.status.conditions:
        if condition.type_ == _SCHEDULED and condition.status == "True":
            return seconds_of(condition.last_transition_time)
    return None
