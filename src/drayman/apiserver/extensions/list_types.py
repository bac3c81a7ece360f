"""Sets and maps written as lists: no item or key may occur twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from drayman.api.struct import Json
from drayman.api.validation.field_errors import FieldError, duplicate, invalid
from drayman.apiserver.extensions.findings import entry
from drayman.apiserver.extensions.schemas import LIST_KEYS, LIST_TYPE, Schema, children
from drayman.apiserver.served.encoding import encode


def list_type_errors(value: Json, schema: Schema, path: str = "") -> Iterator[FieldError]:
    """The errors for items or keys that occur twice in a value."""
    if isinstance(value, list):
        yield from _list_errors(value, schema, path)
    for inner, inner_schema, where in children(value, schema, path):
        yield from list_type_errors(inner, inner_schema, where)


def _list_errors(value: Sequence[Json], schema: Schema, path: str) -> Iterator[FieldError]:
    match schema.get(LIST_TYPE):
        case "set":
            for position in _repeated(value):
                yield duplicate(entry(path, position), value[position])
        case "map":
            yield from _map_errors(value, schema, path)


def _map_errors(value: Sequence[Json], schema: Schema, path: str) -> Iterator[FieldError]:
    for position, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            yield invalid(
                entry(path, position), item, "must be an object for an array of list-type map"
            )
            return
    names = schema.get(LIST_KEYS) or []
    keys = [map_key(item or {}, names) for item in value]
    for position in _repeated(keys):
        yield duplicate(entry(path, position), keys[position])


def map_key(item: Mapping[str, Json], names: Sequence[str]) -> dict[str, Json]:
    """The members of an item that are its key in a map written as a list."""
    return {name: item[name] for name in names if name in item}


def _repeated(values: Sequence[Json]) -> Iterator[int]:
    """The positions of values that occur for the second time; further ones are not reported."""
    times: dict[bytes, int] = {}
    for position, value in enumerate(values):
        text = encode(value)
        times[text] = times.get(text, 0) + 1
        if times[text] == 2:
            yield position
