"""What ownership of fields must know about the type of a value: where a list or a map is one unit and where it is many.

These shapes say less than a schema (nothing about formats or required fields) and more than the value (which fields of a list
item are its keys). Built-in kinds get theirs from `drayman.api.schema`, custom resources from their OpenAPI schema. Without any
schema, objects are treated by member and lists as a whole.

A value may be of several shapes at once, such as a number or a text. Shapes refer to others through functions, because schemas
contain themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from drayman.api.struct import Json


class ScalarShape(Enum):
    """The kinds of scalar that are distinguished."""

    STRING = "string"
    NUMBER = "numeric"
    BOOLEAN = "boolean"
    ANY = "untyped"


@dataclass(frozen=True, slots=True)
class ListShape:
    """A list. Unless atomic, its items are identified by `keys`, or by their value if there are none."""

    item: Callable[[], Shape]
    atomic: bool = True
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldShape:
    """A declared field. `default` is what its absence counts as where it is a key of a list item."""

    shape: Callable[[], Shape]
    default: Json = None


@dataclass(frozen=True, slots=True)
class MapShape:
    """An object: declared fields, and the shape of all other members if there may be any."""

    fields: Callable[[], Mapping[str, FieldShape]]
    others: Callable[[], Shape] | None = None
    atomic: bool = False

    def member(self, name: str) -> Shape | None:
        """The shape of a member; None if no member can have that name."""
        declared = self.fields().get(name)
        if declared is not None:
            return declared.shape()
        return None if self.others is None else self.others()


@dataclass(frozen=True, slots=True)
class Shape:
    """What a value may be: any of the parts that are not None."""

    scalar: ScalarShape | None = None
    list: ListShape | None = None
    map: MapShape | None = None

    def part(self, value: Json) -> ScalarShape | ListShape | MapShape:
        """The part that applies to a value. A value that fits none gets the first one, which then refuses it."""
        if isinstance(value, dict):
            found: ScalarShape | ListShape | MapShape | None = self.map
        elif isinstance(value, list):
            found = self.list
        elif value is not None:
            found = self.scalar
        else:
            found = None
        first = found or self.map or self.scalar or self.list
        if first is None:
            raise ValueError("a shape has no parts")
        return first


def map_of(value: Callable[[], Shape], *, atomic: bool = False) -> MapShape:
    """A map whose members all have the same shape."""
    return MapShape(dict, value, atomic)


ATOMIC: Final[Shape] = Shape(
    ScalarShape.ANY, ListShape(lambda: ATOMIC), map_of(lambda: ATOMIC, atomic=True)
)
"""Anything, owned as a whole."""

DEDUCED: Final[Shape] = Shape(ScalarShape.ANY, ListShape(lambda: ATOMIC), map_of(lambda: DEDUCED))
"""Anything: objects are owned by member, lists as a whole."""

STRING: Final = Shape(ScalarShape.STRING)
NUMBER: Final = Shape(ScalarShape.NUMBER)
BOOLEAN: Final = Shape(ScalarShape.BOOLEAN)
ANY_SCALAR: Final = Shape(ScalarShape.ANY)
OPAQUE: Final = Shape(map=map_of(lambda: DEDUCED))
"""An object without declared members."""
