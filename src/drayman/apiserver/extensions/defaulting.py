"""Filling in defaults. Null counts as absent unless the schema allows it as a value."""

from __future__ import annotations

from copy import deepcopy

from drayman.api.struct import Json
from drayman.apiserver.extensions.schemas import Schema, additional, items, member, properties


def set_defaults(value: Json, schema: Schema) -> None:
    """Give a value the defaults of its schema, in place, and remove nulls that are not allowed as values."""
    _drop_nulls(value, schema)
    _set(value, schema)


def _is_unset(value: Json, schema: Schema | None) -> bool:
    return value is None and schema is not None and not schema.get("nullable")


def _drop_nulls(value: Json, schema: Schema | None) -> None:
    if isinstance(value, dict):
        for name in list(value):
            inner = member(schema, name)
            if _is_unset(value[name], inner) and (inner or {}).get("default") is None:
                del value[name]
            else:
                _drop_nulls(value[name], inner)
    elif isinstance(value, list):
        inner = items(schema) if schema is not None else None
        for item in value:
            _drop_nulls(item, inner)


def _set(value: Json, schema: Schema | None) -> None:
    if schema is None:
        return
    if isinstance(value, dict):
        _set_members(value, schema)
    elif isinstance(value, list):
        inner = items(schema)
        for position, item in enumerate(value):
            if _is_unset(item, inner):
                value[position] = deepcopy((inner or {}).get("default"))
            _set(value[position], inner)


def _set_members(value: dict[str, Json], schema: Schema) -> None:
    declared, others = properties(schema), additional(schema)
    for name, inner in declared.items():
        default = inner.get("default")
        if default is not None and (name not in value or _is_unset(value[name], inner)):
            value[name] = deepcopy(default)
    for name, inner_value in value.items():
        if name in declared:
            _set(inner_value, declared[name])
        elif others is not None:
            if _is_unset(inner_value, others):
                value[name] = inner_value = deepcopy(others.get("default"))
            _set(inner_value, others)
