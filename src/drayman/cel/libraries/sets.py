"""The sets extension: lists treated as sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from drayman.cel.costs import UNIT, CallEstimate, CostNode, CostRule, EstimateRule, actual_size
from drayman.cel.functions import Function, Library, Overload
from drayman.cel.libraries.elements import contains
from drayman.cel.types import BOOL, list_of, parameter
from drayman.cel.values import ListValue


def sets_contains(items: ListValue, part: ListValue) -> bool:
    return all(contains(items, item) for item in part)


def sets_intersects(left: ListValue, right: ListValue) -> bool:
    return any(contains(right, item) for item in left)


def sets_equivalent(left: ListValue, right: ListValue) -> bool:
    return sets_contains(left, right) and sets_contains(right, left)


def _pairs_estimate(passes: int) -> EstimateRule:
    """Comparing everything with everything, `passes` times."""

    def estimate(args: Sequence[CostNode]) -> CallEstimate:
        return CallEstimate((args[0].size * args[1].size).cost(passes) + UNIT)

    return estimate


def _pairs_cost(passes: int) -> CostRule:
    def cost(args: Sequence[object], result: object) -> int:
        return 1 + actual_size(args[0]) * actual_size(args[1]) * passes

    return cost


_LIST = list_of(parameter("T"))


def _function(
    name: str, implementation: Callable[[ListValue, ListValue], bool], passes: int
) -> Function:
    overload = Overload(
        f"list_sets_{name}_list",
        (_LIST, _LIST),
        BOOL,
        implementation,
        estimate=_pairs_estimate(passes),
        cost=_pairs_cost(passes),
    )
    return Function(f"sets.{name}", (overload,))


SETS = Library(
    "cel.lib.ext.sets",
    functions=(
        _function("contains", sets_contains, 1),
        _function("equivalent", sets_equivalent, 2),
        _function("intersects", sets_intersects, 1),
    ),
)
