"""Lists and maps: `size`, `in`, `[]` and the insertion that `transformMap` expands to."""

from __future__ import annotations

from collections.abc import Sequence

from drayman.cel import types
from drayman.cel.costs import CallEstimate, actual_size
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Function, Library, Rule, member, static
from drayman.cel.types import BOOL, BYTES, INT, STRING, Type
from drayman.cel.values import (
    INT_MAX,
    LISTS,
    MISSING,
    MapValue,
    is_number,
    no_such_overload,
    same,
    slot,
    type_name,
)

_A, _B = types.parameter("A"), types.parameter("B")
_K, _V = types.parameter("K"), types.parameter("V")
_LIST, _MAP = types.list_of(_A), types.map_of(_A, _B)
_MAP_KV = types.map_of(_K, _V)
_INSERT = "cel.@mapInsert"


def contains(value: object, container: object) -> bool:
    """`value in container`. An element that cannot be compared with the value does not match."""
    if isinstance(container, MapValue):
        return container.has(value)
    if not isinstance(container, LISTS):
        raise no_such_overload()
    return any(same(value, element) for element in container)


def lookup(container: object, key: object) -> object:
    """`container[key]`, or `MISSING`. Raises EvaluationError for keys that make no sense."""
    check_key(key)
    if isinstance(container, MapValue):
        return container.find(key)
    if isinstance(container, LISTS):
        index = list_index(key)
        return container[index] if 0 <= index < len(container) else MISSING
    return MISSING


def check_key(key: object) -> None:
    """Only strings, bools and numbers can be keys of a lookup, whatever the container."""
    if not isinstance(key, str | int | float):
        raise EvaluationError(f"invalid qualifier type: {type_name(key)}")


def list_index(key: object) -> int:
    if isinstance(key, int) and not isinstance(key, bool) and key <= INT_MAX:
        return int(key)
    if isinstance(key, float) and key.is_integer() and -INT_MAX <= key <= INT_MAX:
        return int(key)
    if is_number(key):
        raise EvaluationError(f"unsupported index value {key} in list")
    raise EvaluationError(f"unsupported index type '{type_name(key)}' in list")


def missing(container: object, key: object) -> EvaluationError:
    """The error for a key that `lookup` did not find."""
    if isinstance(container, LISTS):
        return EvaluationError(f"index out of bounds: {_shown(key)}")
    return EvaluationError(f"no such key: {_shown(key)}")


def _shown(key: object) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key) if isinstance(key, str) else f"{key:d}" if isinstance(key, int) else str(key)


def _index(container: object, key: object) -> object:
    value = lookup(container, key)
    if value is MISSING:
        raise missing(container, key)
    return value


def insert(target: MapValue, pairs: Sequence[tuple[object, object]]) -> MapValue:
    """Adds entries to the map in place."""
    for key, value in pairs:
        if target.has(key):
            raise EvaluationError(f"insert failed: key {_shown(key)} already exists")
        target[slot(key)] = value
    return target


def _insert_entry(target: MapValue, key: object, value: object) -> MapValue:
    return insert(MapValue(target), ((key, value),))


def _insert_all(target: MapValue, other: MapValue) -> MapValue:
    return insert(MapValue(target), tuple(other.pairs()))


_SCAN = Rule(
    lambda args: CallEstimate(args[1].size.cost()), lambda args, result: actual_size(args[1])
)


def _sizes(name: str, type_: Type) -> tuple[Function, Function]:
    return (
        static("size", f"size_{name}", (type_,), INT, len),
        member("size", f"{name}_size", (type_,), INT, len),
    )


COLLECTIONS = Library(
    "collections",
    (
        *_sizes("bytes", BYTES),
        *_sizes("list", _LIST),
        *_sizes("map", _MAP),
        *_sizes("string", STRING),
        static("@in", "in_list", (_A, _LIST), BOOL, contains, _SCAN),
        static("@in", "in_map", (_A, _MAP), BOOL, contains),
        static("_[_]", "index_list", (_LIST, INT), _A, _index),
        static("_[_]", "index_map", (_MAP, _A), _B, _index),
        static(_INSERT, "@mapInsert_map_key_value", (_MAP_KV, _K, _V), _MAP_KV, _insert_entry),
        static(_INSERT, "@mapInsert_map_map", (_MAP_KV, _MAP_KV), _MAP_KV, _insert_all),
    ),
)
