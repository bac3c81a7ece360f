"""What a value of a schema is to a rule: its static type in CEL, how large its parts can get, and the value itself."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.extensions.identifiers import identifier, plain_keyword
from drayman.apiserver.extensions.schemas import (
    EMBEDDED,
    INT_OR_STRING,
    Schema,
    additional,
    items,
    properties,
)
from drayman.cel import types
from drayman.cel.costs import SizeEstimate
from drayman.cel.times import Duration, Timestamp
from drayman.cel.types import Type
from drayman.cel.values import MISSING, MapValue

MAX_REQUEST: Final = 3 * 1024 * 1024
"""Bytes of the largest request, which bounds everything without its own limit."""
_NAME_LENGTH: Final = 253
_BYTES_PER_CHARACTER: Final = 4
_DATE_SIZE, _MIN_TIME_SIZE, _MIN_DURATION_SIZE, _MAX_TIME_SIZE = 12, 21, 3, 32
_STRING: Final[Schema] = {"type": "string"}


@dataclass(frozen=True, slots=True)
class RuleType:
    """A type, the maximum number of elements in a value, and the minimum number of bytes it takes in a request."""

    type: Type
    max_elements: int = 0
    min_size: int = 1
    fields: Mapping[str, RuleType] = field(default_factory=dict)
    element: RuleType | None = None
    key: RuleType | None = None

    def size(self, path: tuple[str, ...]) -> SizeEstimate | None:
        """The size of the value at a path whose first part is a variable."""
        found: RuleType | None = self
        for step in path[1:]:
            assert found is not None
            match step:
                case "@items" | "@values":
                    found = found.element
                case "@keys":
                    found = found.key
                case _:
                    found = found.fields.get(step)
            if found is None:
                return None
        return SizeEstimate(0, found.max_elements) if found is not None else None

    def declared_fields(self) -> dict[str, Mapping[str, Type]]:
        """The fields of every object type in this one, by the name of the type, under every name that a rule may write."""
        found: dict[str, Mapping[str, Type]] = {}
        if self.type.kind is types.TypeKind.OBJECT:
            keywords = {plain_keyword(name): inner.type for name, inner in self.fields.items()}
            found[self.type.name] = {
                **{word: type_ for word, type_ in keywords.items() if word is not None},
                **{name: inner.type for name, inner in self.fields.items()},
            }
        for inner in (*self.fields.values(), *((self.element,) if self.element else ())):
            found.update(inner.declared_fields())
        return found


def rule_type(
    schema: Schema, *, is_resource: bool = False, name: str = "selfType"
) -> RuleType | None:
    """The type of values of a schema; None for values that rules cannot use."""
    if schema.get(INT_OR_STRING):
        length = schema.get("maxLength")
        most = MAX_REQUEST - 2 if length is None else max(length, 0) * _BYTES_PER_CHARACTER
        return RuleType(types.DYN, most)
    if is_resource:
        schema = with_metadata(schema)
    match schema.get("type"):
        case "array":
            return _list_type(schema, name)
        case "object":
            return _map_type(schema, name) if additional(schema) else _object_type(schema, name)
        case "string":
            return _string_type(schema)
        case "boolean":
            return RuleType(types.BOOL, min_size=4)
        case "number":
            return RuleType(types.DOUBLE)
        case "integer":
            return RuleType(types.INT)
    return None


def with_metadata(schema: Schema) -> Schema:
    """The schema of a resource as rules see it: kind, apiVersion and only the names of the metadata."""
    declared = properties(properties(schema).get("metadata") or {})
    metadata = {
        "type": "object",
        "properties": {
            "name": _capped(declared.get("name"), _NAME_LENGTH),
            "generateName": _capped(declared.get("generateName"), _NAME_LENGTH - 1),
        },
    }
    members = {"kind": _STRING, "apiVersion": _STRING, "metadata": metadata}
    return {**schema, "properties": {**properties(schema), **members}}


def _capped(declared: Schema | None, limit: int) -> Schema:
    length = (declared or {}).get("maxLength")
    return {"type": "string", "maxLength": limit if length is None else min(length, limit)}


def _list_type(schema: Schema, name: str) -> RuleType | None:
    inner = items(schema)
    element = _inner_type(inner, f"{name}.@idx") if inner is not None else None
    if element is None:
        return None
    most = schema.get("maxItems")
    count = (MAX_REQUEST - 2) // (element.min_size + 1) if most is None else max(most, 0)
    return RuleType(types.list_of(element.type), count, 2, element=element)


def _map_type(schema: Schema, name: str) -> RuleType | None:
    inner = additional(schema)
    assert inner is not None
    element = _inner_type(inner, f"{name}.@elem")
    if element is None:
        return None
    most = schema.get("maxProperties")
    count = (MAX_REQUEST - 2) // (element.min_size + 6) if most is None else max(most, 0)
    key = RuleType(types.STRING, 0, 2)
    return RuleType(types.map_of(types.STRING, element.type), count, 2, element=element, key=key)


def _object_type(schema: Schema, name: str) -> RuleType:
    fields: dict[str, RuleType] = {}
    needed, size = set(schema.get("required") or ()), 2
    for field_name, inner in properties(schema).items():
        written = identifier(field_name)
        found = _inner_type(inner, f"{name}.{written}")
        if found is None:
            continue
        if written is not None:
            fields[written] = found
        if field_name in needed and inner.get("default") is None:
            size += len(field_name) + found.min_size + 4
    return RuleType(types.object_type(name), 0, size, fields)


def _inner_type(schema: Schema, name: str) -> RuleType | None:
    return rule_type(schema, is_resource=bool(schema.get(EMBEDDED)), name=name)


def _string_type(schema: Schema) -> RuleType:
    length, choices = schema.get("maxLength"), schema.get("enum")
    match schema.get("format"):
        case "byte":
            return RuleType(types.BYTES, MAX_REQUEST - 2 if length is None else max(length, 0), 2)
        case "duration":
            return RuleType(types.DURATION, _MAX_TIME_SIZE, _MIN_DURATION_SIZE)
        case "date":
            return RuleType(types.TIMESTAMP, _DATE_SIZE, _DATE_SIZE)
        case "date-time":
            return RuleType(types.TIMESTAMP, _MAX_TIME_SIZE, _MIN_TIME_SIZE)
    if length is not None:
        most = max(length, 0) * _BYTES_PER_CHARACTER
    elif choices:
        most = max((len(c.encode()) for c in choices if isinstance(c, str)), default=0)
    else:
        most = MAX_REQUEST - 2
    return RuleType(types.STRING, most, 2)


class ObjectValue(MapValue):
    """An object with declared fields, by the names that rules write. A reserved word also finds the field of that name."""

    __slots__ = ()

    def find(self, key: object) -> object:
        value = super().find(key)
        if value is not MISSING or not isinstance(key, str):
            return value
        written = identifier(key)
        if written is None or plain_keyword(written) is None:
            return MISSING
        return self.get(written, MISSING)

    def has(self, key: object) -> bool:
        return self.find(key) is not MISSING


def rule_value(value: Json, schema: Schema, *, is_resource: bool = False) -> object:
    """A value as rules see it."""
    if value is None or schema.get(INT_OR_STRING):
        return value
    if is_resource:
        schema = with_metadata(schema)
    match value:
        case dict():
            return _object_value(value, schema)
        case list():
            inner = items(schema)
            return [rule_value(item, inner or {}, is_resource=_embeds(inner)) for item in value]
        case str():
            return _string_value(value, schema.get("format") if schema.get("type") else None)
        case int() if schema.get("type") == "number" and not isinstance(value, bool):
            return float(value)
        case float() if schema.get("type") == "integer" and value.is_integer():
            return int(value)
    return value


def _embeds(schema: Schema | None) -> bool:
    return bool(schema is not None and schema.get(EMBEDDED))


def _object_value(value: dict[str, Json], schema: Schema) -> MapValue:
    others = additional(schema)
    if others is not None:
        return MapValue(
            (name, rule_value(inner, others, is_resource=_embeds(others)))
            for name, inner in value.items()
        )
    result = ObjectValue()
    for name, inner_schema in properties(schema).items():
        written = identifier(name)
        if name in value and written is not None:
            result[written] = rule_value(
                value[name], inner_schema, is_resource=_embeds(inner_schema)
            )
    return result


def _string_value(value: str, format_name: str | None) -> object:
    """Strings of some formats have their own types; one that does not match its format stays a string, which the schema refuses."""
    try:
        match format_name:
            case "byte":
                return base64.b64decode(value, validate=True)
            case "duration":
                return Duration.parse(value)
            case "date":
                return Timestamp.parse(f"{value}T00:00:00Z")
            case "date-time":
                return Timestamp.parse(value)
    except (ValueError, binascii.Error):
        return value
    return value
