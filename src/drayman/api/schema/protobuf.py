"""Request bodies in protobuf, which kubectl and programs in Go send for built-in kinds.

A body is an envelope that names the kind, around the object. Messages are decoded by the numbers in the tables into the value that
`decode_strict` would give for the same object in JSON: writers of this format write every field that is not a pointer, so zeros
and empty messages mean nothing. Numbers that no table knows are skipped, as the API server does.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from drayman.api.errors import BodyError, MalformedError, QuantityError, UnrecognizedError
from drayman.api.quantity import Quantity
from drayman.api.schema.model import Field, ListOf, MapOf, Message, Scalar, ScalarKind, Type
from drayman.api.schema.tables import JSON_SCHEMA, message_named
from drayman.api.schema.times import ZERO, TimeTextError, time_from_unix
from drayman.api.struct import Json
from drayman.api.syntax.values import TOO_DEEP, depth_exceeds

MAGIC: Final = b"k8s\x00"
MAX_DEPTH: Final = 200
"""Deepest nesting that is followed. Only JSON schemas contain themselves."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_NOT_PROTOBUF: Final = (
    "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
)


class Envelope(NamedTuple):
    """What a body claims to be, and the bytes of the object."""

    api_version: str
    kind: str
    raw: bytes


def read_envelope(body: bytes) -> Envelope:
    """Opens a body. Raises UnrecognizedError."""
    if not body.startswith(MAGIC):
        raise UnrecognizedError(_NOT_PROTOBUF)
    try:
        parts = {number: value for number, _, value in _records(body[len(MAGIC) :])}
        names = dict[int, str]()
        for number, _, value in _records(_as_bytes(parts.get(1, b""))):
            names[number] = _as_text(value)
        return Envelope(names.get(1, ""), names.get(2, ""), _as_bytes(parts.get(2, b"")))
    except BodyError as error:
        raise UnrecognizedError(str(error)) from error


def decode_protobuf(message: Message, raw: bytes) -> dict[str, Json]:
    """The value of an object's bytes. Raises MalformedError."""
    return _message(message, raw, 0)


def _records(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """The fields of a message: number, wire type and value. Nearly all keys and lengths are of one byte."""
    position, end = 0, len(data)
    while position < end:
        key = data[position]
        position += 1
        if key > 0x7F:
            key, position = _varint(data, position - 1)
        wire = key & 7
        if key < 8:
            raise MalformedError(f"proto: illegal tag 0 (wire type {wire})")
        if wire == _BYTES and position < end and (length := data[position]) <= 0x7F:
            position += 1
        elif wire == _BYTES:
            length, position = _varint(data, position)
        elif wire == _VARINT:
            number, position = _varint(data, position)
            yield key >> 3, wire, number
            continue
        else:
            length = _fixed_length(wire)
        start, position = position, position + length
        if position > end:
            raise MalformedError("unexpected EOF")
        yield key >> 3, wire, data[start:position]


def _fixed_length(wire: int) -> int:
    if wire == _FIXED64:
        return 8
    if wire == _FIXED32:
        return 4
    raise MalformedError(f"proto: illegal wireType {wire}")


def _varint(data: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if position >= len(data):
            raise MalformedError("unexpected EOF")
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & (1 << 64) - 1, position
        shift += 7
        if shift >= 64:
            raise MalformedError("proto: integer overflow")


def _message(message: Message, data: bytes, depth: int) -> dict[str, Json]:
    if depth > MAX_DEPTH:
        raise MalformedError("proto: exceeded max recursion depth")
    result: dict[str, Json] = {}
    by_number = message.by_number
    for number, wire, value in _records(data):
        field = by_number.get(number)
        if field is None:
            inlined = message.inlined.get(number)
            if inlined is not None:
                result.update(_message(inlined, _as_bytes(value), depth + 1))
            continue
        type_ = field.type
        if not value and not field.pointer and not isinstance(type_, ListOf | MapOf):
            continue
        if (
            isinstance(type_, Scalar)
            and type_.kind is ScalarKind.STRING
            and isinstance(value, bytes)
        ):
            # Most fields are texts, so they take the fast path.
            result[field.name] = value.decode(errors="replace")
            continue
        _field(field, wire, value, result, depth + 1)
    return result


def _field(
    field: Field, wire: int, value: int | bytes, result: dict[str, Json], depth: int
) -> None:
    type_ = field.type
    if isinstance(type_, ListOf):
        result.setdefault(field.name, []).extend(_items(type_.item, wire, value, depth))
    elif isinstance(type_, MapOf):
        key, item = _entry(type_, _as_bytes(value), depth)
        result.setdefault(field.name, {})[key] = item
    else:
        decoded = _single(type_, wire, value, depth)
        if decoded is not None and (field.pointer or not _is_zero(type_, decoded)):
            result[field.name] = decoded


def _is_zero(type_: Type, value: Json) -> bool:
    if isinstance(type_, Scalar) and type_.kind in (ScalarKind.RAW_EXTENSION, ScalarKind.JSON):
        return False
    if isinstance(type_, Scalar) and type_.kind is ScalarKind.INT_OR_STRING:
        return bool(value == 0)
    return not value


def _items(type_: Type, wire: int, value: int | bytes, depth: int) -> Iterator[Json]:
    """One item, or the many of a packed list."""
    packable = isinstance(type_, Scalar) and type_.kind in (
        ScalarKind.BOOL,
        ScalarKind.INT32,
        ScalarKind.INT64,
    )
    if not (packable and wire == _BYTES):
        yield _single(type_, wire, value, depth)
        return
    data, position = _as_bytes(value), 0
    while position < len(data):
        number, position = _varint(data, position)
        yield _single(type_, _VARINT, number, depth)


def _entry(type_: MapOf, data: bytes, depth: int) -> tuple[str, Json]:
    key, item = "", _single(type_.value, _BYTES, b"", depth, is_missing=True)
    for number, wire, value in _records(data):
        if number == 1:
            key = _as_text(value)
        elif number == 2:
            item = _single(type_.value, wire, value, depth)
    return key, item


def _single(
    type_: Type, wire: int, value: int | bytes, depth: int, *, is_missing: bool = False
) -> Json:
    """One value. In a map a list is wrapped into a message, because maps cannot hold repeated fields."""
    if isinstance(type_, Message):
        return _message(type_, _as_bytes(value), depth)
    if isinstance(type_, ListOf):
        wrapped = (v for n, _, v in _records(_as_bytes(value)) if n == 1)
        return [_single(type_.item, _BYTES, item, depth) for item in wrapped]
    if isinstance(type_, MapOf):
        raise MalformedError(f"proto: a map cannot hold {type_.native}")
    if is_missing and type_.kind in (ScalarKind.INT32, ScalarKind.INT64, ScalarKind.BOOL):
        value, wire = 0, _VARINT
    return _scalar(type_.kind, wire, value, depth)


def _scalar(kind: ScalarKind, wire: int, value: int | bytes, depth: int) -> Json:
    match kind:
        case ScalarKind.STRING:
            return _as_text(value)
        case ScalarKind.BOOL:
            return bool(_as_int(value))
        case ScalarKind.INT32 | ScalarKind.INT64:
            return _signed(_as_int(value), 32 if kind is ScalarKind.INT32 else 64)
        case ScalarKind.DOUBLE:
            return _double(wire, value)
        case ScalarKind.BYTES:
            return base64.b64encode(_as_bytes(value)).decode()
        case ScalarKind.QUANTITY:
            return _quantity(_as_bytes(value))
        case ScalarKind.INT_OR_STRING:
            return _int_or_string(_as_bytes(value))
        case ScalarKind.TIME | ScalarKind.MICRO_TIME:
            return _time(_as_bytes(value), micro=kind is ScalarKind.MICRO_TIME)
        case ScalarKind.RAW_EXTENSION | ScalarKind.JSON | ScalarKind.FIELDS_V1:
            return _embedded_json(_as_bytes(value))
    return _schema(kind, _as_bytes(value), depth)


def _double(wire: int, value: int | bytes) -> float:
    if wire != _FIXED64:
        raise MalformedError(f"proto: wrong wireType = {wire} for a double")
    number: float = struct.unpack("<d", _as_bytes(value))[0]
    return int(number) if number.is_integer() else number


def _quantity(data: bytes) -> str:
    text = next((_as_text(v) for n, _, v in _records(data) if n == 1), "") or "0"
    try:
        return str(Quantity.parse(text))
    except QuantityError as error:
        raise MalformedError(str(error)) from error


def _int_or_string(data: bytes) -> int | str:
    parts = {number: value for number, _, value in _records(data)}
    if parts.get(1, 0) == 1:
        return _as_text(parts.get(3, b""))
    return _signed(_as_int(parts.get(2, 0)), 32)


def _time(data: bytes, *, micro: bool) -> str | None:
    """A point in time; None for the empty message, which stands for none."""
    if not data:
        return None
    parts = {number: _as_int(value) for number, _, value in _records(data)}
    try:
        text = time_from_unix(
            _signed(parts.get(1, 0), 64), _signed(parts.get(2, 0), 32), micro=micro
        )
    except TimeTextError as error:
        raise MalformedError(str(error)) from error
    return None if text.startswith(ZERO[:-1]) else text


def _embedded_json(data: bytes) -> Json:
    raw = next((_as_bytes(v) for n, _, v in _records(data) if n == 1), b"")
    if not raw:
        return None
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedError(f"an embedded object is not JSON: {error}") from error
    if depth_exceeds(value, MAX_DEPTH):
        raise MalformedError(f"an embedded object is not JSON: {TOO_DEEP}")
    return value


def _schema(kind: ScalarKind, data: bytes, depth: int) -> Json:
    """The places of a JSON schema that take a schema or something else: field 1 or 2 says which."""
    message = message_named(JSON_SCHEMA)
    several: list[Json] = []
    single: Json = None
    for number, _, value in _records(data):
        if kind is ScalarKind.SCHEMA_OR_BOOL:
            single = _message(message, _as_bytes(value), depth) if number == 2 else bool(value)
        elif number == 1:
            single = _message(message, _as_bytes(value), depth)
        elif kind is ScalarKind.SCHEMA_OR_ARRAY:
            several.append(_message(message, _as_bytes(value), depth))
        else:
            several.append(_as_text(value))
    return several or single


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _as_int(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise MalformedError("proto: wrong wireType = 2 for an integer")
    return value


def _as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise MalformedError("proto: wrong wireType = 0 for a message or text")
    return value


def _as_text(value: int | bytes) -> str:
    return _as_bytes(value).decode(errors="replace")
