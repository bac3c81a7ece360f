"""How large each replica set of a deployment should be: while it rolls from one to the next, and when it is scaled meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from drayman.api.integers import parse_integer
from drayman.api.workloads import Deployment, ReplicaSet
from drayman.workloads import shares

Sizes = dict[str, int]
"""The size that a replica set should have, by its name."""
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MOST: Final = "deployment.kubernetes.io/max-replicas"


class RolloutLimits(NamedTuple):
    """How many pods too many and too few there may be while a deployment rolls."""

    surge: int
    unavailable: int


def limits_of(deployment: Deployment) -> RolloutLimits:
    rolling = deployment.spec.strategy.rolling_update
    if deployment.spec.strategy.type_ == "Recreate" or rolling is None:
        return RolloutLimits(0, 0)
    replicas = deployment.spec.replicas
    surge = shares.resolve(rolling.max_surge, replicas, up=True)
    unavailable = shares.resolve(rolling.max_unavailable, replicas, up=False)
    if not surge and not unavailable:
        # Both can come out as zero by rounding, and then nothing would ever move.
        unavailable = 1
    return RolloutLimits(surge, min(unavailable, replicas))


def size_of_new(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> int:
    """The size that the replica set of the present template can have now."""
    wanted = deployment.spec.replicas
    present = 0 if new is None else new.spec.replicas
    if deployment.spec.strategy.type_ == "Recreate" or present >= wanted:
        return wanted
    total = present + sum(s.spec.replicas for s in old)
    room = wanted + limits_of(deployment).surge - total
    return present + max(0, min(room, wanted - present))


def sizes_of_old(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> Sizes:
    """How far old replica sets can go down without taking away more than may be unavailable. The oldest comes first."""
    least = deployment.spec.replicas - limits_of(deployment).unavailable
    total = new.spec.replicas + sum(s.spec.replicas for s in old)
    unavailable_new = new.spec.replicas - new.status.available_replicas
    room = total - least - unavailable_new
    if room <= 0:
        return {}
    sizes = {s.metadata.name: s.spec.replicas for s in old}
    for replica_set in old:
        # What does not serve can go at once.
        unhealthy = max(0, replica_set.spec.replicas - replica_set.status.available_replicas)
        step = min(room, unhealthy)
        sizes[replica_set.metadata.name] -= step
        room -= step
    available = new.status.available_replicas + sum(s.status.available_replicas for s in old)
    spare = min(available - least, room)
    for name, size in sizes.items():
        step = max(0, min(spare, size))
        sizes[name] -= step
        spare -= step
    return {s.metadata.name: sizes[s.metadata.name] for s in old if _differs(s, sizes)}


def scaled(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> Sizes:
    """Sizes after the deployment's own size has changed, or while it is paused."""
    wanted = deployment.spec.replicas
    every = [*old, *([] if new is None else [new])]
    active = [s for s in every if s.spec.replicas]
    if len(active) <= 1:
        sole = active[0] if active else new if new is not None else old[-1] if old else None
        return {} if sole is None else {sole.metadata.name: wanted}
    if new is not None and _is_saturated(deployment, new):
        return {s.metadata.name: 0 for s in old if s.spec.replicas}
    if deployment.spec.strategy.type_ == "Recreate":
        return {}
    return _proportional(deployment, active)


def _proportional(deployment: Deployment, active: list[ReplicaSet]) -> Sizes:
    """Each replica set grows or shrinks by its share, the largest first, which also takes what is left over."""
    wanted = deployment.spec.replicas
    allowed = wanted + limits_of(deployment).surge if wanted else 0
    change = allowed - sum(s.spec.replicas for s in active)
    # Among equal ones the newer grows first and the older shrinks first; `active` has the oldest first.
    ordered = sorted(active[::-1] if change > 0 else active, key=lambda s: -s.spec.replicas)
    sizes: Sizes = {}
    done = 0
    for replica_set in ordered:
        share = _share(deployment, replica_set) if change != done else 0
        left = change - done
        step = min(share, left) if change > 0 else max(share, left) if change < 0 else 0
        sizes[replica_set.metadata.name] = replica_set.spec.replicas + step
        done += step
    first = ordered[0].metadata.name
    sizes[first] = max(0, sizes[first] + change - done)
    return sizes


def _share(deployment: Deployment, replica_set: ReplicaSet) -> int:
    size, wanted = replica_set.spec.replicas, deployment.spec.replicas
    if not wanted:
        return -size
    text = replica_set.metadata.annotations.get(MOST, "")
    before = max(0, parse_integer(text) or 0) or deployment.status.replicas
    if not before:
        return 0
    # Halves are rounded up.
    return int(size * (wanted + limits_of(deployment).surge) / before + 0.5) - size


def _is_saturated(deployment: Deployment, new: ReplicaSet) -> bool:
    wanted = deployment.spec.replicas
    return (
        new.metadata.annotations.get(DESIRED) == str(wanted)
        and new.spec.replicas == wanted
        and new.status.available_replicas == wanted
    )


def only_scales(deployment: Deployment, sets: Sequence[ReplicaSet]) -> bool:
    """Whether sizes may change and nothing else: while it is paused, and when its own size is not what its replica sets record."""
    if deployment.spec.paused:
        return True
    wanted = str(deployment.spec.replicas)
    return any(
        s.spec.replicas and s.metadata.annotations.get(DESIRED, wanted) != wanted for s in sets
    )


def _differs(replica_set: ReplicaSet, sizes: Sizes) -> bool:
    return sizes[replica_set.metadata.name] != replica_set.spec.replicas
