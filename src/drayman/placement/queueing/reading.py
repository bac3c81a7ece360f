"""What the object of a queue says.

A resource that it does not mention has no bounds, but no quota of GPUs either. Of one that it mentions, what it leaves out is a quota of 0,
no limit and a weight of 1. (KAI takes everything that is left out for 0, so that nothing starts without a limit.)
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from drayman.api.custom_groups import KaiQueue, KaiQueueResource, KaiQueueSpec, spec_of
from drayman.api.errors import DecodeError
from drayman.api.times import parse_duration, seconds_of
from drayman.placement.queueing.queues import PRIORITY, Amount, Bounds, Queue

_UNLIMITED: Final = -1
_MEGABYTE: Final = 10**6


class InvalidQueueError(Exception):
    """A queue does not make sense. The text begins with the field."""


def queue_of(given: KaiQueue) -> Queue:
    """Raises InvalidQueueError."""
    try:
        spec = spec_of(KaiQueueSpec, given)
    except DecodeError as error:
        raise InvalidQueueError(str(error)) from error
    resources = spec.resources
    gpu = None if resources is None else resources.gpu
    path = "spec.resources.gpu"
    bounds = Bounds(0) if gpu is None else _bounds(gpu, path)
    return Queue(
        name=given.metadata.name,
        parent=spec.parent_queue,
        priority=PRIORITY if spec.priority is None else spec.priority,
        created=seconds_of(given.metadata.creation_timestamp) or 0.0,
        quota=bounds.quota,
        limit=bounds.limit,
        weight=1 if gpu is None else _weight(gpu, path),
        preempt_min_runtime=_seconds(spec.preempt_min_runtime, "spec.preemptMinRuntime"),
        reclaim_min_runtime=_seconds(spec.reclaim_min_runtime, "spec.reclaimMinRuntime"),
        cpu=_bounds(None if resources is None else resources.cpu, "spec.resources.cpu"),
        memory=_bounds(
            None if resources is None else resources.memory, "spec.resources.memory", _MEGABYTE
        ),
    )


def _bounds(given: KaiQueueResource | None, path: str, unit: int = 1) -> Bounds:
    if given is None:
        return Bounds()
    return Bounds(
        _amount(given.quota, f"{path}.quota", unit), _amount(given.limit, f"{path}.limit", unit)
    )


def _amount(given: float, field: str, unit: int) -> Amount | None:
    if given == _UNLIMITED:
        return None
    return unit * _positive(given, field, "; -1 stands for no limit")


def _weight(given: KaiQueueResource, path: str) -> Amount:
    return _positive(given.over_quota_weight, f"{path}.overQuotaWeight")


def _positive(given: float, field: str, hint: str = "") -> Fraction:
    if not math.isfinite(given) or given < 0:
        raise InvalidQueueError(f"{field}: {given:g} is no amount{hint}")
    return Fraction(str(given))


def _seconds(text: str | None, field: str) -> float | None:
    if text is None:
        return None
    try:
        return parse_duration(text)
    except ValueError as error:
        raise InvalidQueueError(f"{field}: {error}") from error
