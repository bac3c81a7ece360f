"""What a stateful set does next: one pod after the other where order is kept, all at once where it is not.

Three passes, each begun only when the one before has nothing left to do or may not wait: the replicas are made and kept, from the lowest
ordinal up; what is beyond them is given up, from the highest down; pods of an old revision are replaced, from the highest down
to the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from drayman.api.core import Pod
from drayman.api.pods import is_finished, is_leaving
from drayman.api.workloads import StatefulSet, StatefulSetStatus
from drayman.workloads.pod_bodies import MOST_PER_ROUND
from drayman.workloads.pod_state import is_available, is_ready
from drayman.workloads.revisions import revision_of
from drayman.workloads.stateful_sets.identity import ordinal_of, ordinals_of


@dataclass(frozen=True, slots=True)
class Fresh:
    """A pod to be made, of one of two revisions."""

    ordinal: int
    updated: bool


@dataclass(frozen=True, slots=True)
class SetPlan:
    create: tuple[Fresh, ...] = ()
    delete: tuple[Pod, ...] = ()
    recreated: tuple[Pod, ...] = ()
    """Those of the deleted that have ended and will be made again."""
    condemned: tuple[Pod, ...] = ()
    """Those that are beyond the number of replicas, whether they are deleted now or wait."""


@dataclass(slots=True)
class _Draft:
    create: list[Fresh] = field(default_factory=list)
    delete: list[Pod] = field(default_factory=list)
    recreated: list[Pod] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Ranks:
    """The pods of a set by their place."""

    ordinals: range
    replicas: dict[int, Pod]
    """Those that are there."""
    condemned: list[Pod]
    """The highest ordinal first."""


def ranks(stateful_set: StatefulSet, pods: Iterable[Pod]) -> Ranks:
    ordinals = ordinals_of(stateful_set)
    replicas: dict[int, Pod] = {}
    beyond: list[tuple[int, Pod]] = []
    for pod in pods:
        ordinal = ordinal_of(stateful_set.metadata.name, pod.metadata.name)
        if ordinal is None:
            continue
        if ordinal in ordinals:
            replicas[ordinal] = pod
        else:
            beyond.append((ordinal, pod))
    beyond.sort(key=lambda place: -place[0])
    return Ranks(ordinals, replicas, [pod for _, pod in beyond])


def keeps_order(stateful_set: StatefulSet) -> bool:
    """Whether a pod waits for the one before it."""
    return stateful_set.spec.pod_management_policy != "Parallel"


def plan(stateful_set: StatefulSet, pods: Sequence[Pod], updated: str, now: float) -> SetPlan:
    """`updated` is the revision of the present template, as pods have it in their label."""
    places = ranks(stateful_set, pods)
    condemned = tuple(places.condemned)
    if stateful_set.metadata.deletion_timestamp is not None:
        return SetPlan(condemned=condemned)
    in_order = keeps_order(stateful_set)
    draft = _Draft()
    go_on = _keep_replicas(stateful_set, places, draft, in_order, now)
    if go_on:
        go_on = _give_up_condemned(stateful_set, places, draft, in_order, now)
    if go_on and stateful_set.spec.update_strategy.type_ == "RollingUpdate":
        _replace_old(stateful_set, places, draft, updated, now)
    return SetPlan(
        tuple(draft.create[:MOST_PER_ROUND]),
        tuple(draft.delete[:MOST_PER_ROUND]),
        tuple(draft.recreated),
        condemned,
    )


def _keep_replicas(
    stateful_set: StatefulSet, places: Ranks, draft: _Draft, in_order: bool, now: float
) -> bool:
    """Whether the next pass may begin."""
    for ordinal in places.ordinals:
        pod = places.replicas.get(ordinal)
        if pod is None:
            draft.create.append(Fresh(ordinal, _is_updated_place(stateful_set, ordinal)))
        elif is_finished(pod) and not is_leaving(pod):
            draft.delete.append(pod)
            draft.recreated.append(pod)
        elif _serves(stateful_set, pod, now):
            continue
        if in_order:
            return False
        if len(draft.create) >= MOST_PER_ROUND:
            break
    return True


def _give_up_condemned(
    stateful_set: StatefulSet, places: Ranks, draft: _Draft, in_order: bool, now: float
) -> bool:
    # Waiting for a pod that will never serve would never end, so the lowest of those that do not serve is let go.
    stuck = [pod for pod in places.condemned if not _serves(stateful_set, pod, now)]
    first_stuck = stuck[-1] if stuck else None
    for pod in places.condemned:
        if is_leaving(pod):
            if in_order:
                return False
            continue
        if in_order and not _serves(stateful_set, pod, now) and pod is not first_stuck:
            return False
        draft.delete.append(pod)
        if in_order:
            return False
    return True


def _replace_old(
    stateful_set: StatefulSet, places: Ranks, draft: _Draft, updated: str, now: float
) -> None:
    lowest = stateful_set.spec.ordinals.start + _partition(stateful_set)
    for ordinal in reversed(places.ordinals):
        pod = places.replicas.get(ordinal)
        if ordinal < lowest or pod is None:
            return
        if revision_of(pod) != updated and not is_leaving(pod):
            draft.delete.append(pod)
            return
        if not _serves(stateful_set, pod, now):
            return


def _partition(stateful_set: StatefulSet) -> int:
    rolling = stateful_set.spec.update_strategy.rolling_update
    return 0 if rolling is None else rolling.partition


def _is_updated_place(stateful_set: StatefulSet, ordinal: int) -> bool:
    if stateful_set.spec.update_strategy.type_ != "RollingUpdate":
        return True
    return ordinal >= stateful_set.spec.ordinals.start + _partition(stateful_set)


def _serves(stateful_set: StatefulSet, pod: Pod, now: float) -> bool:
    if is_leaving(pod) or pod.status.phase != "Running":
        return False
    return is_available(pod, stateful_set.spec.min_ready_seconds, now)


def status_of(
    stateful_set: StatefulSet,
    pods: Sequence[Pod],
    current: str,
    updated: str,
    collisions: int | None,
    now: float,
) -> StatefulSetStatus:
    """The counts, and the end of an update once every pod is of the new revision and ready."""
    running = [pod for pod in pods if pod.status.phase == "Running"]
    ready = [pod for pod in running if is_ready(pod)]
    minimum = stateful_set.spec.min_ready_seconds
    alive = [revision_of(pod) for pod in pods if not is_leaving(pod)]
    of_updated = alive.count(updated)
    of_current = alive.count(current)
    done = (
        stateful_set.spec.update_strategy.type_ == "RollingUpdate"
        and of_updated == len(pods) == len(ready) == stateful_set.spec.replicas
    )
    return msgspec.structs.replace(
        stateful_set.status,
        observed_generation=stateful_set.metadata.generation,
        replicas=len(pods),
        ready_replicas=len(ready),
        available_replicas=sum(is_available(pod, minimum, now) for pod in ready),
        current_replicas=of_updated if done else of_current,
        updated_replicas=of_updated,
        current_revision=updated if done else current,
        update_revision=updated,
        collision_count=collisions if collisions is not None else 0,
    )
