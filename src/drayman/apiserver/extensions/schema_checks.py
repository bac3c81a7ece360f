"""The schemas of a definition: which keywords they may use, and how."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from drayman.api.validation.field_errors import (
    FieldError,
    forbidden,
    invalid,
    not_supported,
    required,
)
from drayman.apiserver.extensions.paths import FieldPathError, valid_field_path
from drayman.apiserver.extensions.schemas import (
    EMBEDDED,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    META_FIELDS,
    PRESERVES,
    RULES,
    Schema,
    additional,
    items,
    properties,
)

TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_REASONS: Final = (
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
)
_UNSUPPORTED: Final = (
    "id",
    "additionalItems",
    "patternProperties",
    "definitions",
    "dependencies",
    "$ref",
)
_LINE_BREAK: Final = re.compile(r"[\n\r]")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a schema is, as far as that changes what it may say."""

    path: str
    is_root: bool = False
    no_defaults: str | None = None
    in_metadata: bool = False

    def below(self, part: str) -> _Place:
        return replace(self, path=f"{self.path}.{part}", is_root=False)


def keyword_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    """The errors of the schema of a version."""
    yield from _schema_errors(schema, _Place(path, is_root=True))


def _schema_errors(schema: Schema, place: _Place) -> Iterator[FieldError]:
    yield from _own_errors(schema, place)
    yield from _member_errors(schema, place)
    for name in ("allOf", "oneOf", "anyOf"):
        for position, part in enumerate(schema.get(name) or []):
            yield from _schema_errors(part, place.below(f"{name}[{position}]"))
    if isinstance(schema.get("not"), dict):
        yield from _schema_errors(schema["not"], place.below("not"))
    inner = items(schema)
    if inner is not None:
        yield from _schema_errors(inner, place.below("items"))
    yield from _extension_errors(schema, place.path)
    yield from _list_errors(schema, place.path)
    for position, rule in enumerate(schema.get(RULES) or []):
        yield from _rule_errors(rule, schema, f"{place.path}.{RULES}[{position}]")


def _own_errors(schema: Schema, place: _Place) -> Iterator[FieldError]:
    path, type_name = place.path, schema.get("type") or ""
    if type_name and type_name not in TYPES:
        yield not_supported(f"{path}.type", type_name, TYPES)
    if schema.get("default") is not None and place.no_defaults is not None:
        yield forbidden(f"{path}.default", f"must not be set {place.no_defaults}")
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield forbidden(f"{path}.{name}", f"{name} is not supported")
    if type_name == "null":
        yield forbidden(
            f"{path}.type", "type cannot be set to null, use nullable as an alternative"
        )
    if isinstance(schema.get("items"), list):
        yield forbidden(f"{path}.items", "items must be a schema object and not an array")
    if place.in_metadata and schema.get(EMBEDDED):
        yield forbidden(f"{path}.{EMBEDDED}", "must not be used inside of resource meta")
    if schema.get("uniqueItems"):
        yield forbidden(
            f"{path}.uniqueItems",
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        )


def _member_errors(schema: Schema, place: _Place) -> Iterator[FieldError]:
    path, others = place.path, schema.get("additionalProperties")
    if others is not None:
        if properties(schema) and others is not True:
            text = "additionalProperties and properties are mutual exclusive"
            yield forbidden(f"{path}.additionalProperties", text)
        inner = additional(schema)
        if inner is not None:
            below = place.below("additionalProperties")
            if place.in_metadata:
                why = "inside additionalProperties applying to object metadata"
                below = replace(below, no_defaults=why)
            yield from _schema_errors(inner, below)
    for name, declared in properties(schema).items():
        below = place.below(f"properties[{name}]")
        if (place.is_root or schema.get(EMBEDDED)) and name in META_FIELDS:
            below = replace(below, in_metadata=True)
            if place.is_root:
                below = replace(below, no_defaults=f"in top-level {name}")
        yield from _schema_errors(declared, below)


def _extension_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    if schema.get(PRESERVES) is False:
        yield invalid(f"{path}.{PRESERVES}", False, "must be true or undefined")
    for name, type_name, choices in (
        (MAP_TYPE, "object", ("atomic", "granular")),
        (LIST_TYPE, "array", ("atomic", "set", "map")),
    ):
        value, found = schema.get(name), schema.get("type") or ""
        if value is None:
            continue
        if found != type_name:
            text = f"must be {type_name} if {name} is specified"
            where = f"{path}.type"
            yield invalid(where, found, text) if found else required(where, text)
        if value not in choices:
            yield not_supported(f"{path}.{name}", value, choices)


def _list_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    kind, keys, inner = schema.get(LIST_TYPE), schema.get(LIST_KEYS) or [], items(schema)
    if keys and kind != "map":
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        where = f"{path}.{LIST_TYPE}"
        yield invalid(where, kind, text) if kind else required(where, text)
    if kind == "set" and schema.get("type") == "array" and inner is not None:
        yield from _set_item_errors(inner, path)
    if kind == "map":
        if not keys:
            text = "must not be empty if x-kubernetes-list-type is map"
            yield required(f"{path}.{LIST_KEYS}", text)
        if schema.get("items") is None:
            text = "must have a schema if x-kubernetes-list-type is map"
            yield required(f"{path}.items", text)
        elif inner is not None and inner.get("type") != "object":
            text = "must be object if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{path}.items.type", inner.get("type") or "", text)
        elif inner is not None:
            yield from _map_key_errors(inner, keys, path)
    if kind in ("set", "map") and inner is not None and inner.get("nullable"):
        text = f"cannot be nullable when x-kubernetes-list-type is {kind}"
        yield forbidden(f"{path}.items.nullable", text)


def _set_item_errors(inner: Schema, path: str) -> Iterator[FieldError]:
    text = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if inner.get("type") == "array" and inner.get(LIST_TYPE) not in (None, "atomic"):
        yield invalid(f"{path}.items.{LIST_TYPE}", inner[LIST_TYPE], text)
    if inner.get("type") == "object" and inner.get(MAP_TYPE) != "atomic":
        yield invalid(f"{path}.items.{MAP_TYPE}", inner.get(LIST_TYPE), text)


def _map_key_errors(inner: Schema, keys: list[str], path: str) -> Iterator[FieldError]:
    declared, needed = properties(inner), set(inner.get("required") or ())
    why = "this property is in x-kubernetes-list-map-keys, so it"
    for position, name in enumerate(keys):
        if name in keys[:position]:
            yield invalid(f"{path}.{LIST_KEYS}", keys, "must not contain duplicate entries")
        found = declared.get(name)
        if found is None:
            text = "entries must all be names of item properties"
            yield invalid(f"{path}.{LIST_KEYS}", keys, text)
            continue
        where = f"{path}.items.properties[{name}]"
        if found.get("type") in ("array", "object"):
            text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield invalid(f"{where}.type", inner.get("type"), text)
        if name not in needed and found.get("default") is None:
            yield required(
                f"{where}.default", f"{why} must have a default or be a required property"
            )
        if found.get("nullable"):
            yield forbidden(f"{where}.nullable", f"{why} cannot be nullable")


def _rule_errors(rule: Schema, schema: Schema, path: str) -> Iterator[FieldError]:
    source, message = (rule.get("rule") or "").strip(), (rule.get("message") or "").strip()
    if not source:
        yield required(f"{path}.rule", "rule is not specified")
    elif rule.get("message") and not message:
        yield invalid(f"{path}.message", rule["message"], "must be non-empty if specified")
    elif _LINE_BREAK.search(message):
        yield invalid(f"{path}.message", rule["message"], "must not contain line breaks")
    elif _LINE_BREAK.search(source) and not message:
        text = "message must be specified if rule contains line breaks"
        yield required(f"{path}.message", text)
    expression = rule.get("messageExpression")
    if expression and not expression.strip():
        text = "messageExpression must be non-empty if specified"
        yield required(f"{path}.messageExpression", text)
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        yield not_supported(f"{path}.reason", reason, _REASONS)
    yield from _field_path_errors(rule.get("fieldPath") or "", schema, f"{path}.fieldPath")


def _field_path_errors(text: str, schema: Schema, path: str) -> Iterator[FieldError]:
    if not text:
        return
    if not text.strip():
        yield invalid(path, text, "must be non-empty if specified")
    if _LINE_BREAK.search(text):
        yield invalid(path, text, "must not contain line breaks")
    try:
        valid_field_path(text, schema)
    except FieldPathError:
        yield invalid(path, text, "must be a valid path")
