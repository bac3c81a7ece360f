"""`+ - * / %` and negation: 64-bit integers that overflow into errors, IEEE doubles, times, and concatenation."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from drayman.cel import types
from drayman.cel.costs import STRING_TRAVERSAL, UNIT, CallEstimate, CostNode, actual_size
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Function, Library, Overload, Rule, static
from drayman.cel.times import Duration, Timestamp
from drayman.cel.types import BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT
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


def _add_duration(moment: Timestamp, duration: Duration) -> Timestamp:
    return Timestamp.checked(moment.nanos + duration.nanos, moment.offset)


def _add_to_duration(duration: Duration, moment: Timestamp) -> Timestamp:
    return _add_duration(moment, duration)


def _add_durations(left: Duration, right: Duration) -> Duration:
    return Duration.checked(left.nanos + right.nanos)


def _difference(left: Duration | Timestamp, right: Duration | Timestamp) -> Duration:
    return Duration.checked(left.nanos - right.nanos)


def _negate_duration(value: Duration) -> Duration:
    return Duration.checked(-value.nanos)


def _subtract_duration(moment: Timestamp, duration: Duration) -> Timestamp:
    return Timestamp.checked(moment.nanos - duration.nanos, moment.offset)


def _signed(operation: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda left, right: to_int(operation(left, right))


def _unsigned(operation: Callable[[int, int], int]) -> Callable[[UInt, UInt], UInt]:
    return lambda left, right: to_uint(operation(int(left), int(right)))


def _concatenation_estimate(args: Sequence[CostNode], *, per_unit: float) -> CallEstimate:
    size = args[0].size + args[1].size
    left, right = args[0].entry_size, args[1].entry_size
    entry = left | right if left is not None and right is not None else None
    return CallEstimate(size.cost(per_unit) if per_unit else UNIT, size, entry)


def _text_cost(args: Sequence[object], result: object) -> int:
    return math.ceil((actual_size(args[0]) + actual_size(args[1])) * STRING_TRAVERSAL)


_TEXT = Rule(partial(_concatenation_estimate, per_unit=STRING_TRAVERSAL), _text_cost)
_LISTS = Rule(partial(_concatenation_estimate, per_unit=0))


_DOUBLES, _INTS, _UINTS = (DOUBLE, DOUBLE), (INT, INT), (UINT, UINT)
_DURATIONS, _TIMESTAMPS = (DURATION, DURATION), (TIMESTAMP, TIMESTAMP)
_TIME_SHIFT = (TIMESTAMP, DURATION)

ARITHMETIC = Library(
    "arithmetic",
    (
        static("_+_", "add_bytes", (BYTES, BYTES), BYTES, _add_text, _TEXT),
        static("_+_", "add_double", _DOUBLES, DOUBLE, operator.add),
        static("_+_", "add_duration_duration", _DURATIONS, DURATION, _add_durations),
        static("_+_", "add_duration_timestamp", (DURATION, TIMESTAMP), TIMESTAMP, _add_to_duration),
        static("_+_", "add_timestamp_duration", _TIME_SHIFT, TIMESTAMP, _add_duration),
        static("_+_", "add_int64", _INTS, INT, _signed(operator.add)),
        static("_+_", "add_list", (_LIST, _LIST), _LIST, concatenate, _LISTS),
        static("_+_", "add_string", (STRING, STRING), STRING, _add_text, _TEXT),
        static("_+_", "add_uint64", _UINTS, UINT, _unsigned(operator.add)),
        static("_-_", "subtract_double", _DOUBLES, DOUBLE, operator.sub),
        static("_-_", "subtract_duration_duration", _DURATIONS, DURATION, _difference),
        static("_-_", "subtract_int64", _INTS, INT, _signed(operator.sub)),
        static("_-_", "subtract_timestamp_duration", _TIME_SHIFT, TIMESTAMP, _subtract_duration),
        static("_-_", "subtract_timestamp_timestamp", _TIMESTAMPS, DURATION, _difference),
        static("_-_", "subtract_uint64", _UINTS, UINT, _unsigned(operator.sub)),
        static("_*_", "multiply_double", _DOUBLES, DOUBLE, operator.mul),
        static("_*_", "multiply_int64", _INTS, INT, _signed(operator.mul)),
        static("_*_", "multiply_uint64", _UINTS, UINT, _unsigned(operator.mul)),
        static("_/_", "divide_double", _DOUBLES, DOUBLE, _divide_double),
        static("_/_", "divide_int64", _INTS, INT, _signed(_divide)),
        static("_/_", "divide_uint64", _UINTS, UINT, _unsigned(_divide)),
        static("_%_", "modulo_int64", _INTS, INT, _modulo_int),
        static("_%_", "modulo_uint64", _UINTS, UINT, _unsigned(_modulo)),
        Function(
            "-_",
            (
                Overload("negate_double", (DOUBLE,), DOUBLE, operator.neg),
                Overload("negate_int64", (INT,), INT, lambda value: to_int(-value)),
            ),
            dynamic=(Overload("negate_duration", (DURATION,), DURATION, _negate_duration),),
        ),
    ),
)
