"""Kubernetes' own list functions: `isSorted`, `sum`, `min`, `max`, `indexOf` and `lastIndexOf`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Function, Library, member, priced
from drayman.cel.libraries.elements import COMPARABLE_TYPES, is_comparable, order
from drayman.cel.libraries.rules import SCAN
from drayman.cel.times import Duration
from drayman.cel.types import BOOL, DOUBLE, DURATION, INT, UINT, Type, list_of, parameter
from drayman.cel.values import ListValue, UInt, no_such_overload, same, to_int, to_uint


def is_sorted(items: ListValue) -> bool:
    return all(order(left, right) <= 0 for left, right in pairwise(_comparable(items)))


def minimum(items: ListValue) -> object:
    return _extreme(items, "min", preferred=1)


def maximum(items: ListValue) -> object:
    return _extreme(items, "max", preferred=-1)


def _extreme(items: ListValue, name: str, preferred: int) -> object:
    best: object = None
    for item in _comparable(items):
        if best is None or order(best, item) == preferred:
            best = item
    if best is None:
        raise EvaluationError(f"{name} called on empty list")
    return best


def _comparable(items: ListValue) -> Iterator[object]:
    for item in items:
        if not is_comparable(item):
            raise no_such_overload()
        yield item


def index_of(items: ListValue, value: object) -> int:
    return next((index for index, item in enumerate(items) if same(item, value)), -1)


def last_index_of(items: ListValue, value: object) -> int:
    last = -1
    for index, item in enumerate(items):
        if same(item, value):
            last = index
    return last


def sum_of_ints(items: ListValue) -> int:
    total = 0
    for item in items:
        if type(item) is not int:
            raise no_such_overload()
        total = to_int(total + item)
    return total


def sum_of_uints(items: ListValue) -> UInt:
    total = UInt(0)
    for item in items:
        if not isinstance(item, UInt):
            raise no_such_overload()
        total = to_uint(total + item)
    return total


def sum_of_doubles(items: ListValue) -> float:
    total = 0.0
    for item in items:
        if not isinstance(item, float):
            raise no_such_overload()
        total += item
    return total


def sum_of_durations(items: ListValue) -> Duration:
    total = Duration(0)
    for item in items:
        if not isinstance(item, Duration):
            raise no_such_overload()
        total = Duration.checked(total.nanos + item.nanos)
    return total


_ANY = parameter("A")
_SEARCH = (list_of(_ANY), _ANY)
_SUMS: tuple[tuple[str, Type, Callable[[ListValue], object]], ...] = (
    ("int", INT, sum_of_ints),
    ("uint", UINT, sum_of_uints),
    ("double", DOUBLE, sum_of_doubles),
    ("duration", DURATION, sum_of_durations),
)


def _for_each_type(short: str, type: Type) -> tuple[Function, ...]:
    items = (list_of(type),)
    return (
        member("isSorted", f"list_{short}_is_sorted_bool", items, BOOL, is_sorted),
        member("max", f"list_{short}_max_{short}", items, type, maximum),
        member("min", f"list_{short}_min_{short}", items, type, minimum),
    )


KUBERNETES_LISTS = Library(
    "kubernetes.lists",
    priced(
        SCAN,
        *(row for of in COMPARABLE_TYPES.items() for row in _for_each_type(*of)),
        *(
            member("sum", f"list_{short}_sum_{short}", (list_of(type),), type, total)
            for short, type, total in _SUMS
        ),
        member("indexOf", "list_a_index_of_int", _SEARCH, INT, index_of),
        member("lastIndexOf", "list_a_last_index_of_int", _SEARCH, INT, last_index_of),
    ),
)
