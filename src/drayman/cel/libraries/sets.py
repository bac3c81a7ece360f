"""The sets extension: lists treated as sets."""

from __future__ import annotations

from collections.abc import Sequence

from drayman.cel.costs import UNIT, CallEstimate, CostNode, actual_size
from drayman.cel.functions import Library, Rule, static
from drayman.cel.types import BOOL, list_of, parameter
from drayman.cel.values import ListValue, same


def _contains(items: ListValue, value: object) -> bool:
    return any(same(value, item) for item in items)


def sets_contains(items: ListValue, part: ListValue) -> bool:
    return all(_contains(items, item) for item in part)


def sets_intersects(left: ListValue, right: ListValue) -> bool:
    return any(_contains(right, item) for item in left)


def sets_equivalent(left: ListValue, right: ListValue) -> bool:
    return sets_contains(left, right) and sets_contains(right, left)


def _pairs(passes: int) -> Rule:
    """Comparing everything with everything, `passes` times."""

    def estimate(args: Sequence[CostNode]) -> CallEstimate:
        return CallEstimate((args[0].size * args[1].size).cost(passes) + UNIT)

    def cost(args: Sequence[object], result: object) -> int:
        return 1 + actual_size(args[0]) * actual_size(args[1]) * passes

    return Rule(estimate, cost)


_ONCE, _TWICE = _pairs(1), _pairs(2)
_LISTS = (list_of(parameter("T")), list_of(parameter("T")))

SETS = Library(
    "cel.lib.ext.sets",
    functions=(
        static("sets.contains", "list_sets_contains_list", _LISTS, BOOL, sets_contains, _ONCE),
        static(
            "sets.equivalent", "list_sets_equivalent_list", _LISTS, BOOL, sets_equivalent, _TWICE
        ),
        static(
            "sets.intersects", "list_sets_intersects_list", _LISTS, BOOL, sets_intersects, _ONCE
        ),
    ),
)
