"""The form in which an object is stored and served: what the API server would write after reading it.

Fields come in the order of their message. Empty ones are left out or shown as the message says: `status: {}` and
`creationTimestamp: null` are there although they were not set, `args: []` is not although it was. Unknown fields are gone.
Takes what `decode_strict` and `decode_protobuf` give, with whatever defaults were added since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from drayman.api.schema.model import Field, ListOf, MapOf, Message, Omit, Scalar, ScalarKind, Type
from drayman.api.schema.scalars import ZEROS
from drayman.api.schema.tables import JSON_SCHEMA, message_named
from drayman.api.struct import Json

Writer = Callable[[Json], Json]
"""Gives a value its final form. For an absent struct it gets None."""
FieldWriter = Callable[[Json, dict[str, Json]], None]

_PLAIN: Final = frozenset(
    {
        ScalarKind.STRING,
        ScalarKind.BOOL,
        ScalarKind.INT32,
        ScalarKind.INT64,
        ScalarKind.DOUBLE,
        ScalarKind.BYTES,
    }
)
"""Kinds whose zero counts as empty. The others are structs to the API server, which always show."""


def normalise(message: Message, value: Mapping[str, Json]) -> dict[str, Json]:
    """An object as it is written. The result shares opaque parts with the value, and nothing else."""
    result: dict[str, Json] = _message_writer(message)(value)
    return result


def normalise_around(
    message: Message, value: Mapping[str, Json], known: Mapping[str, Json]
) -> dict[str, Json]:
    """The same for an object of which some members are in that form already. The result shares these."""
    result: dict[str, Json] = {}
    for name, write_field, shows in _field_writers(message):
        if name in known:
            result[name] = known[name]
        elif name in value:
            write_field(value[name], result)
        elif shows:
            write_field(None, result)
    return result


@cache
def _message_writer(message: Message) -> Writer:
    writers: list[tuple[str, FieldWriter, bool]] = []

    def write(value: Json) -> Json:
        if not writers:  # On first use rather than before it, because messages contain themselves.
            writers.extend(_field_writers(message))
        result: dict[str, Json] = {}
        value = value or {}
        for name, write_field, shows in writers:
            if name in value:
                write_field(value[name], result)
            elif shows:
                write_field(None, result)
        return result

    return write


@cache
def _field_writers(message: Message) -> list[tuple[str, FieldWriter, bool]]:
    """Every field of a message in its order, and whether it shows although it was not set. Most do not, and then cost nothing."""
    found = []
    for name, field in message.fields.items():
        write_field, absent = field_writer(field), dict[str, Json]()
        write_field(None, absent)
        found.append((name, write_field, bool(absent)))
    return found


def field_writer(field: Field) -> FieldWriter:
    """What puts a field into the result, if it belongs there."""
    if field.pointer:
        return _pointer_writer(field)
    if isinstance(field.type, ListOf | MapOf):
        return _collection_writer(field)
    if isinstance(field.type, Scalar) and field.type.kind in _PLAIN:
        return _plain_writer(field, field.type.kind)
    return _struct_writer(field)


def _pointer_writer(field: Field) -> FieldWriter:
    name, shown, write = field.name, field.omit is Omit.NEVER, _writer(field.type)

    def write_field(value: Json, result: dict[str, Json]) -> None:
        if value is not None:
            result[name] = write(value)
        elif shown:
            result[name] = None

    return write_field


def _collection_writer(field: Field) -> FieldWriter:
    name, write = field.name, _writer(field.type)
    shown, keeps_empty = field.omit is Omit.NEVER, field.omit is not Omit.EMPTY

    def write_field(value: Json, result: dict[str, Json]) -> None:
        if value or (keeps_empty and value is not None):
            result[name] = write(value)
        elif shown:
            result[name] = None

    return write_field


def _plain_writer(field: Field, kind: ScalarKind) -> FieldWriter:
    name, shown, zero = field.name, field.omit is Omit.NEVER, ZEROS.get(kind)

    def write_field(value: Json, result: dict[str, Json]) -> None:
        if value:
            result[name] = value
        elif shown:
            result[name] = zero if value is None else value

    return write_field


def _struct_writer(field: Field) -> FieldWriter:
    """For messages, and for scalars that are structs to the API server: they show even when empty, unless `omit` says otherwise."""
    name, write, drops_zero = field.name, _writer(field.type), field.omit is Omit.ZERO
    zero = ZEROS.get(field.type.kind) if isinstance(field.type, Scalar) else None

    def write_field(value: Json, result: dict[str, Json]) -> None:
        if drops_zero and not value:
            return
        if value is None and zero is not None:
            value = zero
        written = write(value)
        if not drops_zero or written != write(None):
            result[name] = written

    return write_field


def _writer(type_: Type) -> Writer:
    if isinstance(type_, Message):
        return _message_writer(type_)
    if isinstance(type_, ListOf):
        return _list_writer(type_)
    if isinstance(type_, MapOf):
        return _map_writer(type_)
    if type_.kind in (ScalarKind.SCHEMA_OR_ARRAY, ScalarKind.SCHEMA_OR_BOOL):
        return _schema
    return lambda value: value


def _list_writer(type_: ListOf) -> Writer:
    if isinstance(type_.item, Scalar):
        return list
    write, nullable = _writer(type_.item), type_.nullable

    def write_list(value: Json) -> Json:
        return [None if item is None and nullable else write(item) for item in value]

    return write_list


def _map_writer(type_: MapOf) -> Writer:
    """Maps are written in the order of their keys."""
    if isinstance(type_.value, Scalar):
        return lambda value: dict(sorted(value.items()))
    write = _writer(type_.value)

    def write_map(value: Json) -> Json:
        return {key: write(item) for key, item in sorted(value.items())}

    return write_map


def _schema(value: Json) -> Json:
    """A place of a JSON schema that takes a schema, several, or something else."""
    write = _message_writer(message_named(JSON_SCHEMA))
    if isinstance(value, dict):
        return write(value)
    return [write(item) for item in value] if isinstance(value, list) else value
