"""How long a pod is left alone once it has started: `drayman.dev/min-runtime: 30m`.

Whoever would end a pod in favour of another asks here, whether the pod is preempted or moved.
"""

from __future__ import annotations

from typing import Final

from drayman.api.core import Pod
from drayman.api.times import parse_duration, seconds_of

MIN_RUNTIME: Final = "drayman.dev/min-runtime"
"""The annotation of a pod, with a duration."""


def min_runtime_of(pod: Pod) -> float:
    """In seconds; 0 where none is stated, or what is stated is not a duration."""
    text = pod.metadata.annotations.get(MIN_RUNTIME)
    if text is None:
        return 0.0
    try:
        return parse_duration(text)
    except ValueError:
        return 0.0


def protected_until(pod: Pod) -> float | None:
    """Until when a pod that has a node is left alone, in seconds since the epoch; None if it is not.

    Its time begins when the node has taken it. Before that, it counts from its creation: it is about to start.
    """
    least = min_runtime_of(pod)
    if not least:
        return None
    since = seconds_of(pod.status.start_time or pod.metadata.creation_timestamp)
    return None if since is None else since + least


def is_protected(pod: Pod, now: float) -> bool:
    """Whether a pod has not yet run for as long as it is to be left alone."""
    until = protected_until(pod)
    return until is not None and now < until
