"""The messages of Protocol Buffers that every environment knows, and that become plain values: `google.protobuf.Int64Value{value: 1}`.

They are rarely written, but stored expressions may contain them, and then they have to compile. A wrapper such as `Int64Value` has a type
of its own, which fits wherever the wrapped type does and also takes null; its value is one of the wrapped type.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping

from drayman.cel import types
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Fields, Library, Message
from drayman.cel.times import NANOS, Duration, Timestamp
from drayman.cel.types import ANY, BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, UINT
from drayman.cel.values import LISTS, MapValue, UInt

_PREFIX = "google.protobuf."
_JSON_INTEGER = 2**53 - 1  # larger integers become strings in JSON
_JSON_LIST, _JSON_MAP = types.list_of(DYN), types.map_of(types.STRING, DYN)

_Convert = Callable[[object], object]


def _exactly(of: type) -> _Convert:
    def convert(value: object) -> object:
        if type(value) is not of:
            raise EvaluationError(f"field type conversion error: {value!r} is not a {of.__name__}")
        return value

    return convert


def _within(of: type, low: int, high: int) -> _Convert:
    exact = _exactly(of)

    def convert(value: object) -> object:
        number = exact(value)
        assert isinstance(number, int)
        if not low <= number <= high:
            raise EvaluationError("field type conversion error: integer overflow")
        return number

    return convert


def _single(value: object) -> float:
    """To the nearest number of 32 bits; what is too large becomes infinite."""
    number = _exactly(float)(value)
    assert isinstance(number, float)
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")


_INT32 = _within(int, -(2**31), 2**31 - 1)
_WRAPPERS: Mapping[str, tuple[types.Type, object, _Convert]] = {
    "BoolValue": (BOOL, False, _exactly(bool)),
    "BytesValue": (BYTES, b"", _exactly(bytes)),
    "DoubleValue": (DOUBLE, 0.0, _exactly(float)),
    "FloatValue": (DOUBLE, 0.0, _single),
    "Int32Value": (INT, 0, _INT32),
    "Int64Value": (INT, 0, _exactly(int)),
    "StringValue": (STRING, "", _exactly(str)),
    "UInt32Value": (UINT, UInt(0), _within(UInt, 0, 2**32 - 1)),
    "UInt64Value": (UINT, UInt(0), _exactly(UInt)),
}


def _wrapper(name: str) -> Message:
    type_, zero, convert = _WRAPPERS[name]

    def build(fields: Fields) -> object:
        return convert(fields["value"]) if "value" in fields else zero

    return Message(_PREFIX + name, types.wrapper(type_), {"value": type_}, build)


def _nanos(fields: Fields) -> int:
    seconds = _exactly(int)(fields.get("seconds", 0))
    nanos = _INT32(fields.get("nanos", 0))
    assert isinstance(seconds, int)
    assert isinstance(nanos, int)
    return seconds * NANOS + nanos


def _duration(fields: Fields) -> Duration:
    nanos = _nanos(fields)
    return Duration(max(-(2**63), min(nanos, 2**63 - 1)))


def _json(value: object) -> object:
    """The value after conversion to JSON and back. Raises EvaluationError for what JSON cannot represent."""
    if value is None or isinstance(value, bool | float | str):
        return value
    if isinstance(value, int):
        return float(value) if abs(value) <= _JSON_INTEGER else str(int(value))
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Timestamp | Duration):
        return str(value)
    if isinstance(value, LISTS):
        return [_json(item) for item in value]
    if isinstance(value, MapValue):
        return MapValue.of((_json_key(key), _json(item)) for key, item in value.pairs())
    raise EvaluationError("field type conversion error: the value has no form in JSON")


def _json_key(key: object) -> str:
    if not isinstance(key, str):
        raise EvaluationError("field type conversion error: keys in JSON are strings")
    return key


def _json_field(name: str, of: tuple[type, ...], empty: object) -> Callable[[Fields], object]:
    def build(fields: Fields) -> object:
        value = fields.get(name, empty)
        if not isinstance(value, of):
            raise EvaluationError(f"field type conversion error: {name}")
        return _json(value)

    return build


def _value(fields: Fields) -> object:
    """The last of several fields counts: they are alternatives."""
    last = next(reversed(list(fields)), "null_value")
    return None if last == "null_value" else _json(fields[last])


def _any(fields: Fields) -> object:
    raise EvaluationError("unsupported conversion to ref.Val: google.protobuf.Any")


_VALUE_FIELDS: Mapping[str, types.Type] = {
    "null_value": INT,
    "number_value": DOUBLE,
    "string_value": STRING,
    "bool_value": BOOL,
    "struct_value": _JSON_MAP,
    "list_value": _JSON_LIST,
}
_TIME_FIELDS: Mapping[str, types.Type] = {"seconds": INT, "nanos": INT}

MESSAGES = Library(
    "messages",
    constants={"google.protobuf.NullValue.NULL_VALUE": (INT, 0)},
    messages=(
        *(_wrapper(name) for name in _WRAPPERS),
        Message(TIMESTAMP.name, TIMESTAMP, _TIME_FIELDS, lambda fields: Timestamp(_nanos(fields))),
        Message(DURATION.name, DURATION, _TIME_FIELDS, _duration),
        Message(
            _PREFIX + "Struct",
            _JSON_MAP,
            {"fields": _JSON_MAP},
            _json_field("fields", (MapValue,), MapValue()),
        ),
        Message(
            _PREFIX + "ListValue",
            _JSON_LIST,
            {"values": _JSON_LIST},
            _json_field("values", LISTS, ()),
        ),
        Message(_PREFIX + "Value", DYN, _VALUE_FIELDS, _value),
        Message(_PREFIX + "Any", ANY, {"type_url": STRING, "value": BYTES}, _any),
    ),
)
