"""How many pods a replica set lacks or has too many, and what its status says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from drayman.api.core import Pod
from drayman.api.pods import is_active, is_terminating
from drayman.api.struct import Json
from drayman.api.workloads import (
    ReplicaSet,
    ReplicaSetStatus,
    ReplicationController,
    ReplicationControllerStatus,
)
from drayman.workloads.conditions import Conditions, find, with_condition, without
from drayman.workloads.pod_bodies import MOST_PER_ROUND, pod_body
from drayman.workloads.pod_state import expendable_first, is_available, is_ready

FAILURE = "ReplicaFailure"
ReplicaKeeper: TypeAlias = ReplicaSet | ReplicationController
"""What keeps a number of equal pods."""


@dataclass(frozen=True, slots=True)
class ReplicaPlan:
    create: int = 0
    delete: tuple[Pod, ...] = ()


def plan(
    replica_set: ReplicaKeeper, pods: Iterable[Pod], neighbours: Iterable[Pod], now: float
) -> ReplicaPlan:
    """`neighbours` are the pods of all replica sets of the same deployment, which show the crowded nodes."""
    if replica_set.metadata.deletion_timestamp is not None:
        return ReplicaPlan()
    active = list(filter(is_active, pods))
    surplus = len(active) - replica_set.spec.replicas
    if surplus <= 0:
        return ReplicaPlan(create=-surplus)
    ranked = expendable_first(active, now, filter(is_active, neighbours))
    return ReplicaPlan(delete=tuple(ranked[: min(surplus, MOST_PER_ROUND)]))


def pod_of(replica_set: ReplicaKeeper) -> dict[str, Json]:
    """Any of its pods: they are all the same."""
    return pod_body(replica_set, replica_set.spec.template)


def status_of(
    replica_set: ReplicaKeeper, pods: Sequence[Pod], refusal: str | None, now: float
) -> ReplicaSetStatus | ReplicationControllerStatus:
    """The status once the plan was carried out, or refused, and why."""
    spec, old = replica_set.spec, replica_set.status
    active = list(filter(is_active, pods))
    labels = ((spec.template.get("metadata") or {}).get("labels") or {}).items()
    new = msgspec.structs.replace(
        old,
        replicas=len(active),
        fully_labeled_replicas=sum(labels <= pod.metadata.labels.items() for pod in active),
        ready_replicas=sum(map(is_ready, active)),
        available_replicas=sum(is_available(p, spec.min_ready_seconds, now) for p in active),
        observed_generation=max(old.observed_generation, replica_set.metadata.generation),
        conditions=_conditions(replica_set, len(active), refusal, now),
    )
    if not isinstance(new, ReplicaSetStatus):
        return new
    return msgspec.structs.replace(new, terminating_replicas=sum(map(is_terminating, pods)))


def _conditions(
    replica_set: ReplicaKeeper, active: int, refusal: str | None, now: float
) -> Conditions:
    old = replica_set.status.conditions
    if refusal is None:
        return without(old, FAILURE)
    if find(old, FAILURE) is not None:
        return old
    reason = "FailedCreate" if active < replica_set.spec.replicas else "FailedDelete"
    return with_condition(old, FAILURE, "True", reason, refusal, now)
