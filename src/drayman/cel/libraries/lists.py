"""The lists extension, version 3: slices, ranges, sorting. `first` and `last` come with the optional types."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key

from drayman.cel import ast
from drayman.cel.costs import (
    MAX,
    PENDING,
    STRING_TRAVERSAL,
    CallEstimate,
    CostNode,
    actual_size,
    fixed_size,
)
from drayman.cel.errors import CostLimitError, EvaluationError, InternalError
from drayman.cel.functions import Function, Library, Rule, member, static
from drayman.cel.libraries.elements import COMPARABLE_TYPES, is_comparable, order
from drayman.cel.libraries.rules import (
    MAX_STEPS,
    growth_cost,
    literal_int,
    new_list_cost,
    new_list_estimate,
)
from drayman.cel.macros import Macro, MacroContext, MacroError, ident, literal, member_call
from drayman.cel.standard_macros import STANDARD, UNUSED
from drayman.cel.types import BYTES, DYN, INT, STRING, Type, list_of, parameter
from drayman.cel.values import LISTS, ListValue, check_size, materialize, same, type_name

_COMPARISON = 2.0
_SORT_BY_KEYS = "@sortByAssociatedKeys"
_SORT_INPUT = "@__sortBy_input__"
_SORTABLE = (ast.ListExpr, ast.Select, ast.Ident, ast.Comprehension, ast.Call)


def slice_list(items: ListValue, start: int, end: int) -> list[object]:
    if start < 0 or end < 0:
        raise EvaluationError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise EvaluationError(
            f"cannot slice({start}, {end}), start index must be less than or equal to end index"
        )
    if end > len(items):
        raise EvaluationError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return materialize(items)[start:end]


def flatten(items: object, depth: object = 1) -> list[object]:
    """Flattens `depth` levels of lists in the list. A list that contains no lists is allowed too."""
    if not isinstance(items, LISTS) or not isinstance(depth, int):
        raise EvaluationError(f"no such overload: flatten({type_name(items)}, {type_name(depth)})")
    if depth < 0:
        raise EvaluationError("level must be non-negative")
    flat: list[object] = []
    pending = [(iter(items), depth)]
    steps = 0
    while pending:
        remaining, level = pending[-1]
        for item in remaining:
            steps += 1
            if steps > MAX_STEPS:
                raise CostLimitError
            if level > 0 and isinstance(item, LISTS):
                pending.append((iter(item), level - 1))
                break
            flat.append(item)
        else:
            pending.pop()
    return flat


def sort(items: ListValue) -> ListValue:
    return sort_by_keys(items, items)


def sort_by_keys(items: ListValue, keys: ListValue) -> ListValue:
    """The items in the order of their keys; items with equal keys stay in order."""
    if len(items) != len(keys):
        raise EvaluationError(
            f"sortBy() needs a key for each of {len(items)} elements, got {len(keys)}"
        )
    if not keys:
        return items
    first = type_name(keys[0])
    if not is_comparable(keys[0]):
        raise EvaluationError("list elements must be comparable")
    if any(type_name(key) != first for key in keys):
        raise EvaluationError("list elements must have the same type")
    keyed = sorted(zip(keys, items, strict=True), key=_by_key)
    return [item for _, item in keyed]


@cmp_to_key
def _by_key(left: tuple[object, object], right: tuple[object, object]) -> int:
    return order(left[0], right[0])


def lists_range(count: int) -> list[object]:
    check_size(count)
    return list(range(count))


def reverse(items: ListValue) -> list[object]:
    return materialize(items)[::-1]


def distinct(items: ListValue) -> list[object]:
    """Every value once, at its first position."""
    kept: list[object] = []
    for item in items:
        if not any(same(item, other) for other in kept):
            kept.append(item)
    return kept


def _slice_estimate(args: Sequence[CostNode]) -> CallEstimate:
    target, start, end = args
    length = literal_int(end, target.size.max) - literal_int(start, 0)
    return new_list_estimate(fixed_size(length % (MAX + 1)))


def _flatten_estimate(args: Sequence[CostNode]) -> CallEstimate:
    depth = literal_int(args[1], MAX) if len(args) > 1 else 1
    return new_list_estimate(args[0].size, float(depth))


def _comparisons(position: int, element: Type = DYN) -> Rule:
    """Comparing the elements of the list at `position` with each other."""

    def estimate(args: Sequence[CostNode]) -> CallEstimate:
        size = args[position].size
        factor = _COMPARISON + (STRING_TRAVERSAL if element in (STRING, BYTES) else 0.0)
        return new_list_estimate(size * size, factor)

    def cost(args: Sequence[object], result: object) -> int:
        items = args[position]
        if not isinstance(items, LISTS):
            raise InternalError(f"interface conversion: {type_name(items)} is not a list")
        factor = _COMPARISON
        if items and isinstance(items[0], str | bytes):
            factor += STRING_TRAVERSAL
        return new_list_cost(len(items) ** 2, factor)

    return Rule(estimate, cost)


def _slice_cost(args: Sequence[object], result: object) -> int:
    items, start, end = args
    if result is PENDING and isinstance(start, int) and isinstance(end, int):
        return new_list_cost(min(max(end - start, 0), actual_size(items)))
    return new_list_cost(actual_size(result))


def _range_cost(args: Sequence[object], result: object) -> int:
    if result is PENDING and isinstance(args[0], int):
        return new_list_cost(max(args[0], 0))
    return new_list_cost(actual_size(result))


def _reverse_cost(args: Sequence[object], result: object) -> int:
    return new_list_cost(actual_size(args[0] if result is PENDING else result))


def _flatten_cost(args: Sequence[object], result: object) -> int:
    depth = args[1] if len(args) > 1 else 1
    if not isinstance(depth, int):
        raise InternalError(f"interface conversion: {type_name(depth)} is not an int")
    inputs = actual_size(args[0])
    work = inputs * depth if abs(inputs * depth) <= MAX else (MAX + 1) // 2
    return new_list_cost(work) % (MAX + 1) + growth_cost(actual_size(result), inputs)


def _expand_sort_by(
    context: MacroContext, target: ast.Expr | None, args: Sequence[ast.Expr]
) -> ast.Expr:
    """`list.sortBy(e, key)`: the list is bound to a variable, mapped to its keys, and sorted by them."""
    assert target is not None
    if not isinstance(target, _SORTABLE):
        raise MacroError(
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
            target,
        )
    map_macro = next(macro for macro in STANDARD if (macro.name, macro.arity) == ("map", 2))
    keys = map_macro.expand(context, ident(context, _SORT_INPUT), args)
    assert keys is not None, "map() always expands"
    result = member_call(context, ident(context, _SORT_INPUT), _SORT_BY_KEYS, keys)
    nothing, never = ast.ListExpr(context.new_id(), ()), literal(context, False)
    step = ident(context, _SORT_INPUT)
    return ast.Comprehension(
        context.new_id(), nothing, UNUSED, "", _SORT_INPUT, target, never, step, result
    )


_LIST = list_of(parameter("T"))
_NESTED, _ITEMS = list_of(_LIST), list_of(DYN)
_SLICE = Rule(_slice_estimate, _slice_cost)
_FLATTEN = Rule(_flatten_estimate, _flatten_cost)
_RANGE = Rule(lambda args: new_list_estimate(fixed_size(literal_int(args[0], MAX))), _range_cost)
_REVERSE = Rule(lambda args: new_list_estimate(args[0].size), _reverse_cost)


def _sort_overloads(short: str, type: Type) -> tuple[Function, Function]:
    keys = list_of(type)
    by_keys = f"list_{short}_sortByAssociatedKeys"
    return (
        member("sort", f"list_{short}_sort", (keys,), keys, sort, _comparisons(0, type)),
        member(_SORT_BY_KEYS, by_keys, (_LIST, keys), _LIST, sort_by_keys, _comparisons(1, type)),
    )


LISTS_EXTENSION = Library(
    "cel.lib.ext.lists",
    functions=(
        member("slice", "list_slice", (_LIST, INT, INT), _LIST, slice_list, _SLICE),
        member("flatten", "list_flatten", (_NESTED,), _LIST, flatten, _FLATTEN, guarded=False),
        member(
            "flatten",
            "list_flatten_int",
            (_ITEMS, INT),
            _ITEMS,
            flatten,
            _FLATTEN,
            guarded=False,
        ),
        *(row for of in COMPARABLE_TYPES.items() for row in _sort_overloads(*of)),
        static("lists.range", "lists_range", (INT,), list_of(INT), lists_range, _RANGE),
        member("reverse", "list_reverse", (_LIST,), _LIST, reverse, _REVERSE),
        member("distinct", "list_distinct", (_LIST,), _LIST, distinct, _comparisons(0)),
    ),
    macros=(Macro("sortBy", 2, True, _expand_sort_by),),
)
