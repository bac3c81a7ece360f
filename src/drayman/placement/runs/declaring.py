"""How long a pod runs, as far as it is declared: by the pod itself, or by its Job.

| what | means |
|---|---|
| annotation `drayman.dev/runtime` of the pod, or of its Job | how long it runs at most |
| annotation `drayman.dev/run-for` of the pod | how long its simulated containers run, unless they are started again |
| `activeDeadlineSeconds` of the pod | how long it may run |
| `activeDeadlineSeconds` of the Job | how long after the start of the Job its pods may run |

Where several are given, the annotations say what is expected, in this order, and deadlines limit it. What cannot be understood counts as
not given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from drayman.api.core import Pod
from drayman.api.jobs import Job
from drayman.api.times import parse_duration, seconds_of

RUNTIME: Final = "drayman.dev/runtime"
"""Annotation of a pod, or of a Job for its pods: how long a pod runs at most, such as `2h`."""
RUN_FOR: Final = "drayman.dev/run-for"
"""Annotation of a pod: how long its containers run on a simulated node."""
_LONGEST_DEADLINE_S: Final = 2**31 - 1
"""The longest that a pod may have. Of a Job any number of 64 bits is accepted, and that is no date."""
_LONGEST_TEXT: Final = 64
"""No duration is longer. What was read is remembered, so it must not be of any length."""


class Basis(Enum):
    """What it rests on that a pod ends at some time."""

    DECLARED = "declared"
    DEADLINE = "deadline"
    OBSERVED = "observed"
    LEAVING = "being deleted"


class JobTerms(Struct, frozen=True):
    """What a Job says about how long its pods run."""

    stated: float | None
    """The seconds that each of them runs."""
    deadline: float | None
    """When all of them are ended, in seconds since the epoch."""
    limit: float | None
    """The seconds that all of them have together, if the Job has not begun yet."""


def terms_of(job: Job) -> JobTerms | None:
    """None if the Job says nothing."""
    stated = _stated(job.metadata.annotations, RUNTIME)
    most, begun = job.spec.active_deadline_seconds, seconds_of(job.status.start_time)
    if stated is None and most is None:
        return None
    if most is None:
        return JobTerms(stated, None, None)
    most = min(most, _LONGEST_DEADLINE_S)
    return JobTerms(stated, None if begun is None else begun + most, float(most))


def says_something(pod: Pod) -> bool:
    """Whether the pod itself declares anything. Most do not, so this is cheap."""
    annotations = pod.metadata.annotations
    if annotations and (RUNTIME in annotations or RUN_FOR in annotations):
        return True
    return pod.spec.active_deadline_seconds is not None


def declared_by(pod: Pod) -> tuple[str | None, str | None, int | None]:
    """What the pod itself declares, as it is written."""
    annotations = pod.metadata.annotations
    own = pod.spec.active_deadline_seconds
    return annotations.get(RUNTIME), annotations.get(RUN_FOR), own


def ends_by_itself(pod: Pod) -> bool:
    """Whether the pod is over when its containers have ended: otherwise they are started again."""
    return pod.spec.restart_policy in ("Never", "OnFailure")


def expected(pod: Pod, job: JobTerms | None) -> float | None:
    """The seconds that a pod runs, as the annotations say."""
    annotations = pod.metadata.annotations
    found = _stated(annotations, RUNTIME) if annotations else None
    if found is None and job is not None:
        found = job.stated
    if found is None and annotations and ends_by_itself(pod):
        found = _stated(annotations, RUN_FOR)
    return found


def deadline_of(pod: Pod, job: JobTerms | None, started: float) -> float | None:
    """When a pod that starts at some time is ended, whatever it does."""
    own = pod.spec.active_deadline_seconds
    found = [] if own is None else [started + min(own, _LONGEST_DEADLINE_S)]
    if job is not None:
        if job.deadline is not None:
            found.append(job.deadline)
        elif job.limit is not None:
            found.append(started + job.limit)
    return min(found, default=None)


def misstated(annotations: Mapping[str, str]) -> Iterator[str]:
    """What annotations say about run times that is not understood."""
    text = annotations.get(RUNTIME)
    if text is not None and _stated(annotations, RUNTIME) is None:
        shown = repr(text) if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]!r}..."
        yield (
            f"metadata.annotations[{RUNTIME}]: {shown} is not a duration such as 90m or 2h30m, and is ignored"
        )


def _stated(annotations: Mapping[str, str], name: str) -> float | None:
    text = annotations.get(name)
    return None if text is None or len(text) > _LONGEST_TEXT else _seconds(text)


@lru_cache(maxsize=1 << 12)
def _seconds(text: str) -> float | None:
    try:
        seconds = parse_duration(text)
    except ValueError:
        return None
    return seconds if seconds > 0 else None
