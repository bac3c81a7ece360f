"""What calls cost: estimates before, figures after, and surcharges for what would explode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.cel.costs import (
    MAX,
    NOT_LITERAL,
    PENDING,
    UNKNOWN_SIZE,
    CallEstimate,
    CostRule,
    EntrySize,
    EstimateRule,
    SizeEstimate,
    fixed_size,
)
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Function, Overload
from drayman.cel.libraries import INCLUDES, kubernetes_libraries
from drayman.cel.libraries.cidr import parse_cidr
from drayman.cel.libraries.formats import FORMATS
from drayman.cel.libraries.ip import parse_ip
from drayman.cel.libraries.rules import FREE_GROWTH, tree_cost
from drayman.cel.types import DYN, INT, STRING, Type, list_of
from drayman.cel.values import MapValue

FAILED = EvaluationError("failed")


@dataclass(frozen=True)
class Node:
    """An argument of a call before anything runs."""

    type: Type = STRING
    computed_size: SizeEstimate | None = None
    literal: object = NOT_LITERAL
    element: SizeEstimate | None = None
    entry_size: EntrySize | None = None

    @property
    def size(self) -> SizeEstimate:
        return self.computed_size or UNKNOWN_SIZE

    def items(self) -> Node | None:
        if not self.type.parameters:
            return None
        return Node(self.type.parameters[0], self.element)


def text(low: int, high: int | None = None) -> Node:
    return Node(STRING, SizeEstimate(low, low if high is None else high))


def items(count: int, type: Type = INT, element: SizeEstimate | None = None) -> Node:
    return Node(list_of(type), fixed_size(count), element=element)


def number(value: int) -> Node:
    return Node(INT, fixed_size(1), value)


OVERLOADS: dict[str, tuple[Function, Overload]] = {
    overload.id: (function, overload)
    for library in (*kubernetes_libraries(), INCLUDES)
    for function in library.functions
    for overload in function.overloads
}


def estimated(overload_id: str, args: Sequence[Node]) -> CallEstimate:
    """By the rule of the overload, or else of the function; 1 without a rule."""
    function, overload = OVERLOADS[overload_id]
    rules: list[EstimateRule | None] = [overload.rule.estimate, function.rule.estimate]
    found = next((rule(args) for rule in rules if rule is not None), None)
    assert found is not None
    return found


def charged(overload_id: str, args: Sequence[object], result: object = True) -> int:
    function, overload = OVERLOADS[overload_id]
    rules: list[CostRule | None] = [overload.rule.cost, function.rule.cost]
    return next((rule(args, result) for rule in rules if rule is not None), 1)


@pytest.mark.parametrize(
    ("overload", "args", "cost", "size"),
    [
        ("string_lower_ascii", [text(0, 64)], (0, 7), (0, 64)),
        ("string_lower_ascii", [Node()], (0, 1844674407370955264), (0, MAX)),
        ("string_index_of_string", [text(64), text(1)], (7, 7), None),
        ("list_a_index_of_int", [items(3), number(1)], (3, 3), None),
        ("list_string_max_string", [items(2, STRING)], (2, 3689348814741910530), None),
        ("list_string_max_string", [items(2, STRING, fixed_size(20))], (6, 6), None),
        ("list_int_sum_int", [Node(DYN, SizeEstimate(0, 64))], (0, 7), None),
        ("string_split_string", [text(0, 64), text(1)], (0, 13), (0, 64)),
        ("string_split_string_int", [text(0, 64), text(1), number(3)], (0, 13), (0, 3)),
        ("string_split_string_int", [text(0, 64), text(1), number(-1)], (0, 13), (0, MAX)),
        ("list_join_string", [items(3, STRING, fixed_size(10)), text(2)], (4, 4), (34, 34)),
        ("list_join_string", [Node(DYN, SizeEstimate(0, 64)), text(1)], (0, 7), (0, 63)),
        ("list_join", [items(3, STRING, fixed_size(10))], (3, 3), (30, 30)),
        ("string_replace_string_string", [text(10), text(1), text(2)], (2, 2), (10, 20)),
        ("string_replace_string_string", [text(10), text(2), text(1)], (2, 2), (5, 10)),
        ("string_replace_string_string", [text(10), text(0), text(1)], (2, 2), (21, 21)),
        ("string_format", [text(30), items(1, DYN)], (3, 3), None),
        ("strings_quote", [text(10)], (1, 1), (12, 22)),
        ("strings_quote", [Node()], (0, 1844674407370955264), (2, 0)),
        ("string_find_string", [text(9), text(4)], (1, 1), (0, 9)),
        ("string_find_all_string", [text(64), text(9)], (21, 21), (0, 64)),
        ("list_slice", [items(9), number(2), number(5)], (14, 14), (3, 3)),
        ("list_slice", [items(9), Node(INT), Node(INT)], (20, 20), (9, 9)),
        ("list_slice", [items(9), number(5), number(2)], (MAX, MAX), (MAX - 2, MAX - 2)),
        ("list_flatten", [items(5, list_of(INT))], (16, 16), (5, 5)),
        ("list_flatten_int", [items(5, DYN), number(3)], (26, 26), (5, 5)),
        ("list_flatten_int", [items(5, DYN), Node(INT)], (MAX, MAX), (5, 5)),
        ("lists_range", [number(7)], (18, 18), (7, 7)),
        ("lists_range", [number(-7)], (11, 11), (0, 0)),
        ("lists_range", [Node(INT)], (MAX, MAX), (MAX, MAX)),
        ("list_reverse", [items(7)], (18, 18), (7, 7)),
        ("list_distinct", [items(7)], (109, 109), (49, 49)),
        ("list_int_sort", [items(7)], (109, 109), (49, 49)),
        ("list_string_sort", [items(7, STRING)], (114, 114), (49, 49)),
        ("list_string_sortByAssociatedKeys", [items(1), items(7, STRING)], (114, 114), (49, 49)),
        ("list_sets_contains_list", [items(3), items(4)], (13, 13), None),
        ("list_sets_equivalent_list", [items(3), items(4)], (25, 25), None),
        ("string_to_url", [text(25)], (3, 3), (25, 25)),
        ("string_to_ip", [text(11)], (2, 2), None),
        ("cidr_ip", [Node(DYN)], (1, 1), None),
        ("ip_is_canonical", [text(11)], (3, 3), None),
        ("cidr_contains_ip_ip", [Node(DYN), Node(DYN)], (1, 4), None),
        ("cidr_contains_ip_string", [Node(DYN), text(11)], (3, 6), None),
        ("cidr_contains_cidr", [Node(DYN), Node(DYN)], (3, 7), None),
        ("cidr_contains_cidr_string", [Node(DYN), text(11)], (5, 9), None),
        ("string_to_quantity", [text(4)], (1, 1), None),
        ("quantity_compare_to", [Node(DYN), Node(DYN)], (1, 1), None),
        ("is_semver_string_bool", [text(12), Node()], (2, 2), None),
        ("format-validate", [Node(DYN), text(63)], (224, 224), None),
        ("dra_includes_dyn_dyn", [Node(DYN), Node(DYN)], (0, 48), None),
        ("resourcecheck_check", [Node(DYN), text(3)], (350_000, 350_000), None),
        ("authorizer_labelselector", [Node(DYN), text(3)], (111, 111), None),
    ],
)
def test_estimate(
    overload: str, args: list[Node], cost: tuple[int, int], size: tuple[int, int] | None
) -> None:
    """The bounds of cost and size follow from those of the arguments."""
    found = estimated(overload, args)
    assert (found.cost.min, found.cost.max) == cost
    assert found.result_size == (None if size is None else SizeEstimate(*size))


@pytest.mark.parametrize(
    ("overload", "args", "result", "cost"),
    [
        ("string_char_at_int", ["abc", 1], "b", 1),
        ("string_lower_ascii", ["a" * 11], "", 2),
        ("string_index_of_string", ["a" * 19, "a"], 0, 1),
        ("string_index_of_string", ["é" * 10, "a"], 0, 2),
        ("list_a_index_of_int", [[1, 2, 3], 9], -1, 3),
        ("list_a_index_of_int", [["a", "b" * 10], 9], -1, 1),
        ("list_a_index_of_int", [[MapValue.of([("k" * 10, 1)])], 9], -1, 2),
        ("list_int_sum_int", [FAILED], FAILED, 1),
        ("string_split_string", ["a" * 11, ","], [], 3),
        ("string_replace_string_string", ["a" * 11, "a", "b"], "", 3),
        ("list_join_string", [["a" * 10, "b"], ","], "x" * 12, 3),
        ("list_join_string", [["a" * 10, "b"], ","], PENDING, 3),
        ("list_join_string", [FAILED, ","], FAILED, 1),
        ("string_format", ["%s" * 10, [1] * 10], "1" * 10, 2),
        ("string_find_string", ["", "a" * 8], "", 2),
        ("string_find_all_string", ["a" * 19, "aaaaa"], [], 4),
        ("list_slice", [[1, 2, 3], 0, 2], [1, 2], 13),
        ("list_slice", [[1, 2, 3], 0, 9], PENDING, 14),
        ("list_slice", [[1, 2, 3], 0, 9], FAILED, 12),
        ("list_flatten", [[[1], [2]]], [1, 2], 13),
        ("list_flatten_int", [[[1], [2]], 5], [1, 2], 21),
        ("lists_range", [5], PENDING, 16),
        ("lists_range", [2**62], PENDING, 2**62 + 11),
        ("lists_range", [5], [0, 1, 2, 3, 4], 16),
        ("list_reverse", [[1, 2]], PENDING, 13),
        ("list_distinct", [[1, 2, 3]], [1, 2, 3], 29),
        ("list_string_sort", [["a", "b", "c"]], [], 29),
        ("list_string_sort", [["a"] * 10], [], 221),
        ("list_int_sort", [[]], [], 11),
        ("list_sets_contains_list", [[1, 2], [1, 2, 3]], True, 7),
        ("list_sets_equivalent_list", [[1, 2], FAILED], FAILED, 5),
        ("string_to_url", ["a" * 25], FAILED, 3),
        ("cidr_contains_ip_ip", [parse_cidr("10.0.0.0/8"), parse_ip("10.0.0.1")], True, 1),
        ("cidr_contains_ip_ip", [parse_cidr("::/64"), parse_ip("::1")], True, 2),
        ("cidr_contains_ip_string", [parse_cidr("10.0.0.0/8"), "10.0.0.1"], True, 2),
        ("cidr_contains_cidr", [parse_cidr("10.0.0.0/8"), parse_cidr("10.0.0.0/9")], True, 3),
        ("cidr_contains_cidr_string", [parse_cidr("::/64"), "::/65"], True, 5),
        ("string_to_semver", ["1.2.3-alpha"], FAILED, 2),
        ("format-validate", [FORMATS["dns1123Label"], "my-label"], True, 8),
        ("format-validate", [FORMATS["uuid"], "x" * 19], True, 36),
        ("format-validate", [FAILED, "x"], FAILED, 1),
        ("dra_includes_dyn_dyn", [["a"] * 40, "b"], False, 1),
        ("authorizer_labelselector", [FAILED, "abc"], FAILED, 111),
    ],
)
def test_cost(overload: str, args: list[object], result: object, cost: int) -> None:
    """A call costs what upstream charges, also where an argument or the result is an error."""
    assert charged(overload, args, result) == cost


@pytest.mark.parametrize(
    ("overload", "args", "result", "base", "excess"),
    [
        pytest.param(
            "string_replace_string_string",
            ["a" * 100, "a", "b" * 1000],
            PENDING,
            20,
            (100_000 - 1100 - FREE_GROWTH) * 0.1,
            id="replace, before it is done",
        ),
        pytest.param(
            "string_format",
            ["%s", [[1] * 10]],
            "x" * 20_000,
            1,
            (20_000 - 12 - FREE_GROWTH) * 0.1,
            id="format",
        ),
        pytest.param(
            "list_flatten",
            [[[1]] * 5],
            [1] * 20_000,
            16,
            (20_000 - 5 - FREE_GROWTH) * 0.1,
            id="flatten",
        ),
        pytest.param(
            "string_find_all_string", ["a", "a"], ["a"] * 5000, 1, 5000 - FREE_GROWTH, id="findAll"
        ),
    ],
)
def test_growth(
    overload: str, args: list[object], result: object, base: int, excess: float
) -> None:
    """What a cheap call adds beyond the free allowance is charged as well."""
    assert charged(overload, args, result) == base + math.ceil(excess)


def test_growth_is_estimated() -> None:
    """A replacement that may explode is expensive before it runs, one within the allowance is not."""
    harmless = estimated("string_replace_string_string", [text(0, 64), text(0, 64), text(0, 60)])
    explosive = estimated("string_replace_string_string", [text(10_000), text(1), text(10_000)])
    assert harmless.cost.max == 13
    assert explosive.cost.max > 1_000_000


def test_shared_parts_are_not_walked_forever() -> None:
    """Walking over a list that shares its parts exponentially is priced out of reach instead."""
    value: list[object] = [""]
    for _ in range(30):
        value = [value] * 10
    assert tree_cost(value) == MAX


@given(
    st.recursive(st.integers() | st.text(max_size=30), lambda inner: st.lists(inner, max_size=4))
)
def test_tree_cost_is_the_sum_of_its_parts(value: object) -> None:
    """A list costs what its elements cost."""
    if isinstance(value, list):
        assert tree_cost(value) == sum(map(tree_cost, value))


@given(st.text(max_size=40), st.text(max_size=3), st.text(max_size=5))
def test_estimates_cover_actual_costs(target: str, old: str, new: str) -> None:
    """With exact sizes the estimate of `replace` is not below what the call costs, nor its size below the result."""
    args = [target, old, new]
    found = estimated("string_replace_string_string", [text(len(arg)) for arg in args])
    result = target.replace(old, new)
    assert charged("string_replace_string_string", args, result) <= found.cost.max
    assert found.result_size is not None
    assert len(result) <= found.result_size.max
