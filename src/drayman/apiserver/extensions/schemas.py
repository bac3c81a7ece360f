"""Reading OpenAPI schemas: the parts of one that the walks over values and over schemas need."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from drayman.api.struct import Json
from drayman.apiserver.extensions.findings import child, entry

Schema = Mapping[str, Json]

META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})
EMPTY: Final[Schema] = {}
PRESERVES: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
INT_OR_STRING: Final = "x-kubernetes-int-or-string"
LIST_TYPE: Final = "x-kubernetes-list-type"
LIST_KEYS: Final = "x-kubernetes-list-map-keys"
MAP_TYPE: Final = "x-kubernetes-map-type"
RULES: Final = "x-kubernetes-validations"


def properties(schema: Schema) -> Mapping[str, Schema]:
    found: Mapping[str, Schema] = schema.get("properties") or {}
    return found


def items(schema: Schema) -> Schema | None:
    """The schema of the items of a list; a list of schemas is not supported and counts as none."""
    found = schema.get("items")
    return found if isinstance(found, dict) else None


def additional(schema: Schema) -> Schema | None:
    """The schema of members that are not declared; None if there is none, even if they are allowed."""
    found = schema.get("additionalProperties")
    return found if isinstance(found, dict) else None


def allows_additional(schema: Schema) -> bool:
    """Whether undeclared members are allowed."""
    found = schema.get("additionalProperties")
    return isinstance(found, dict) or found is True


def member(schema: Schema | None, name: str) -> Schema | None:
    """The schema of a member, None where it has none."""
    if schema is None:
        return None
    found = properties(schema).get(name)
    return additional(schema) if found is None else found


def children(value: Json, schema: Schema, path: str) -> Iterator[tuple[Json, Schema, str]]:
    """The values directly inside a value that its schema describes, each with its own schema and path."""
    if isinstance(value, dict):
        declared, others = properties(schema), additional(schema)
        for name, inner in value.items():
            if name in declared:
                yield inner, declared[name], child(path, name)
            elif others is not None:
                yield inner, others, entry(path, name)
    elif isinstance(value, list) and (item_schema := items(schema)) is not None:
        for position, item in enumerate(value):
            yield item, item_schema, entry(path, position)


def as_resource(schema: Schema) -> Schema:
    """The schema of the root, which is a resource though it does not say so."""
    return {**schema, EMBEDDED: True}


def nested(schema: Schema) -> Iterator[Schema]:
    """The schemas directly inside a schema."""
    for name in ("items", "not", "additionalProperties", "additionalItems"):
        found = schema.get(name)
        if isinstance(found, dict):
            yield found
        elif isinstance(found, list):
            yield from found
    for name in ("allOf", "anyOf", "oneOf"):
        yield from schema.get(name) or ()
    for name in ("properties", "patternProperties", "definitions", "dependencies"):
        yield from (found for found in (schema.get(name) or {}).values() if isinstance(found, dict))


def any_schema(schema: Schema, test: Callable[[Schema], bool]) -> bool:
    """Whether a schema or one inside it passes a test."""
    return test(schema) or any(any_schema(inner, test) for inner in nested(schema))


def every_schema(schema: Schema) -> Iterator[Schema]:
    """A schema and all inside it."""
    yield schema
    for inner in nested(schema):
        yield from every_schema(inner)
