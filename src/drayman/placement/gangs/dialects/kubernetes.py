"""Kubernetes' own PodGroup: pods name it in `spec.schedulingGroup`.

A group with the basic policy is not a gang: its pods are placed one by one, and share its claims. One that has a topology constraint all
the same keeps its pods together, so it is a gang of which each member starts when it can.
"""

from __future__ import annotations

from drayman.api.core import Pod
from drayman.api.pod_groups import PodGroup
from drayman.api.times import seconds_of
from drayman.placement.gangs import levels, time_limits
from drayman.placement.gangs.gang import Dialect, Gang, GangKey, InvalidGangError, Membership, Wish
from drayman.placement.gangs.ranks import rank_of
from drayman.placement.gangs.statements import Statements, field_of

_AS_ONE = "PodGroup"


def key_of(namespace: str, name: str) -> GangKey:
    return GangKey(Dialect.KUBERNETES, namespace, name)


def membership_of(pod: Pod) -> Membership | None:
    group = pod.spec.scheduling_group
    if group is None or not group.pod_group_name:
        return None
    return Membership(key_of(pod.metadata.namespace, group.pod_group_name), rank=rank_of(pod))


def gang_of(key: GangKey, group: PodGroup) -> Gang | None:
    """None for a group that is not a gang. Raises InvalidGangError."""
    spec, policy = group.spec, group.spec.scheduling_policy
    statements = Statements(str(key), group.metadata.annotations)
    wish, slices = _wish(group, statements), levels.slices_of(statements)
    if policy.gang is None and not wish and not slices:
        return None
    if policy.gang is not None and policy.gang.min_count < 1:
        message = f"{policy.gang.min_count} is less than 1"
        raise InvalidGangError("spec.schedulingPolicy.gang.minCount", message)
    return Gang(
        key=key,
        least=0 if policy.gang is None else policy.gang.min_count,
        wish=wish,
        slices=slices,
        timeout_s=time_limits.timeout_of(statements),
        grace_s=time_limits.grace_of(statements),
        # The server enters 0 for a group that says nothing: then the priorities of its pods count.
        priority=spec.priority if spec.priority_class_name else spec.priority or None,
        goes_as_one=spec.disruption_mode == _AS_ONE,
        goes_singly=spec.disruption_mode != _AS_ONE,
        since=seconds_of(group.metadata.creation_timestamp),
    )


def _wish(group: PodGroup, statements: Statements) -> Wish:
    stated = levels.wish_of(statements)
    constraints = group.spec.scheduling_constraints
    keys = [each.key for each in constraints.topology] if constraints is not None else []
    if not keys:
        return stated
    if len(keys) > 1:
        message = f"{len(keys)} constraints, and there can be 1"
        raise InvalidGangError("spec.schedulingConstraints.topology", message)
    if stated.required not in (None, keys[0]):
        message = f"{stated.required} is not the level of spec.schedulingConstraints: {keys[0]}"
        raise InvalidGangError(field_of(levels.REQUIRED), message)
    return Wish(keys[0], stated.preferred)
