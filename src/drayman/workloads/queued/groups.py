"""Groups of pods that are admitted together: when a group is whole, which pods are too many or missing, and when it has ended.

Pods state the group and its size in labels and annotations (`placement/gangs/dialects/kueue.py`). Its Workload has the name of the group
and one pod set for each role. A Workload of that name which is not marked as a group's belongs to someone else and is left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from drayman.api import pods
from drayman.api.core import Pod
from drayman.api.kueue_workload import PodSet
from drayman.api.pods import is_finished
from drayman.workloads.pod_state import is_ready
from drayman.workloads.queued.composing import (
    MOST_POD_SETS,
    CompositionError,
    Importance,
    workload_body,
)
from drayman.workloads.queued.kinds import Ended
from drayman.workloads.queued.names import FINALIZER, IS_GROUP
from drayman.workloads.queued.places import Object
from drayman.workloads.queued.pods import (
    is_fast,
    is_gated,
    is_over,
    is_retriable,
    is_serving,
    owner_of,
    pod_set_of,
    queue_of_pod,
    total_of,
)


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """A pod of a group. Compared by identity: a group is compared with parts of itself, over and over."""

    pod: Pod
    role: str


@dataclass(frozen=True, slots=True)
class PodGroupStatement:
    """What the pods of a group say about it."""

    total: int
    queue: str
    fast: bool
    """Admitted with the first pod."""
    serving: bool
    """Does not end with its pods."""


def statement_of(members: Sequence[Member]) -> PodGroupStatement:
    """What all pods agree about. Raises CompositionError, which names the pods that do not."""
    first = members[0].pod
    total, queue = total_of(first), queue_of_pod(first)
    if total is None or total < 1:
        raise CompositionError(
            f"pod {first.metadata.name}: metadata.annotations[kueue.x-k8s.io/pod-group-total-count] is not a positive number"
        )
    for member in members[1:]:
        name = member.pod.metadata.name
        if total_of(member.pod) != total:
            said = f"{total_of(member.pod)} and {total}"
            raise CompositionError(
                f"pods {name} and {first.metadata.name} have different total counts: {said}"
            )
        if queue_of_pod(member.pod) != queue:
            said = f"{queue_of_pod(member.pod)} and {queue}"
            raise CompositionError(
                f"pods {name} and {first.metadata.name} are in different queues: {said}"
            )
    return PodGroupStatement(total, queue, is_fast(first), is_serving(first))


def runnable(members: Sequence[Member]) -> list[Member]:
    """Those that run or may still run."""
    return [each for each in members if pods.is_active(each.pod)]


def _counted(members: Sequence[Member]) -> list[Member]:
    """Those that fill a place of the group: they may run, or have run to their end."""
    return [
        each for each in members if each.pod.status.phase == "Succeeded" or pods.is_active(each.pod)
    ]


def check_whole(able: Sequence[Member], stated: PodGroupStatement) -> None:
    """Raises CompositionError if pods that could run are missing."""
    if not stated.fast and len(able) < stated.total:
        raise CompositionError(
            f"the group has fewer runnable pods than expected: {len(able)} of {stated.total}"
        )


def pod_sets_of_group(
    members: Sequence[Member], bodies: Mapping[str, Object], stated: PodGroupStatement
) -> tuple[PodSet, ...]:
    """The pod sets of a group that is whole, by role. `bodies` are the pods in decoded form by uid. Raises CompositionError."""
    able = runnable(members)
    if stated.fast:
        if not able:
            raise CompositionError("the group has no pod that could run")
        first = able[0]
        return (pod_set_of(bodies[first.pod.metadata.uid], first.role, stated.total),)
    check_whole(able, stated)
    chosen = in_order_of_keeping(able)[: stated.total]
    counts = Counter(each.role for each in chosen)
    if len(counts) > MOST_POD_SETS:
        raise CompositionError(
            f"{len(counts)} different roles: a group has at most {MOST_POD_SETS}"
        )
    examples = {each.role: bodies[each.pod.metadata.uid] for each in reversed(chosen)}
    return tuple(pod_set_of(examples[role], role, counts[role]) for role in sorted(counts))


def workload_for_group(
    namespace: str,
    name: str,
    members: Sequence[Member],
    bodies: Mapping[str, Object],
    importance: Importance,
) -> Object:
    """The Workload of a group, to be created. All its pods own it together. Raises CompositionError."""
    stated = statement_of(members)
    return workload_body(
        namespace,
        name,
        [owner_of(body, controller=False) for body in bodies.values()],
        pod_sets_of_group(members, bodies, stated),
        queue=stated.queue,
        importance=importance,
        annotations={IS_GROUP: "true"},
    )


def is_group_workload(annotations: Mapping[str, str]) -> bool:
    return annotations.get(IS_GROUP) == "true"


def ended(members: Sequence[Member], stated: PodGroupStatement) -> Ended | None:
    """How a group ended; None while it goes on."""
    if stated.serving:
        return None
    succeeded = sum(each.pod.status.phase == "Succeeded" for each in members)
    message = f"Pods succeeded: {succeeded}/{stated.total}."
    if succeeded >= stated.total:
        return Ended(True, message)
    going_on = any(not is_finished(each.pod) for each in members)
    final = any(not is_retriable(each.pod) for each in members)
    return Ended(False, message) if final and not going_on else None


def in_order_of_keeping(members: Sequence[Member]) -> list[Member]:
    """Those first that are kept where there are too many: what the group already counts on, what runs, what is older."""
    return sorted(
        members,
        key=lambda each: (
            FINALIZER not in each.pod.metadata.finalizers,
            is_gated(each.pod),
            each.pod.metadata.creation_timestamp or "",
            each.pod.metadata.name,
        ),
    )


def surplus(members: Sequence[Member], pod_sets: Sequence[PodSet]) -> list[Member]:
    """Pods that an admitted or waiting group has no place for: more of a role than its pod set has, or of no role of the group."""
    places = {each.name: each.count for each in pod_sets}
    (only,) = places if len(places) == 1 else (None,)
    taken: Counter[str] = Counter()
    extra = []
    counted = _counted(members)
    settled = dict.fromkeys(each for each in counted if each.pod.status.phase == "Succeeded")
    open_ = in_order_of_keeping([each for each in counted if each not in settled])
    for member in [*settled, *open_]:
        role = only if only is not None and member.role not in places else member.role
        if taken[role] < places.get(role, 0):
            taken[role] += 1
        elif member not in settled:
            extra.append(member)
    return extra


def missing(members: Sequence[Member], pod_sets: Sequence[PodSet]) -> int:
    """How many pods have to be replaced before the group is whole."""
    return max(0, sum(each.count for each in pod_sets) - len(_counted(members)))


def replaced(members: Sequence[Member], pod_sets: Sequence[PodSet]) -> list[Member]:
    """Pods that failed or went, and whose place others have taken: nobody needs to count them any more."""
    if missing(members, pod_sets):
        return []
    counted = set(_counted(members))
    return [each for each in members if each not in counted]


def is_active(members: Sequence[Member], now: float) -> bool:
    """Whether a pod of the group still uses something: it was let go and is not over."""
    return any(not is_gated(each.pod) and not is_over(each.pod, now) for each in members)


def are_ready(members: Sequence[Member], pod_sets: Sequence[PodSet]) -> bool:
    """Whether every place of the group is filled by a pod that is ready or has succeeded."""
    ready = [
        each
        for each in _counted(members)
        if each.pod.status.phase == "Succeeded" or is_ready(each.pod)
    ]
    return len(ready) >= sum(each.count for each in pod_sets)


def reclaimable(members: Sequence[Member], pod_sets: Sequence[PodSet]) -> dict[str, int]:
    """Pods that succeeded and need no place any more, by pod set."""
    places = {each.name: each.count for each in pod_sets}
    found = Counter(each.role for each in members if each.pod.status.phase == "Succeeded")
    return {role: min(number, places[role]) for role, number in found.items() if role in places}
