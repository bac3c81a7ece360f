"""Structural schemas: the type of each value is stated in one place, and alternatives only narrow it down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from drayman.api.struct import Json
from drayman.api.validation.field_errors import FieldError, forbidden, invalid, required
from drayman.apiserver.extensions.schemas import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVES,
    RULES,
    Schema,
    additional,
    items,
    properties,
)
from drayman.cel.errors import EvaluationError
from drayman.cel.regex import compile_pattern

Level = Literal["root", "item", "field"]

_NO_TYPE: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_INT_OR_STRING_TYPES: Final = [{"type": "integer"}, {"type": "string"}]
_ONLY_OUTSIDE: Final = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (PRESERVES, "must be false to be structural"),
    (EMBEDDED, "must be false to be structural"),
    (INT_OR_STRING, "must be false to be structural"),
    (LIST_KEYS, "must be empty to be structural"),
    (LIST_TYPE, "must be undefined to be structural"),
    (MAP_TYPE, "must be undefined to be structural"),
    (RULES, "must be empty to be structural"),
)
"""What an alternative must not say, since the schema around it does."""
_METADATA_MEMBERS: Final = {"name", "generateName"}


def structural_errors(schema: Schema, path: str) -> list[FieldError]:
    """Why a schema is not structural."""
    found = [*_invariants(schema, "root", path), *_completeness(schema, path)]
    return sorted(found, key=str)


def _invariants(schema: Schema, level: Level, path: str) -> Iterator[FieldError]:
    type_name, inner = schema.get("type") or "", items(schema)
    if type_name == "array" and inner is None:
        yield required(f"{path}.items", "must be specified")
    if inner is not None:
        yield from _invariants(inner, "item", f"{path}.items")
    for name, declared in properties(schema).items():
        yield from _invariants(declared, "field", f"{path}.properties[{name}]")
    others = additional(schema)
    if schema.get("additionalProperties") is not None and level == "root":
        yield forbidden(f"{path}.additionalProperties", "must not be used at the root")
    if others is not None:
        yield from _invariants(others, "field", f"{path}.additionalProperties")
    yield from _extension_errors(schema, path)
    yield from _alternatives(schema, path)
    yield from _type_errors(schema, type_name, level, path)
    yield from _metadata_errors(schema, level, path)


def _extension_errors(schema: Schema, path: str) -> Iterator[FieldError]:
    if not schema.get(INT_OR_STRING):
        return
    for name in (PRESERVES, EMBEDDED):
        if schema.get(name):
            text = "must be false if x-kubernetes-int-or-string is true"
            yield invalid(f"{path}.{name}", True, text)


def _type_errors(schema: Schema, type_name: str, level: Level, path: str) -> Iterator[FieldError]:
    if schema.get(EMBEDDED):
        if type_name != "object":
            text = "must be object if x-kubernetes-embedded-resource is true"
            yield (
                invalid(f"{path}.type", type_name, text)
                if type_name
                else required(f"{path}.type", text)
            )
        if schema.get("additionalProperties") is not None:
            text = "must not be used if x-kubernetes-embedded-resource is set"
            yield forbidden(f"{path}.additionalProperties", text)
        if not schema.get(PRESERVES) and not properties(schema):
            text = (
                "must not be empty if x-kubernetes-embedded-resource is true without"
                " x-kubernetes-preserve-unknown-fields"
            )
            yield required(f"{path}.properties", text)
    elif not type_name and not schema.get(INT_OR_STRING) and not schema.get(PRESERVES):
        yield required(f"{path}.type", _NO_TYPE[level])
    if level == "root" and type_name not in ("", "object"):
        yield invalid(f"{path}.type", type_name, "must be object at the root")


def _metadata_errors(schema: Schema, level: Level, path: str) -> Iterator[FieldError]:
    is_resource = level == "root" or bool(schema.get(EMBEDDED))
    declared = properties(schema)
    for name in ("kind", "apiVersion"):
        found = declared.get(name)
        if is_resource and found is not None and found.get("type") != "string":
            where = f"{path}.properties[{name}].type"
            yield invalid(where, found.get("type") or "", "must be string")
    metadata = declared.get("metadata")
    if metadata is None or not is_resource:
        return
    where = f"{path}.properties[metadata]"
    if metadata.get("type") != "object":
        yield invalid(f"{where}.type", metadata.get("type") or "", "must be object")
    if level == "root" and not _restricts_only_names(metadata):
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(where, text)


def _restricts_only_names(metadata: Schema) -> bool:
    """The schema of metadata is fixed; a definition may only restrict names."""
    if any(
        metadata.get(name) for name in metadata if name not in ("type", "properties", "default")
    ):
        return False
    return set(properties(metadata)) <= _METADATA_MEMBERS


def _alternatives(schema: Schema, path: str) -> Iterator[FieldError]:
    """The alternatives of a schema, which may repeat that a value is an integer or a string."""
    any_of, all_of = schema.get("anyOf") or [], schema.get("allOf") or []
    if any_of != _INT_OR_STRING_TYPES:
        for position, part in enumerate(any_of):
            yield from _narrowing(part, f"{path}.anyOf[{position}]")
    for position, part in enumerate(all_of):
        is_type = position == 0 and part.get("anyOf") == _INT_OR_STRING_TYPES
        shown = {**part, "anyOf": []} if is_type else part
        yield from _narrowing(shown, f"{path}.allOf[{position}]")
    for position, part in enumerate(schema.get("oneOf") or []):
        yield from _narrowing(part, f"{path}.oneOf[{position}]")
    if schema.get("not") is not None:
        yield from _narrowing(schema["not"], f"{path}.not")
    pattern = schema.get("pattern")
    if pattern:
        yield from _pattern_errors(pattern, path)


def _pattern_errors(pattern: str, path: str) -> Iterator[FieldError]:
    try:
        compile_pattern(pattern)
    except EvaluationError as error:
        text = f"must be a valid regular expression, but isn't: {error}"
        yield invalid(f"{path}.pattern", pattern, text)


def _narrowing(schema: Schema, path: str) -> Iterator[FieldError]:
    """An alternative must say nothing about types."""
    yield from _alternatives(schema, path)
    inner = items(schema)
    if inner is not None:
        yield from _narrowing(inner, f"{path}.items")
    for name, declared in properties(schema).items():
        yield from _narrowing(declared, f"{path}.properties[{name}]")
    for name, text in _ONLY_OUTSIDE:
        if schema.get(name) not in (None, "", False, []):
            yield forbidden(f"{path}.{name}", text)
    if "metadata" in properties(schema):
        yield forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


def _completeness(schema: Schema, path: str) -> Iterator[FieldError]:
    """Whatever an alternative mentions must be declared outside it."""
    for inner in _parts(schema, path):
        where, part = inner
        yield from _covered(part, schema, where, path)
    sub = items(schema)
    if sub is not None:
        yield from _completeness(sub, f"{path}.items")
    for name, declared in properties(schema).items():
        yield from _completeness(declared, f"{path}.properties[{name}]")
    others = additional(schema)
    if others is not None:
        yield from _completeness(others, f"{path}.additionalProperties")


def _parts(schema: Schema, path: str) -> Iterator[tuple[str, Schema]]:
    for name in ("anyOf", "allOf", "oneOf"):
        for position, part in enumerate(schema.get(name) or []):
            yield f"{path}.{name}[{position}]", part
    if schema.get("not") is not None:
        yield f"{path}.not", schema["not"]


def _covered(part: Schema, outer: Schema | None, where: str, path: str) -> Iterator[FieldError]:
    """A part of an alternative against the schema outside, which lies at `path`."""
    for inner_where, inner in _parts(part, where):
        yield from _covered(inner, outer, inner_where, path)
    if outer is None:
        return
    sub = items(part)
    if sub is not None:
        if items(outer) is None:
            yield required(f"{path}.items", f"because it is defined in {where}.items")
        else:
            yield from _covered(sub, items(outer), f"{where}.items", f"{path}.items")
    declared, others = properties(outer), additional(outer)
    for name, inner in properties(part).items():
        inner_where = f"{where}.properties[{name}]"
        found: Json = declared.get(name)
        if found is not None:
            yield from _covered(inner, found, inner_where, f"{path}.properties[{name}]")
        elif others is None:
            yield required(f"{path}.properties[{name}]", f"because it is defined in {inner_where}")
