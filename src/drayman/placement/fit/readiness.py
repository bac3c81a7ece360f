"""Whether nodes take pods at all, regardless of what the pods ask for.

The scheduler uses taints, which follow the conditions of a node after a moment; people look at the conditions. A node is closed as soon as
either says so.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from drayman.api.core import Node, NodeCondition
from drayman.api.node_taints import NOT_READY, UNREACHABLE, UNSCHEDULABLE
from drayman.placement.fit.taints import REPELLING

_READY: Final = "Ready"


class Closed(StrEnum):
    """Why a node takes no pods."""

    NOT_READY = "not-ready"
    """It says so itself, or has not reported for a while."""
    CORDONED = "cordoned"

    @property
    def words(self) -> str:
        return self.value.replace("-", " ")


def is_ready(conditions: tuple[NodeCondition, ...]) -> bool:
    """Whether these conditions of a node say that it is ready."""
    return any(c.type_ == _READY and c.status == "True" for c in conditions)


def closed_by(node: Node) -> tuple[Closed, ...]:
    """What keeps all pods off a node; empty if nothing is known to."""
    found = []
    keys = {taint.key for taint in node.spec.taints if taint.effect in REPELLING}
    says_so = any(c.type_ == _READY for c in node.status.conditions)
    if (says_so and not is_ready(node.status.conditions)) or keys & {NOT_READY, UNREACHABLE}:
        found.append(Closed.NOT_READY)
    if node.spec.unschedulable or UNSCHEDULABLE in keys:
        found.append(Closed.CORDONED)
    return tuple(found)
