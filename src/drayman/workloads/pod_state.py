"""What controllers ask of a pod: whether it counts, whether it serves, when it ended, which to give up first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Final

from drayman.api.core import ContainerStatus, Pod, PodCondition
from drayman.api.pods import is_active, is_sidecar
from drayman.api.times import seconds_of, time_left

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "": 0, "Unknown": 1}
_RUNNING: Final = 2


def condition_of(pod: Pod, type_: str) -> PodCondition | None:
    for condition in pod.status.conditions:
        if condition.type_ == type_:
            return condition
    return None


def is_ready(pod: Pod) -> bool:
    condition = condition_of(pod, "Ready")
    return condition is not None and condition.status == "True"


def ready_since(pod: Pod) -> float | None:
    condition = condition_of(pod, "Ready")
    if condition is None or condition.status != "True" or condition.last_transition_time is None:
        return None
    return seconds_of(condition.last_transition_time)


def available_in(pod: Pod, min_ready_seconds: int, now: float) -> float | None:
    """Seconds until a pod counts as available: 0 if it does, None if it is not even ready."""
    if not is_ready(pod):
        return None
    if min_ready_seconds == 0:
        return 0.0
    since = ready_since(pod)
    return None if since is None else time_left(since, min_ready_seconds, now)


def is_available(pod: Pod, min_ready_seconds: int, now: float) -> bool:
    """Whether a pod has been ready for long enough."""
    return available_in(pod, min_ready_seconds, now) == 0.0


def next_available(pods: Iterable[Pod], min_ready_seconds: int, now: float) -> float | None:
    """Seconds until one of the pods becomes available by the passing of time alone."""
    delays = (available_in(pod, min_ready_seconds, now) for pod in pods if is_active(pod))
    return min((delay for delay in delays if delay), default=None)


def finished_at(pod: Pod) -> float:
    """When a pod ended: as its containers say, else when it ceased to be ready, was deleted or, at worst, was made."""
    ended = _containers_ended(pod)
    if ended is not None:
        return ended
    ready = condition_of(pod, "Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time is not None:
        return seconds_of(ready.last_transition_time)
    if pod.metadata.deletion_timestamp is not None:
        grace = pod.metadata.deletion_grace_period_seconds or 0
        return seconds_of(pod.metadata.deletion_timestamp) - grace
    return _created_at(pod)


def _containers_ended(pod: Pod) -> float | None:
    sidecars = {c.name for c in pod.spec.init_containers if is_sidecar(c)}
    counted = [
        *pod.status.container_statuses,
        *(status for status in pod.status.init_container_statuses if status.name in sidecars),
    ]
    times = [_ended(status) for status in counted]
    if not times or None in times:
        return None
    return max(time for time in times if time is not None)


def _ended(status: ContainerStatus) -> float | None:
    terminated = status.state.terminated
    if terminated is None or terminated.finished_at is None:
        return None
    return seconds_of(terminated.finished_at)


def restarts(pod: Pod) -> int:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return sum(status.restart_count for status in statuses)


def _created_at(pod: Pod) -> float:
    created = pod.metadata.creation_timestamp
    return 0.0 if created is None else seconds_of(created)


def expendable_first(
    pods: Iterable[Pod], now: float, neighbours: Iterable[Pod] | None = None
) -> list[Pod]:
    """Pods in the order in which a controller gives them up.

    Those that do least go first: not placed, not running, not ready; then the cheaper ones by their annotation, those on nodes
    with many of the same kind (`neighbours`), those ready for a shorter time, often restarted, or younger. Ages are
    compared by magnitude only, so that it is not always the youngest node that is emptied.
    """
    pods = list(pods)
    crowd = Counter(pod.spec.node_name for pod in (pods if neighbours is None else neighbours))

    def rank(pod: Pod) -> tuple[int | str, ...]:
        since = ready_since(pod)
        return (
            1 if pod.spec.node_name else 0,
            _PHASES.get(pod.status.phase, _RUNNING),
            1 if is_ready(pod) else 0,
            _deletion_cost(pod),
            -crowd[pod.spec.node_name] if pod.spec.node_name else 0,
            -1 if since is None else _magnitude(now - since),
            -restarts(pod),
            _magnitude(now - _created_at(pod)),
            pod.metadata.uid,
        )

    return sorted(pods, key=rank)


def _deletion_cost(pod: Pod) -> int:
    """What the pod's annotation says; anything but a 32-bit number counts as nothing."""
    text = pod.metadata.annotations.get(DELETION_COST, "0")
    digits = text[1:] if text.startswith("-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 10:
        return 0
    return int(text) if abs(int(text)) < 2**31 else 0


def _magnitude(age: float) -> int:
    return -1 if age < 1.0 else int(math.log2(age))
