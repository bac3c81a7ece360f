"""Removal of what the schema of an object does not declare."""

from __future__ import annotations

from drayman.api.struct import Json
from drayman.apiserver.extensions.findings import child, entry
from drayman.apiserver.extensions.schemas import (
    EMBEDDED,
    META_FIELDS,
    PRESERVES,
    Schema,
    additional,
    allows_additional,
    as_resource,
    items,
    properties,
)


def prune(value: Json, schema: Schema, *, is_root: bool = False) -> list[str]:
    """Remove undeclared members from a value, in place. Returns their paths, sorted."""
    unknown: list[str] = []
    _prune(value, as_resource(schema) if is_root else schema, "", unknown)
    return sorted(unknown)


def _prune(value: Json, schema: Schema | None, path: str, unknown: list[str]) -> None:
    if schema is not None and schema.get(PRESERVES):
        _keep(value, schema, path, unknown)
    elif isinstance(value, dict):
        for name in list(value):
            _prune_member(value, name, schema, path, unknown)
    elif isinstance(value, list):
        inner = items(schema) if schema is not None else None
        for position, item in enumerate(value):
            _prune(item, inner, entry(path, position), unknown)


def _prune_member(
    value: dict[str, Json], name: str, schema: Schema | None, path: str, unknown: list[str]
) -> None:
    if schema is not None:
        if schema.get(EMBEDDED) and name in META_FIELDS:
            return
        declared = properties(schema).get(name)
        if declared is not None or allows_additional(schema):
            inner = additional(schema) if declared is None else declared
            _prune(value[name], inner, child(path, name), unknown)
            return
    if schema is None or name not in META_FIELDS or path:
        unknown.append(child(path, name))
    del value[name]


def _keep(value: Json, schema: Schema, path: str, unknown: list[str]) -> None:
    """Everything stays here, but what is declared further down is pruned again."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if schema.get(EMBEDDED) and name in META_FIELDS:
                continue
            declared = properties(schema).get(name)
            if declared is not None:
                _prune(inner, declared, child(path, name), unknown)
            elif allows_additional(schema):
                _prune(inner, additional(schema), child(path, name), unknown)
    elif isinstance(value, list):
        inner_schema = items(schema)
        if inner_schema is not None:
            for position, item in enumerate(value):
                _keep(item, inner_schema, entry(path, position), unknown)
