"""What a JSON value must look like to become a given type.

msgspec decodes and checks in one pass and is fast because it keeps nothing else. Three jobs need the schema itself: treating
null as absent, naming the exact place of a wrong type (map keys included), and telling known from unknown fields apart. They
share the small tree of this module, derived once per type from the structs.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable
from functools import cache
from typing import Annotated, Union

from msgspec import Meta, Struct, structs
from msgspec.structs import replace

from drayman.api.errors import DecodeError, QuantityError
from drayman.api.quantity import Quantity
from drayman.api.struct import ApiStruct, Json


class Scalar(Struct, frozen=True):
    """A string, number, boolean or quantity; `zero` is what null means where absence is impossible."""

    expected: str
    accepts: tuple[type, ...]
    zero: Json
    objection: Callable[[Json], str | None] | None = None
    """What is wrong with a value of the right type, if anything."""


class Opaque(Struct, frozen=True):
    """Any JSON value."""


class Record(Struct, frozen=True):
    """An object with named fields."""

    fields: dict[str, Shape]
    merge_key: tuple[str, ...]


class Sequence(Struct, frozen=True):
    item: Shape


class Mapping(Struct, frozen=True):
    item: Shape


Shape = Scalar | Opaque | Record | Sequence | Mapping


def _quantity_objection(value: Json) -> str | None:
    try:
        Quantity.parse(value.strip() if isinstance(value, str) else repr(value))
    except QuantityError as error:
        return str(error)
    return None


_SCALARS: dict[object, Scalar] = {
    str: Scalar("string", (str,), ""),
    int: Scalar("integer", (int,), 0),
    bool: Scalar("boolean", (bool,), False),
    Quantity: Scalar("quantity", (str, int, float), "0", _quantity_objection),
}
_OPAQUE = Opaque()


@cache
def shape_of(type_: object) -> Shape:
    """The shape of a struct or of a field's annotation."""
    if scalar := _SCALARS.get(type_):
        return scalar
    if type_ is Json:
        return _OPAQUE
    if isinstance(type_, type) and issubclass(type_, ApiStruct):
        return Record(
            {info.encode_name: shape_of(info.type) for info in structs.fields(type_)},
            type_.merge_key,
        )
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin is Annotated:
        return _constrained(arguments[0], arguments[1])
    if origin is tuple:
        return Sequence(shape_of(arguments[0]))
    if origin is dict:
        return Mapping(shape_of(arguments[1]))
    if origin in (Union, types.UnionType):
        given = [argument for argument in arguments if argument is not type(None)]
        if len(given) == 1:
            return shape_of(given[0])
    raise TypeError(f"no JSON shape for {type_!r}")


def _constrained(type_: object, constraint: Meta) -> Scalar:
    """A scalar with one of the constraints of `drayman.api.struct`: a range of integers, or the form of a timestamp."""
    scalar = _SCALARS[type_]
    if constraint.pattern is not None:
        pattern = re.compile(constraint.pattern)

        def not_a_time(value: Json) -> str | None:
            return None if pattern.search(value) else f"expected an RFC 3339 time, got {value!r}"

        return replace(scalar, objection=not_a_time)
    low, high = constraint.ge, constraint.le
    assert low is not None
    assert high is not None

    def out_of_range(value: Json) -> str | None:
        return None if low <= value <= high else f"expected an integer from {low} to {high}"

    return replace(scalar, objection=out_of_range)


def fit(shape: Shape, value: Json, path: str = "") -> Json:
    """The value without nulls, where absence and null mean the same. Raises DecodeError on a wrong type."""
    match shape:
        case Opaque():
            return value
        case Scalar():
            return _fit_scalar(shape, value, path)
        case Record(fields):
            _expect(dict, value, path)
            return {
                key: fit(fields[key], item, f"{path}.{key}" if path else key)
                for key, item in value.items()
                if key in fields and (item is not None or fields[key] is _OPAQUE)
            }
        case Sequence(item_shape):
            _expect(list, value, path)
            return [
                _fit_item(item_shape, item, f"{path}[{index}]") for index, item in enumerate(value)
            ]
        case Mapping(item_shape):
            _expect(dict, value, path)
            return {
                key: _fit_item(item_shape, item, f"{path}[{key}]") for key, item in value.items()
            }


def _fit_item(shape: Shape, value: Json, path: str) -> Json:
    """An item cannot be absent, so null stands for the zero of its type there."""
    if value is not None:
        return fit(shape, value, path)
    match shape:
        case Scalar(zero=zero):
            return zero
        case Sequence():
            return []
        case Record() | Mapping():
            return {}
        case Opaque():
            return None


def _fit_scalar(shape: Scalar, value: Json, path: str) -> Json:
    right_type = isinstance(value, shape.accepts)
    if not right_type or (isinstance(value, bool) and bool not in shape.accepts):
        raise DecodeError(path, f"expected {shape.expected}, got {type_name(value)}")
    if shape.objection and (objection := shape.objection(value)):
        raise DecodeError(path, objection)
    return value


def _expect(type_: type, value: Json, path: str) -> None:
    if not isinstance(value, type_):
        expected = "object" if type_ is dict else "array"
        raise DecodeError(path, f"expected {expected}, got {type_name(value)}")


def type_name(value: Json) -> str:
    """What JSON calls the type of a decoded value."""
    names = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object"}
    return names.get(type(value), "array" if isinstance(value, list | tuple) else "null")
