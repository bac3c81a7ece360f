"""Taints that keep pods away, and the tolerations that admit them anyway."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from drayman.api.core import Taint, Toleration
from drayman.api.integers import parse_integer
from drayman.api.node_taints import UNSCHEDULABLE

UNSCHEDULABLE_TAINT: Final = Taint(key=UNSCHEDULABLE, effect="NoSchedule")
REPELLING: Final = ("NoSchedule", "NoExecute")
DISCOURAGING: Final = "PreferNoSchedule"


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration applies to a taint. An absent effect or key matches all."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Gt" | "Lt":
            return _compares(toleration, taint)
        case _:
            return False


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    for toleration in tolerations:
        if tolerates(toleration, taint):
            return True
    return False


def _compares(toleration: Toleration, taint: Taint) -> bool:
    """Whether the taint's number is above or below the toleration's. A value that is not a number never matches."""
    bound, actual = parse_integer(toleration.value), parse_integer(taint.value)
    if bound is None or actual is None:
        return False
    return actual > bound if toleration.operator == "Gt" else actual < bound
