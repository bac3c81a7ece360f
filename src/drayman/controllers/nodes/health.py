"""What a node's silence and its conditions mean: which conditions it should have, and which taints.

A node that has not been heard from for a while may be dead, or only cut off; there is no way to tell. So its conditions become Unknown, not
False, and its taints keep new pods away and evict those that are there when their toleration ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from drayman.api.core import Node, NodeCondition, Taint
from drayman.api.node_taints import (
    DISK_PRESSURE,
    MEMORY_PRESSURE,
    NETWORK_UNAVAILABLE,
    NOT_READY,
    PID_PRESSURE,
    UNREACHABLE,
    UNSCHEDULABLE,
)
from drayman.api.times import timestamp_at
from drayman.placement.fit.readiness import is_ready

_PRESSURES: Final = {
    "MemoryPressure": MEMORY_PRESSURE,
    "DiskPressure": DISK_PRESSURE,
    "PIDPressure": PID_PRESSURE,
    "NetworkUnavailable": NETWORK_UNAVAILABLE,
}
_FROM_THE_NODE: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
"""Conditions that only the node itself can know."""
_MANAGED: Final = {
    *((key, "NoSchedule") for key in (*_PRESSURES.values(), UNSCHEDULABLE)),
    *((key, effect) for key in (NOT_READY, UNREACHABLE) for effect in ("NoSchedule", "NoExecute")),
}
"""Taints that are set and taken away here; all others belong to other components."""


def conditions_of(node: Node, *, silent: bool, now: float) -> tuple[NodeCondition, ...]:
    """The conditions of a node; while it is silent, they are unknown."""
    if not silent:
        return node.status.conditions
    known = {condition.type_: condition for condition in node.status.conditions}
    moment = timestamp_at(now)
    for type_ in _FROM_THE_NODE:
        old = known.get(type_)
        if old is None:
            known[type_] = NodeCondition(
                type_=type_,
                status="Unknown",
                reason="NodeStatusNeverUpdated",
                message="Kubelet never posted node status.",
                last_heartbeat_time=node.metadata.creation_timestamp,
                last_transition_time=moment,
            )
        elif old.status != "Unknown":
            known[type_] = msgspec.structs.replace(
                old,
                status="Unknown",
                reason="NodeStatusUnknown",
                message="Kubelet stopped posting node status.",
                last_transition_time=moment,
            )
    return tuple(known.values())


def taints_of(
    node: Node, conditions: tuple[NodeCondition, ...], *, evicting: bool, now: float
) -> tuple[Taint, ...]:
    """The taints of a node with these conditions. Without `evicting`, pods that are there are left alone."""
    wanted = set(_wanted(node, conditions, evicting=evicting))
    have = {(taint.key, taint.effect) for taint in node.spec.taints}
    kept = [t for t in node.spec.taints if (t.key, t.effect) not in _MANAGED - wanted]
    moment = timestamp_at(now)
    added = [
        Taint(key=key, effect=effect, time_added=moment) for key, effect in sorted(wanted - have)
    ]
    return (*kept, *added)


def _wanted(
    node: Node, conditions: tuple[NodeCondition, ...], *, evicting: bool
) -> Iterator[tuple[str, str]]:
    if node.spec.unschedulable:
        yield UNSCHEDULABLE, "NoSchedule"
    for condition in conditions:
        if condition.type_ == "Ready" and condition.status != "True":
            key = UNREACHABLE if condition.status == "Unknown" else NOT_READY
            yield key, "NoSchedule"
            if evicting:
                yield key, "NoExecute"
        elif condition.status == "True" and condition.type_ in _PRESSURES:
            yield _PRESSURES[condition.type_], "NoSchedule"


def is_accepted(node: Node) -> bool:
    """Whether a node says that it is ready, and is trusted: new ones and silent ones are tainted."""
    return is_ready(node.status.conditions) and not any(
        taint.key in (NOT_READY, UNREACHABLE) for taint in node.spec.taints
    )
