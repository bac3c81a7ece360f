"""Cost rules that several libraries share.

The figures are Kubernetes': an expression that its API server accepts or cuts off is accepted or cut off here. Where
upstream lets a cheap call build something huge (`replace`, `format`, `flatten`), what the call adds beyond a free allowance
is charged on top, so that no expression can turn a small bill into gigabytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from drayman.cel.costs import (
    LIST_CREATE,
    MAX,
    NOT_LITERAL,
    REGEX_LENGTH,
    STRING_TRAVERSAL,
    UNIT,
    CallEstimate,
    CostEstimate,
    CostNode,
    SizeEstimate,
    actual_size,
    fixed_cost,
    fixed_size,
)
from drayman.cel.functions import Rule
from drayman.cel.types import TypeKind
from drayman.cel.values import LISTS, MapValue

FREE_GROWTH = 4096
"""By how much a result may exceed its arguments at no cost: an attribute in an attribute, 64 by 64 characters."""

MAX_STEPS = 1_000_000
"""Values may share parts, so that walking over a small one can take forever; anything longer than this is too expensive."""

_LIST_CALL = 1 + LIST_CREATE


def nominal_estimate(args: Sequence[CostNode]) -> CallEstimate:
    return CallEstimate(UNIT)


def nominal_cost(args: Sequence[object], result: object) -> int:
    return 1


NOMINAL = Rule(nominal_estimate, nominal_cost)


def traversal_rule(passes: int = 1, *, keeps_size: bool = False) -> Rule:
    """Walking over the string that comes first; with `keeps_size`, the result is at most as long."""

    def estimate(args: Sequence[CostNode]) -> CallEstimate:
        size = args[0].size
        return CallEstimate(size.cost(passes * STRING_TRAVERSAL), size if keeps_size else None)

    def cost(args: Sequence[object], result: object) -> int:
        return math.ceil(actual_size(args[0]) * passes * STRING_TRAVERSAL)

    return Rule(estimate, cost)


TRAVERSAL = traversal_rule()


def scan_estimate(args: Sequence[CostNode]) -> CallEstimate:
    """Looking at everything in a list or string once, as `sum` and `indexOf` do."""
    size = args[0].size
    element = args[0].items()
    if element is None:
        return CallEstimate(size.cost(STRING_TRAVERSAL))
    each = UNIT
    if element.type.kind in (TypeKind.STRING, TypeKind.BYTES):
        each += element.size.cost(STRING_TRAVERSAL)
    return CallEstimate(size.times(each))


def tree_cost(value: object) -> int:
    """The cost of walking over a value and everything in it. Strings are charged by byte and rounded down."""
    total = 0
    pending = [value]
    for _ in range(MAX_STEPS):
        if not pending:
            return total
        item = pending.pop()
        if isinstance(item, str):
            total += int((len(item) if item.isascii() else len(item.encode())) * STRING_TRAVERSAL)
        elif isinstance(item, bytes):
            total += int(len(item) * STRING_TRAVERSAL)
        elif isinstance(item, LISTS):
            if len(item) + len(pending) > MAX_STEPS:
                return MAX
            pending.extend(item)
        elif isinstance(item, MapValue):
            pending.extend(part for pair in item.pairs() for part in pair)
        else:
            total += 1
    return MAX


SCAN = Rule(scan_estimate, lambda args, result: tree_cost(args[0]))


def regex_estimate(args: Sequence[CostNode]) -> CallEstimate:
    text, pattern = args[0].size, args[1].size
    steps = (text + fixed_size(1)).cost(STRING_TRAVERSAL)
    return CallEstimate(steps * pattern.cost(REGEX_LENGTH), SizeEstimate(0, text.max))


def regex_cost(args: Sequence[object], result: object) -> int:
    return matching_cost(actual_size(args[0]), actual_size(args[1]))


REGEX_RULE = Rule(regex_estimate, regex_cost)


def matching_cost(text_size: int, pattern_size: int) -> int:
    """The cost of a regular expression search. An empty text still costs as much as the pattern."""
    return math.ceil((1.0 + text_size) * STRING_TRAVERSAL) * math.ceil(pattern_size * REGEX_LENGTH)


def new_list_estimate(work: SizeEstimate, factor: float = 1.0) -> CallEstimate:
    """Building a list at `factor` for each unit of work, which upstream also takes as the size of the result."""
    return CallEstimate(work.cost(factor) + fixed_cost(_LIST_CALL), work)


def new_list_cost(size: int, factor: float = 1.0) -> int:
    return int(size * factor) + _LIST_CALL


def literal_int(node: CostNode, default: int) -> int:
    """The value of an int literal, not below zero; `default` for any other node."""
    value = node.literal
    if value is NOT_LITERAL or type(value) is not int:
        return default
    return max(value, 0)


def growth_cost(size: int, inputs: int) -> int:
    """The charge for a result that is much larger than its inputs."""
    return max(0, math.ceil((size - inputs - FREE_GROWTH) * STRING_TRAVERSAL))


def growth_estimate(size: SizeEstimate, inputs: SizeEstimate) -> CostEstimate:
    if size.max == MAX or inputs.max == MAX:
        return CostEstimate(0, 0)
    return CostEstimate(0, growth_cost(size.max, inputs.max))
