"""The lists extension, Kubernetes' list functions and the sets extension."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.cel.errors import CostLimitError, EvaluationError
from drayman.cel.libraries import kubernetes_lists, lists, sets
from drayman.cel.libraries.includes import includes
from drayman.cel.libraries.quantity import parse_quantity
from drayman.cel.libraries.semver import parse_semver
from drayman.cel.times import Duration, Timestamp
from drayman.cel.values import INT_MAX, Concatenation, MapValue, UInt

INTS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12)


@pytest.mark.parametrize(
    ("function", "args", "want"),
    [
        pytest.param(lists.slice_list, ([1, 2, 3, 4], 1, 3), [2, 3], id="slice"),
        pytest.param(lists.slice_list, ([1, 2], 2, 2), [], id="slice of nothing at the end"),
        pytest.param(
            lists.slice_list, (Concatenation([1], [2, 3]), 0, 2), [1, 2], id="slice of a sum"
        ),
        pytest.param(lists.flatten, ([[1], [], [2, [3]]],), [1, 2, [3]], id="flatten one level"),
        pytest.param(
            lists.flatten, ([1, [2, [3, [4]]]], 2), [1, 2, 3, [4]], id="flatten two levels"
        ),
        pytest.param(lists.flatten, ([[1]], 0), [[1]], id="flatten no level"),
        pytest.param(lists.flatten, ([[[1]]], 10**15), [1], id="flatten every level"),
        pytest.param(lists.sort, ([3, 1, 2],), [1, 2, 3], id="sort"),
        pytest.param(lists.sort, (["b", "a"],), ["a", "b"], id="sort strings"),
        pytest.param(lists.sort, ([True, False],), [False, True], id="sort bools"),
        pytest.param(lists.sort, ([],), [], id="sort nothing"),
        pytest.param(
            lists.sort,
            ([Timestamp(2), Timestamp(1)],),
            [Timestamp(1), Timestamp(2)],
            id="sort times",
        ),
        pytest.param(
            lists.sort_by_keys, (["x", "y", "z"], [2, 1, 1]), ["y", "z", "x"], id="sortBy is stable"
        ),
        pytest.param(lists.lists_range, (3,), [0, 1, 2], id="range"),
        pytest.param(lists.lists_range, (0,), [], id="range of nothing"),
        pytest.param(lists.lists_range, (-5,), [], id="range below zero"),
        pytest.param(lists.reverse, ([1, 2, 3],), [3, 2, 1], id="reverse"),
        pytest.param(
            lists.distinct,
            ([2, 1, 2, 1.0, UInt(2)],),
            [2, 1],
            id="distinct compares across numbers",
        ),
        pytest.param(
            lists.distinct, ([True, 1, "1"],), [True, 1, "1"], id="distinct keeps other types apart"
        ),
        pytest.param(kubernetes_lists.is_sorted, ([1, 1, 2],), True, id="isSorted"),
        pytest.param(kubernetes_lists.is_sorted, ([2, 1],), False, id="isSorted, not"),
        pytest.param(kubernetes_lists.is_sorted, ([],), True, id="isSorted of nothing"),
        pytest.param(kubernetes_lists.is_sorted, ([1, "a"],), True, id="isSorted without an order"),
        pytest.param(kubernetes_lists.sum_of_ints, ([1, 2, 3],), 6, id="sum"),
        pytest.param(kubernetes_lists.sum_of_ints, ([],), 0, id="sum of nothing"),
        pytest.param(kubernetes_lists.sum_of_doubles, ([0.5, 1.5],), 2.0, id="sum of doubles"),
        pytest.param(
            kubernetes_lists.sum_of_uints, ([UInt(1), UInt(2)],), UInt(3), id="sum of uints"
        ),
        pytest.param(
            kubernetes_lists.sum_of_durations,
            ([Duration(1), Duration(2)],),
            Duration(3),
            id="sum of durations",
        ),
        pytest.param(kubernetes_lists.minimum, ([3, 1, 2],), 1, id="min"),
        pytest.param(kubernetes_lists.maximum, (["a", "b"],), "b", id="max"),
        pytest.param(
            kubernetes_lists.maximum,
            ([math.nan, 1.0],),
            math.nan,
            id="max with NaN keeps the first",
        ),
        pytest.param(kubernetes_lists.index_of, ([1, 2, 2], 2), 1, id="indexOf"),
        pytest.param(kubernetes_lists.index_of, ([1], "1"), -1, id="indexOf of another type"),
        pytest.param(kubernetes_lists.last_index_of, ([1, 2, 2], 2), 2, id="lastIndexOf"),
        pytest.param(kubernetes_lists.last_index_of, ([], 2), -1, id="lastIndexOf in nothing"),
        pytest.param(
            kubernetes_lists.index_of,
            ([parse_semver("1.0.0"), 5], 5),
            1,
            id="indexOf skips what cannot be compared",
        ),
        pytest.param(sets.sets_contains, ([1, 2, 3], [1, 3, 3]), True, id="contains"),
        pytest.param(sets.sets_contains, ([1], [2]), False, id="contains, not"),
        pytest.param(sets.sets_contains, ([1], []), True, id="contains nothing"),
        pytest.param(
            sets.sets_contains, ([1, 2], [2.0, UInt(1)]), True, id="contains across numbers"
        ),
        pytest.param(sets.sets_equivalent, ([1, 2], [2, 1, 1]), True, id="equivalent"),
        pytest.param(sets.sets_equivalent, ([1, 2], [1]), False, id="equivalent, not"),
        pytest.param(sets.sets_intersects, ([1, 2], [2, 3]), True, id="intersects"),
        pytest.param(sets.sets_intersects, ([], [2]), False, id="intersects with nothing"),
        pytest.param(includes, (["a", "b"], "b"), True, id="includes in a list"),
        pytest.param(includes, (["a"], "z"), False, id="includes, not"),
        pytest.param(includes, ("a", "a"), True, id="includes of a scalar is equality"),
        pytest.param(includes, (3, 3.0), True, id="includes of a number of another type"),
        pytest.param(
            includes, (parse_semver("1.0.0"), "1.0.0"), False, id="includes never fails on types"
        ),
        pytest.param(
            includes,
            ([parse_quantity("1Ki")], parse_quantity("1024")),
            True,
            id="includes by value",
        ),
        pytest.param(
            includes, (list(range(49)), 47), True, id="includes finds the last it may look at"
        ),
    ],
)
def test_value(function: object, args: tuple[object, ...], want: object) -> None:
    """The function gives the value that upstream gives."""
    assert callable(function)
    got = function(*args)
    assert repr(got) == repr(want)


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        pytest.param(
            lists.slice_list, ([1], -1, 1), "negative indexes not supported", id="slice below zero"
        ),
        pytest.param(
            lists.slice_list, ([1], 1, 0), "start index must be less", id="slice backwards"
        ),
        pytest.param(lists.slice_list, ([1], 0, 2), "list is length 1", id="slice too long"),
        pytest.param(
            lists.flatten, ([1], -1), "level must be non-negative", id="flatten below zero"
        ),
        pytest.param(lists.sort, ([1, "a"],), "must have the same type", id="sort of a mixture"),
        pytest.param(lists.sort, ([[1], [2]],), "must be comparable", id="sort of lists"),
        pytest.param(
            lists.sort_by_keys,
            ([1, 2], [1]),
            "needs a key for each",
            id="sortBy with a key missing",
        ),
        pytest.param(
            kubernetes_lists.sum_of_ints, ([INT_MAX, 1],), "integer overflow", id="sum overflows"
        ),
        pytest.param(
            kubernetes_lists.sum_of_ints, ([1, "a"],), "no such overload", id="sum of a mixture"
        ),
        pytest.param(
            kubernetes_lists.minimum, ([],), "min called on empty list", id="min of nothing"
        ),
        pytest.param(
            kubernetes_lists.maximum, ([],), "max called on empty list", id="max of nothing"
        ),
        pytest.param(kubernetes_lists.maximum, ([None],), "no such overload", id="max of null"),
        pytest.param(
            kubernetes_lists.is_sorted,
            ([MapValue(), MapValue()],),
            "no such overload",
            id="isSorted of maps",
        ),
        pytest.param(
            includes, (list(range(49)), 48), "longer than 48 values", id="includes in a long list"
        ),
    ],
)
def test_error(function: object, args: tuple[object, ...], message: str) -> None:
    """The function fails with a message that says why."""
    assert callable(function)
    with pytest.raises(EvaluationError) as caught:
        function(*args)
    assert message in caught.value.message


def test_range_is_bounded() -> None:
    """A range that no limit allows is not built."""
    with pytest.raises(CostLimitError):
        lists.lists_range(10**12)


@pytest.mark.parametrize("seed", [[1], []], ids=["of values", "of nothing"])
def test_flatten_is_bounded(seed: list[object]) -> None:
    """Lists that share their parts are not flattened forever, even if nothing is in them."""
    items = seed
    for _ in range(20):
        items = [items] * 10
    with pytest.raises(CostLimitError):
        lists.flatten(items, 30)


@given(INTS)
def test_sorting(items: list[object]) -> None:
    """Sorting gives the same elements in order, and sorting again changes nothing."""
    once = lists.sort(items)
    assert kubernetes_lists.is_sorted(once)
    assert sets.sets_equivalent(once, items)
    assert lists.sort(once) == once


@given(INTS)
def test_reversing_twice(items: list[object]) -> None:
    """Reversing twice gives the list back."""
    assert lists.reverse(lists.reverse(items)) == items


@given(INTS)
def test_distinct(items: list[object]) -> None:
    """What is distinct is the same set, and each element stands where it first stood."""
    kept = lists.distinct(items)
    assert sets.sets_equivalent(kept, items)
    assert kept == list(dict.fromkeys(items))


@given(st.lists(INTS, max_size=5))
def test_flatten_concatenates(parts: list[object]) -> None:
    """Flattening a list of lists puts them behind each other."""
    want = [item for part in parts for item in part]  # type: ignore[attr-defined]
    assert lists.flatten(parts) == want


@given(INTS.filter(bool))
def test_extremes_are_ends_of_the_sorted_list(items: list[object]) -> None:
    """The minimum comes first when sorted, the maximum last."""
    ordered = lists.sort(items)
    assert (kubernetes_lists.minimum(items), kubernetes_lists.maximum(items)) == (
        ordered[0],
        ordered[-1],
    )
