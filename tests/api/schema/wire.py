"""An encoder of protobuf bodies, as clients would write them: every field that is no pointer, also when it is zero."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

import msgspec

from drayman.api.schema import ListOf, MapOf, Message, Scalar, ScalarKind, Type


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def number_record(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def bytes_record(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    names = bytes_record(1, api_version.encode()) + bytes_record(2, kind.encode())
    return (
        b"k8s\x00"
        + bytes_record(1, names)
        + bytes_record(2, raw)
        + bytes_record(3, b"")
        + bytes_record(4, b"")
    )


def encode(message: Message, value: dict[str, Any]) -> bytes:
    out = b""
    for number, source in message.inlined.items():
        out += bytes_record(
            number, encode(source, {k: v for k, v in value.items() if k in source.fields})
        )
    for number, field in message.by_number.items():
        item = value.get(field.name)
        if isinstance(field.type, ListOf):
            out += b"".join(_record(number, field.type.item, each) for each in item or ())
        elif isinstance(field.type, MapOf):
            for key, each in (item or {}).items():
                out += bytes_record(
                    number, bytes_record(1, key.encode()) + _record(2, field.type.value, each)
                )
        elif item is not None or not field.pointer:
            out += _record(number, field.type, item)
    return out


def _record(number: int, type_: Type, value: Any) -> bytes:
    if isinstance(type_, Message):
        return bytes_record(number, encode(type_, value or {}))
    if isinstance(type_, ListOf):
        return bytes_record(number, b"".join(_record(1, type_.item, each) for each in value))
    assert isinstance(type_, Scalar)
    return _scalar(number, type_.kind, value)


def _scalar(number: int, kind: ScalarKind, value: Any) -> bytes:
    match kind:
        case ScalarKind.STRING:
            return bytes_record(number, (value or "").encode())
        case ScalarKind.BOOL | ScalarKind.INT32 | ScalarKind.INT64:
            return number_record(number, int(value or 0))
        case ScalarKind.BYTES:
            return bytes_record(number, base64.b64decode(value or ""))
        case ScalarKind.QUANTITY:
            return bytes_record(number, bytes_record(1, (value or "").encode()))
        case ScalarKind.INT_OR_STRING:
            is_text = isinstance(value, str)
            numeric = number_record(2, 0 if is_text else value or 0)
            text = bytes_record(3, value.encode() if is_text else b"")
            return bytes_record(number, number_record(1, int(is_text)) + numeric + text)
        case ScalarKind.TIME | ScalarKind.MICRO_TIME:
            return bytes_record(number, _time(value) if value else b"")
    return bytes_record(
        number, bytes_record(1, msgspec.json.encode(value)) if value is not None else b""
    )


def _time(text: str) -> bytes:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return number_record(1, int(moment.timestamp())) + number_record(2, moment.microsecond * 1000)
