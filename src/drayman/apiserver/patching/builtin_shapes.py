"""Shapes of the built-in kinds, from their schema."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Final

from drayman.api.schema import (
    Field,
    ListOf,
    MapOf,
    Message,
    Omit,
    Scalar,
    ScalarKind,
    Type,
    normalise,
)
from drayman.api.struct import Json
from drayman.apiserver.patching.shapes import (
    ANY_SCALAR,
    ATOMIC,
    BOOLEAN,
    DEDUCED,
    NUMBER,
    OPAQUE,
    STRING,
    FieldShape,
    ListShape,
    MapShape,
    Shape,
    map_of,
)

_SCALARS: Final[Mapping[ScalarKind, Shape]] = {
    ScalarKind.STRING: STRING,
    ScalarKind.BYTES: STRING,
    ScalarKind.BOOL: BOOLEAN,
    ScalarKind.INT32: NUMBER,
    ScalarKind.INT64: NUMBER,
    ScalarKind.DOUBLE: NUMBER,
    ScalarKind.QUANTITY: ANY_SCALAR,
    ScalarKind.INT_OR_STRING: ANY_SCALAR,
    ScalarKind.TIME: ANY_SCALAR,
    ScalarKind.MICRO_TIME: ANY_SCALAR,
    ScalarKind.RAW_EXTENSION: ATOMIC,
    ScalarKind.FIELDS_V1: OPAQUE,
    ScalarKind.JSON: DEDUCED,
    ScalarKind.SCHEMA_OR_ARRAY: DEDUCED,
    ScalarKind.SCHEMA_OR_BOOL: DEDUCED,
    ScalarKind.SCHEMA_OR_STRINGS: DEDUCED,
}
_ZEROS: Final[Mapping[ScalarKind, Json]] = {
    ScalarKind.STRING: "",
    ScalarKind.BOOL: False,
    ScalarKind.INT32: 0,
    ScalarKind.INT64: 0,
}


@cache
def shape_of(message: Message) -> Shape:
    """The shape of a message. There is exactly one per message; repeated calls return the same."""
    return Shape(map=MapShape(partial(_fields, message), atomic=message.is_atomic))


@cache
def _fields(message: Message) -> Mapping[str, FieldShape]:
    return {
        name: FieldShape(cache(partial(_field_shape, field)), _key_default(field))
        for name, field in message.fields.items()
    }


def _key_default(field: Field) -> Json:
    """Fields that are always written count as their zero value when a client leaves them out."""
    if field.default is not None or field.pointer or field.omit is not Omit.NEVER:
        return field.default
    return _ZEROS.get(field.type.kind) if isinstance(field.type, Scalar) else None


def _field_shape(field: Field) -> Shape:
    if isinstance(field.type, ListOf):
        atomic = field.list_type not in ("set", "map")
        item = partial(_type_shape, field.type.item)
        return Shape(list=ListShape(item, atomic, field.list_keys))
    shape = _type_shape(field.type)
    if field.is_atomic and shape.map is not None:
        return Shape(map=MapShape(shape.map.fields, shape.map.others, atomic=True))
    return shape


def _type_shape(type_: Type) -> Shape:
    match type_:
        case Scalar():
            return _SCALARS[type_.kind]
        case ListOf():
            return Shape(list=ListShape(partial(_type_shape, type_.item)))
        case MapOf():
            return Shape(map=map_of(partial(_type_shape, type_.value)))
        case Message():
            return shape_of(type_)


def zero_of(message: Message) -> dict[str, Json]:
    """An object without content, as it is written: the fields that are always shown.

    The creator of a new object has not set what the object has in common with this one.
    """
    return normalise(message, {})
