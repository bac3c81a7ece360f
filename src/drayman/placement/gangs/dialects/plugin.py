"""PodGroup of the coscheduling plugin: pods name it in a label.

It says nothing about where its pods go; annotations of `drayman.dev` on the group can.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from drayman.api.core import Pod
from drayman.api.custom_groups import PluginPodGroup, PluginPodGroupSpec, spec_of
from drayman.api.quantity import Quantity
from drayman.api.times import seconds_of
from drayman.placement.fit.requests import CPU, MEMORY, PODS, STORAGE, is_counted
from drayman.placement.gangs import levels, time_limits
from drayman.placement.gangs.gang import Dialect, Gang, GangKey, InvalidGangError, Membership
from drayman.placement.gangs.ranks import rank_of
from drayman.placement.gangs.statements import Statements

_PLAIN: Final = frozenset({CPU, MEMORY, STORAGE, PODS})
LABEL: Final = "scheduling.x-k8s.io/pod-group"


def key_of(namespace: str, name: str) -> GangKey:
    return GangKey(Dialect.PLUGIN, namespace, name)


def membership_of(pod: Pod) -> Membership | None:
    name = pod.metadata.labels.get(LABEL)
    return Membership(key_of(pod.metadata.namespace, name), rank=rank_of(pod)) if name else None


def gang_of(key: GangKey, group: PluginPodGroup) -> Gang:
    """Raises InvalidGangError and DecodeError."""
    spec = spec_of(PluginPodGroupSpec, group)
    if spec.min_member is not None and spec.min_member < 1:
        raise InvalidGangError("spec.minMember", f"{spec.min_member} is less than 1")
    timeout = spec.schedule_timeout_seconds
    if timeout is not None and timeout < 0:
        raise InvalidGangError("spec.scheduleTimeoutSeconds", f"{timeout} is less than 0")
    statements = Statements(str(key), group.metadata.annotations)
    return Gang(
        key=key,
        least=1 if spec.min_member is None else spec.min_member,
        wish=levels.wish_of(statements),
        slices=levels.slices_of(statements),
        timeout_s=time_limits.timeout_of(statements) if timeout is None else float(timeout),
        grace_s=time_limits.grace_of(statements),
        least_resources=_resources(spec.min_resources or {}),
        since=seconds_of(group.metadata.creation_timestamp),
    )


def _resources(given: Mapping[str, Quantity]) -> Mapping[str, Quantity]:
    for name, amount in given.items():
        field = f"spec.minResources[{name}]"
        if name not in _PLAIN and not is_counted(name):
            raise InvalidGangError(field, "is not a resource that nodes have")
        if amount.amount < 0:
            raise InvalidGangError(field, f"{amount} is less than 0")
    return given
