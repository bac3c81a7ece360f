"""How long a pod is left alone once it has started: `drayman.dev/min-runtime: 30m` on the pod, or on the Job that makes it.

Whoever would end a pod in favour of another asks here, whether the pod is preempted or moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from drayman.api.core import Pod
from drayman.api.pods import started_at
from drayman.api.times import parse_duration, seconds_of

MIN_RUNTIME: Final = "drayman.dev/min-runtime"
"""The annotation of a pod or a Job, with a duration."""
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


def min_runtime_of(pod: Pod, of_job: Mapping[str, str] = _NOTHING) -> float:
    """In seconds; 0 where none is stated, or what is stated is not a duration. `of_job` are annotations of its Job."""
    text = pod.metadata.annotations.get(MIN_RUNTIME)
    if text is None:
        text = of_job.get(MIN_RUNTIME)
    if text is None:
        return 0.0
    try:
        return parse_duration(text)
    except ValueError:
        return 0.0


def protected_until(pod: Pod, of_job: Mapping[str, str] = _NOTHING) -> float | None:
    """Until when a pod that has a node is left alone, in seconds since the epoch; None if it is not.

    Its time begins when the node has taken it, or else when it was bound. Before that, it counts from its creation: it is about to start.
    """
    least = min_runtime_of(pod, of_job)
    if not least:
        return None
    since = started_at(pod)
    if since is None:
        since = seconds_of(pod.metadata.creation_timestamp)
    return None if since is None else since + least


def is_protected(pod: Pod, now: float, of_job: Mapping[str, str] = _NOTHING) -> bool:
    """Whether a pod has not yet run for as long as it is to be left alone."""
    until = protected_until(pod, of_job)
    return until is not None and now < until


def misstated(annotations: Mapping[str, str]) -> Iterator[str]:
    """What annotations of a pod or a Job say that is not a duration, in words."""
    text = annotations.get(MIN_RUNTIME)
    if text is None:
        return
    try:
        parse_duration(text)
    except ValueError as error:
        yield f"metadata.annotations[{MIN_RUNTIME}]: {error}. The pod may be preempted at any time."
