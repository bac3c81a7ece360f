"""Laws of the values: equality, order, keys, concatenation, times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.cel.errors import CostLimitError, EvaluationError
from drayman.cel.standard.comparison import compare
from drayman.cel.times import Duration, Timestamp
from drayman.cel.values import (
    INT_MAX,
    INT_MIN,
    MISSING,
    NONE,
    UINT_MAX,
    Concatenation,
    MapValue,
    OptionalValue,
    UInt,
    check_size,
    concatenate,
    equal,
)

INTEGERS = st.integers(INT_MIN, INT_MAX)
UNSIGNED = st.integers(0, UINT_MAX).map(UInt)
DOUBLES = st.floats(allow_nan=False)
NUMBERS = INTEGERS | UNSIGNED | DOUBLES
SCALARS = NUMBERS | st.booleans() | st.text() | st.binary() | st.none()
KEYS = st.booleans() | INTEGERS | UNSIGNED | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(st.tuples(KEYS, inner), max_size=4).map(MapValue.of)
        | inner.map(OptionalValue)
    ),
    max_leaves=10,
)


@given(VALUES)
def test_equality_is_reflexive(value: object) -> None:
    """Every value without a NaN equals itself."""
    assert equal(value, value)


@given(VALUES, VALUES)
def test_equality_is_symmetric(left: object, right: object) -> None:
    """The order of operands does not matter for values of the language itself."""
    assert equal(left, right) == equal(right, left)


@given(NUMBERS, NUMBERS)
def test_numbers_have_one_order(left: float, right: float) -> None:
    """Of two numbers exactly one of less, equal and greater holds, whatever their types."""
    assert compare(left, right) == -compare(right, left)
    assert (compare(left, right) == 0) == equal(left, right)


@given(INTEGERS)
def test_bools_are_no_numbers(number: int) -> None:
    """`true` is neither equal to nor ordered with any number."""
    assert not equal(True, number)
    with pytest.raises(EvaluationError):
        compare(True, number)


@given(st.dictionaries(st.text() | INTEGERS, st.integers()), KEYS)
def test_maps_find_what_is_in_them(entries: dict[object, int], key: object) -> None:
    """A lookup finds the entry whose key equals the one given, and nothing else."""
    found = MapValue.of(entries.items()).find(key)
    want = [value for other, value in entries.items() if equal(other, key)]
    assert [found] == (want or [MISSING])


@given(st.lists(st.integers(), max_size=100), st.lists(st.integers(), max_size=100))
def test_concatenations_are_lists(left: list[object], right: list[object]) -> None:
    """However it is stored, a concatenation has the elements of both lists in order."""
    both = concatenate(concatenate(left, right), left)
    want = [*left, *right, *left]
    assert list(both) == want
    assert [both[i] for i in range(len(both))] == want
    assert equal(both, want)
    assert both[1:] == want[1:]


def test_concatenation_is_lazy() -> None:
    """A list doubled fifty times is no problem until somebody wants to walk over it."""
    doubled = concatenate([1] * 40, [2] * 40)
    for _ in range(50):
        doubled = concatenate(doubled, doubled)
    assert isinstance(doubled, Concatenation)
    assert doubled[len(doubled) - 1] == 2
    with pytest.raises(CostLimitError):
        list(doubled)


def test_lengths_are_integers_of_the_language() -> None:
    """A list that would have more elements than an int can count is refused."""
    doubled = concatenate([1] * 40, [2] * 40)
    while len(doubled) < INT_MAX // 2:
        doubled = concatenate(doubled, doubled)
    with pytest.raises(CostLimitError):
        concatenate(doubled, doubled)


def test_comparison_of_shared_parts_is_bounded() -> None:
    """Lists that contain each other twice, many levels deep, are refused instead of walked over."""
    nested: object = 1
    for _ in range(100):
        nested = [nested, nested]
    with pytest.raises(CostLimitError):
        equal(nested, nested)


def test_sizes_are_bounded() -> None:
    """Nothing absurdly large is built."""
    check_size(1_000_000)
    with pytest.raises(CostLimitError):
        check_size(1_000_000_000)


def test_nothing_is_not_something() -> None:
    """No optional value equals `optional.none()`, not even one of null."""
    assert equal(NONE, NONE)
    assert not equal(NONE, OptionalValue(None))


@given(st.integers(-(2**62), 2**62))
def test_durations_print_what_they_read(nanos: int) -> None:
    """The text of a duration reads as the duration it came from, as exactly as doubles allow."""
    again = Duration.parse(str(Duration(nanos)))
    assert abs(again.nanos - nanos) <= 1 + abs(nanos) * 2**-52


@given(st.integers(-62_135_596_800, 253_402_300_799), st.integers(0, 999_999_999))
def test_timestamps_print_what_they_read(second: int, nanos: int) -> None:
    """The text of a timestamp reads as the same timestamp."""
    moment = Timestamp(second * 1_000_000_000 + nanos)
    assert Timestamp.parse(str(moment)) == moment


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1h30m", 5_400_000_000_000),
        ("-1.5s", -1_500_000_000),
        ("1us1ns", 1_001),
        ("1.5µs", 1_500),
        ("0", 0),
        ("+.5h", 1_800_000_000_000),
        ("2562047h47m16.854775807s", 2**63 - 1),
    ],
)
def test_durations_as_go_writes_them(text: str, want: int) -> None:
    """Durations have Go's syntax."""
    assert Duration.parse(text).nanos == want


@pytest.mark.parametrize(
    "text", ["", "1", "s", "1 s", "1d", ".s", "1h-1m", "2562047h47m16.854775808s", "--1s"]
)
def test_texts_that_are_no_durations(text: str) -> None:
    """What Go refuses is refused."""
    with pytest.raises(ValueError, match="invalid duration"):
        Duration.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-01-01",
        "2024-01-01T00:00:00",
        "2024-13-01T00:00:00Z",
        "2024-02-30T00:00:00Z",
        "0000-01-01T00:00:00Z",
    ],
)
def test_texts_that_are_no_timestamps(text: str) -> None:
    """Only complete RFC 3339 times of the years 1 to 9999 are timestamps."""
    with pytest.raises(ValueError, match=r"timestamp|month|day|year"):
        Timestamp.parse(text)
