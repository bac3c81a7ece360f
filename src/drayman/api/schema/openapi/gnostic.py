"""The document of OpenAPI 2 in protobuf, the only form in which kubectl asks for it.

What is written is what the documents here contain. Values without a fixed type (defaults, extensions) travel as YAML text, for
which JSON serves. The numbers are those of the published definition of the format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from drayman.api.schema.openapi.schemas import Schema
from drayman.api.struct import Json

Encoder = Callable[[Json], bytes]

MEDIA_TYPE: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
"""What clients ask for. The answer is labelled with a dot in place of the @."""

_METHODS: Final = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_SCHEMA_TEXTS: Final = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_SCHEMA_INTEGERS: Final = {
    "maxLength": 11, "minLength": 12, "maxItems": 14, "minItems": 15,
    "maxProperties": 17, "minProperties": 18,
}  # fmt: skip
_OPERATION_EXTENSIONS: Final = 13
_SCHEMA_EXTENSIONS: Final = 31


def encode_gnostic(document: Mapping[str, Json]) -> bytes:
    """A document of version 2 in protobuf."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    paths = _named(2, document["paths"], _path_item)
    definitions = _named(1, document["definitions"], _schema)
    return b"".join(
        (
            _text(1, document["swagger"]),
            _message(2, info),
            _message(8, paths),
            _message(9, definitions),
        )
    )


def _path_item(item: Mapping[str, Json]) -> bytes:
    operations = (_message(_METHODS[m], _operation(item[m])) for m in _METHODS if m in item)
    return b"".join(operations) + _parameters(9, item.get("parameters", ()))


def _operation(operation: Mapping[str, Json]) -> bytes:
    responses = _named(1, operation["responses"], _response)
    return b"".join(
        (
            *(_text(1, tag) for tag in operation.get("tags", ())),
            _text(3, operation.get("description", "")),
            _text(5, operation.get("operationId", "")),
            *(_text(6, each) for each in operation.get("produces", ())),
            *(_text(7, each) for each in operation.get("consumes", ())),
            _parameters(8, operation.get("parameters", ())),
            _message(9, responses),
            _extensions(_OPERATION_EXTENSIONS, operation),
        )
    )


def _parameters(number: int, parameters: Iterable[Mapping[str, Json]]) -> bytes:
    return b"".join(_message(number, _message(1, _parameter(each))) for each in parameters)


def _parameter(parameter: Mapping[str, Json]) -> bytes:
    place, required = parameter["in"], parameter.get("required", False)
    if place == "body":
        body = _text(2, parameter["name"]) + _text(3, place) + _flag(4, required)
        return _message(1, body + _message(5, _schema(parameter["schema"])))
    shared = _flag(1, required) + _text(2, place) + _text(4, parameter["name"])
    if place == "path":
        return _message(2, _message(4, shared + _text(5, parameter["type"])))
    return _message(2, _message(3, shared + _text(6, parameter["type"])))


def _response(response: Mapping[str, Json]) -> bytes:
    content = _text(1, response["description"])
    if "schema" in response:
        content += _message(2, _message(1, _schema(response["schema"])))
    return _message(1, content)


def _schema(schema: Schema) -> bytes:
    parts = [_text(number, schema.get(name, "")) for name, number in _SCHEMA_TEXTS.items()]
    if "default" in schema:
        parts.append(_message(5, _any(schema["default"])))
    for name, number in _SCHEMA_INTEGERS.items():
        if name in schema:
            parts.append(_integer(number, schema[name]))
    parts.extend(_text(19, name) for name in schema.get("required", ()))
    parts.extend(_message(20, _any(value)) for value in schema.get("enum", ()))
    further = schema.get("additionalProperties")
    if isinstance(further, dict):
        parts.append(_message(21, _message(1, _schema(further))))
    elif further is not None:
        parts.append(_message(21, _integer(2, int(further))))
    if "type" in schema:
        parts.append(_message(22, _text(1, schema["type"])))
    if isinstance(schema.get("items"), dict):
        parts.append(_message(23, _message(1, _schema(schema["items"]))))
    if "properties" in schema:
        parts.append(_message(25, _named(1, schema["properties"], _schema)))
    parts.append(_extensions(_SCHEMA_EXTENSIONS, schema))
    return b"".join(parts)


def _extensions(number: int, holder: Mapping[str, Json]) -> bytes:
    found = {name: value for name, value in holder.items() if name.startswith("x-")}
    return _named(number, found, _any)


def _any(value: Json) -> bytes:
    return _text(2, msgspec.json.encode(value).decode())


def _named(number: int, values: Mapping[str, Json], encode: Encoder) -> bytes:
    return b"".join(
        _message(number, _text(1, name) + _message(2, encode(value)))
        for name, value in values.items()
    )


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _flag(number: int, value: bool) -> bytes:
    return _integer(number, 1) if value else b""


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _text(number: int, text: str) -> bytes:
    return _message(number, text.encode()) if text else b""
