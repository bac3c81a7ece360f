"""`+ - * / %` and negation: 64-bit integers that overflow into errors, IEEE doubles, times, and concatenation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from drayman.cel import types
from drayman.cel.costs import (
    STRING_TRAVERSAL,
    UNIT,
    CallEstimate,
    CostNode,
    actual_size,
)
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Function, Library, Overload
from drayman.cel.times import Duration, Timestamp
from drayman.cel.types import BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, Type
from drayman.cel.values import UInt, check_size, concatenate, to_int, to_uint

T = TypeVar("T", str, bytes)
_LIST = types.list_of(types.parameter("A"))


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _modulo(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    remainder = abs(left) % abs(right)
    return -remainder if left < 0 else remainder


def _modulo_int(left: int, right: int) -> int:
    to_int(_divide(left, right) if right else 0)  # the one quotient that overflows
    return _modulo(left, right)


def _divide_double(left: float, right: float) -> float:
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _add_text(left: T, right: T) -> T:
    check_size(len(left) + len(right))
    return left + right


def add_time(moment: Timestamp, duration: Duration) -> Timestamp:
    return Timestamp.checked(moment.nanos + duration.nanos, moment.offset)


def _subtract_duration(moment: Timestamp, duration: Duration) -> Timestamp:
    return Timestamp.checked(moment.nanos - duration.nanos, moment.offset)


def _signed(operation: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda left, right: to_int(operation(left, right))


def _unsigned(operation: Callable[[int, int], int]) -> Callable[[UInt, UInt], UInt]:
    return lambda left, right: to_uint(operation(int(left), int(right)))


def concatenation_estimate(args: Sequence[CostNode], *, per_unit: float) -> CallEstimate:
    size = args[0].size + args[1].size
    left, right = args[0].entry_size, args[1].entry_size
    entry = left | right if left is not None and right is not None else None
    return CallEstimate(size.cost(per_unit) if per_unit else UNIT, size, entry)


def _text_cost(args: Sequence[object], result: object) -> int:
    return math.ceil((actual_size(args[0]) + actual_size(args[1])) * STRING_TRAVERSAL)


_text_estimate = partial(concatenation_estimate, per_unit=STRING_TRAVERSAL)
_list_estimate = partial(concatenation_estimate, per_unit=0)


def _binary(
    id_: str, left: Type, right: Type, result: Type, run: Callable[..., object]
) -> Overload:
    return Overload(id_, (left, right), result, run)


def _text(id_: str, type_: Type) -> Overload:
    return Overload(id_, (type_, type_), type_, _add_text, estimate=_text_estimate, cost=_text_cost)


ADD = Function(
    "_+_",
    (
        _text("add_bytes", BYTES),
        _binary("add_double", DOUBLE, DOUBLE, DOUBLE, lambda a, b: a + b),
        _binary(
            "add_duration_duration",
            DURATION,
            DURATION,
            DURATION,
            lambda a, b: Duration.checked(a.nanos + b.nanos),
        ),
        _binary(
            "add_duration_timestamp", DURATION, TIMESTAMP, TIMESTAMP, lambda a, b: add_time(b, a)
        ),
        _binary("add_timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP, add_time),
        _binary("add_int64", INT, INT, INT, _signed(lambda a, b: a + b)),
        Overload("add_list", (_LIST, _LIST), _LIST, concatenate, estimate=_list_estimate),
        _text("add_string", STRING),
        _binary("add_uint64", UINT, UINT, UINT, _unsigned(lambda a, b: a + b)),
    ),
)

SUBTRACT = Function(
    "_-_",
    (
        _binary("subtract_double", DOUBLE, DOUBLE, DOUBLE, lambda a, b: a - b),
        _binary(
            "subtract_duration_duration",
            DURATION,
            DURATION,
            DURATION,
            lambda a, b: Duration.checked(a.nanos - b.nanos),
        ),
        _binary("subtract_int64", INT, INT, INT, _signed(lambda a, b: a - b)),
        _binary("subtract_timestamp_duration", TIMESTAMP, DURATION, TIMESTAMP, _subtract_duration),
        _binary(
            "subtract_timestamp_timestamp",
            TIMESTAMP,
            TIMESTAMP,
            DURATION,
            lambda a, b: Duration.checked(a.nanos - b.nanos),
        ),
        _binary("subtract_uint64", UINT, UINT, UINT, _unsigned(lambda a, b: a - b)),
    ),
)

MULTIPLY = Function(
    "_*_",
    (
        _binary("multiply_double", DOUBLE, DOUBLE, DOUBLE, lambda a, b: a * b),
        _binary("multiply_int64", INT, INT, INT, _signed(lambda a, b: a * b)),
        _binary("multiply_uint64", UINT, UINT, UINT, _unsigned(lambda a, b: a * b)),
    ),
)

DIVIDE = Function(
    "_/_",
    (
        _binary("divide_double", DOUBLE, DOUBLE, DOUBLE, _divide_double),
        _binary("divide_int64", INT, INT, INT, _signed(_divide)),
        _binary("divide_uint64", UINT, UINT, UINT, _unsigned(_divide)),
    ),
)

MODULO = Function(
    "_%_",
    (
        _binary("modulo_int64", INT, INT, INT, _modulo_int),
        _binary("modulo_uint64", UINT, UINT, UINT, _unsigned(_modulo)),
    ),
)

NEGATE = Function(
    "-_",
    (
        Overload("negate_double", (DOUBLE,), DOUBLE, lambda value: -value),
        Overload("negate_int64", (INT,), INT, lambda value: to_int(-value)),
    ),
    dynamic=(
        Overload(
            "negate_duration", (DURATION,), DURATION, lambda value: Duration.checked(-value.nanos)
        ),
    ),
)

ARITHMETIC = Library("arithmetic", (ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULO, NEGATE))
