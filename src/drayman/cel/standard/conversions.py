"""Conversions between the scalar types, called by the name of the type; `type` and `dyn`.

Texts are read as Go reads them, which is stricter than Python (no spaces, no `1_000`) and in places laxer (`0x1p-2`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from drayman.cel import types
from drayman.cel.costs import STRING_TRAVERSAL, CallEstimate, CostNode, SizeEstimate, traversal
from drayman.cel.doubles import shortest_double
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Library, Rule, static
from drayman.cel.times import NANOS, Duration, Timestamp
from drayman.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    TYPE,
    UINT,
    Type,
)
from drayman.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    TypeValue,
    UInt,
    to_int,
    to_uint,
    type_name,
)

_A, _B = types.parameter("A"), types.parameter("B")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,400}", re.ASCII)
_FLOAT = re.compile(
    r"[+-]?(?:[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)",
    re.ASCII | re.IGNORECASE,
)
_SEPARATOR = re.compile(r"(?<=[0-9])_(?=[0-9])")
_HEX_SEPARATOR = re.compile(r"(?<=[0-9a-fA-FxX])_(?=[0-9a-fA-F])")
_HEX_FLOAT = re.compile(
    r"[+-]?0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]{1,6}", re.ASCII | re.IGNORECASE
)
_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def _failed(source: str, target: Type) -> EvaluationError:
    return EvaluationError(f"type conversion error from '{source}' to '{target.name}'")


def _bool_of_text(text: str) -> bool:
    if text not in _BOOLS:
        raise _failed("string", BOOL)
    return _BOOLS[text]


def _int_of_text(text: str) -> int:
    value = int(text) if _DECIMAL.fullmatch(text) else INT_MAX + 1
    if not INT_MIN <= value <= INT_MAX:
        raise _failed("string", INT)
    return value


def _uint_of_text(text: str) -> UInt:
    value = int(text) if _DECIMAL.fullmatch(text) and text[0] not in "+-" else -1
    if not 0 <= value <= UINT_MAX:
        raise _failed("string", UINT)
    return UInt(value)


def _double_of_text(text: str) -> float:
    separator = _HEX_SEPARATOR if "x" in text.lower() else _SEPARATOR
    text = separator.sub("", text)
    if _FLOAT.fullmatch(text):
        value = float(text)
        if not math.isinf(value) or "n" in text.lower():
            return value
    elif _HEX_FLOAT.fullmatch(text):
        try:
            return float.fromhex(text)
        except OverflowError:
            pass
    raise _failed("string", DOUBLE)


def _int_of_double(value: float) -> int:
    if not -(2.0**63) < value < 2.0**63:
        raise EvaluationError("integer overflow")
    return int(value)


def _uint_of_double(value: float) -> UInt:
    if not 0 <= value < 2.0**64:
        raise EvaluationError("unsigned integer overflow")
    return UInt(int(value))


def _bytes_of_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def _duration_of_text(text: str) -> Duration:
    try:
        return Duration.parse(text)
    except ValueError:
        raise _failed("string", DURATION) from None


def _duration_of_int(value: int) -> Duration:
    """Declared, but not implemented upstream either."""
    raise _failed("int", DURATION)


def _timestamp_of_int(seconds: int) -> Timestamp:
    return Timestamp.checked(seconds * NANOS)


def _timestamp_of_text(text: str) -> Timestamp:
    try:
        return Timestamp.parse(text)
    except ValueError:
        raise _failed("string", TIMESTAMP) from None


def _same(value: object) -> object:
    return value


def _encode_estimate(args: Sequence[CostNode]) -> CallEstimate:
    size = args[0].size
    return CallEstimate(
        size.cost(STRING_TRAVERSAL), SizeEstimate(size.min, _wrapping(size.max * 4))
    )


def _decode_estimate(args: Sequence[CostNode]) -> CallEstimate:
    size = args[0].size
    return CallEstimate(size.cost(STRING_TRAVERSAL), SizeEstimate(size.min // 4, size.max))


def _wrapping(size: int) -> int:
    """Upstream multiplies without a check here."""
    return size & UINT_MAX


def _text_cost(args: Sequence[object], result: object) -> int:
    return traversal(args[0])


_ENCODE, _DECODE = Rule(_encode_estimate, _text_cost), Rule(_decode_estimate, _text_cost)


CONVERSIONS = Library(
    "conversions",
    (
        static("type", "type", (_A,), types.type_of(_A), lambda value: TypeValue(type_name(value))),
        static("dyn", "to_dyn", (_A,), DYN, _same),
        static("bool", "bool_to_bool", (BOOL,), BOOL, _same),
        static("bool", "string_to_bool", (STRING,), BOOL, _bool_of_text),
        static("bytes", "bytes_to_bytes", (BYTES,), BYTES, _same),
        static("bytes", "string_to_bytes", (STRING,), BYTES, _bytes_of_text, _ENCODE),
        static("double", "double_to_double", (DOUBLE,), DOUBLE, _same),
        static("double", "int64_to_double", (INT,), DOUBLE, float),
        static("double", "string_to_double", (STRING,), DOUBLE, _double_of_text),
        static("double", "uint64_to_double", (UINT,), DOUBLE, float),
        static("duration", "duration_to_duration", (DURATION,), DURATION, _same),
        static("duration", "int64_to_duration", (INT,), DURATION, _duration_of_int),
        static("duration", "string_to_duration", (STRING,), DURATION, _duration_of_text),
        static("int", "int64_to_int64", (INT,), INT, _same),
        static("int", "double_to_int64", (DOUBLE,), INT, _int_of_double),
        static("int", "duration_to_int64", (DURATION,), INT, lambda value: value.nanos),
        static("int", "string_to_int64", (STRING,), INT, _int_of_text),
        static("int", "timestamp_to_int64", (TIMESTAMP,), INT, lambda value: value.nanos // NANOS),
        static("int", "uint64_to_int64", (UINT,), INT, lambda value: to_int(int(value))),
        static("string", "string_to_string", (STRING,), STRING, _same),
        static("string", "bool_to_string", (BOOL,), STRING, lambda value: str(value).lower()),
        static("string", "bytes_to_string", (BYTES,), STRING, _text_of_bytes, _DECODE),
        static("string", "double_to_string", (DOUBLE,), STRING, shortest_double),
        static("string", "duration_to_string", (DURATION,), STRING, str),
        static("string", "int64_to_string", (INT,), STRING, str),
        static("string", "timestamp_to_string", (TIMESTAMP,), STRING, str),
        static("string", "uint64_to_string", (UINT,), STRING, lambda value: str(int(value))),
        static("timestamp", "timestamp_to_timestamp", (TIMESTAMP,), TIMESTAMP, _same),
        static("timestamp", "int64_to_timestamp", (INT,), TIMESTAMP, _timestamp_of_int),
        static("timestamp", "string_to_timestamp", (STRING,), TIMESTAMP, _timestamp_of_text),
        static("uint", "uint64_to_uint64", (UINT,), UINT, _same),
        static("uint", "double_to_uint64", (DOUBLE,), UINT, _uint_of_double),
        static("uint", "int64_to_uint64", (INT,), UINT, to_uint),
        static("uint", "string_to_uint64", (STRING,), UINT, _uint_of_text),
    ),
    types=(
        *(BOOL, BYTES, DOUBLE, DURATION, INT, NULL, STRING, TIMESTAMP, TYPE, UINT),
        types.list_of(_A),
        types.map_of(_A, _B),
    ),
)
