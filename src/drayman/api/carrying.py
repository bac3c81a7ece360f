"""Objects that keep the fields we do not know.

A newer API server sends fields this version has no attribute for. A client that reads an object, changes a part of it and writes it
back must not delete them. Structs only hold what they declare, so the rest travels beside the object: a `Carried` is the typed
object and the remainder of the JSON it came from, as a tree that follows the object's own. Items of a list are found again by
their merge key (a device by its name), or by position where they have none, so that adding, removing and reordering items
leaves each with what it came with.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from msgspec import Struct

from drayman.api import codec
from drayman.api.shape import Mapping, Opaque, Record, Scalar, Sequence, Shape, shape_of
from drayman.api.struct import ApiStruct, Json

T = TypeVar("T", bound=ApiStruct)


@dataclass(frozen=True, slots=True)
class Remainder:
    """The unknown fields of one JSON object, and the remainders below it by field name or item key."""

    fields: dict[str, Json] = field(default_factory=dict)
    children: dict[Hashable, Remainder] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.fields or self.children)


_NOTHING: Final = Remainder()


class Carried(Struct, Generic[T], frozen=True):
    """A typed object with what its JSON held besides."""

    object: T
    remainder: Remainder

    @staticmethod
    def convert(type_: type[T], value: Json) -> Carried[T]:
        """Raises DecodeError."""
        typed = codec.convert(type_, value)
        return Carried(typed, _remainder(shape_of(type_), value))

    def replace(self, changed: T) -> Carried[T]:
        """Another version of the same object, with the same unknown fields."""
        return Carried(changed, self.remainder)

    def to_dict(self) -> dict[str, Json]:
        """The decoded JSON of the object, unknown fields included."""
        value = codec.to_dict(self.object)
        _restore(shape_of(type(self.object)), value, self.remainder)
        return value

    def encode(self) -> bytes:
        """The JSON text of the object, unknown fields included."""
        if not self.remainder:
            return codec.encode(self.object)
        return codec.encode_json(self.to_dict())


def unknown_fields(type_: type[ApiStruct], value: Json) -> Iterator[str]:
    """The paths of the fields in a decoded JSON value that the type does not declare."""
    yield from _unknown_paths(shape_of(type_), value, "")


def _remainder(shape: Shape, value: Json) -> Remainder:
    """What of a value its shape does not declare. Runs over every object that is read, so it is written for speed."""
    if isinstance(shape, Record):
        return _record_remainder(shape.fields, value) if isinstance(value, dict) else _NOTHING
    if isinstance(shape, Scalar | Opaque) or isinstance(shape.item, Scalar | Opaque):
        return _NOTHING
    items: Iterable[tuple[Hashable, Json]]
    if isinstance(shape, Mapping):
        items = value.items() if isinstance(value, dict) else ()
    else:
        items = _keyed_items(shape.item, value) if isinstance(value, list) else ()
    children: dict[Hashable, Remainder] = {}
    for key, item in items:
        below = _remainder(shape.item, item)
        if below is not _NOTHING:
            children[key] = below
    return Remainder({}, children) if children else _NOTHING


def _record_remainder(known: dict[str, Shape], value: dict[str, Json]) -> Remainder:
    unknown: dict[str, Json] = {}
    children: dict[Hashable, Remainder] = {}
    for name, item in value.items():
        shape = known.get(name)
        if shape is None:
            unknown[name] = item
        elif not isinstance(shape, Scalar | Opaque):
            below = _remainder(shape, item)
            if below is not _NOTHING:
                children[name] = below
    return Remainder(unknown, children) if unknown or children else _NOTHING


def _keyed_items(item: Shape, values: list[Json]) -> Iterator[tuple[Hashable, Json]]:
    """Each item with the key it is found again by. Items with the same merge key are distinguished by their order."""
    merge_key = item.merge_key if isinstance(item, Record) else ()
    seen: dict[Hashable, int] = {}
    for position, value in enumerate(values):
        if not merge_key or not isinstance(value, dict):
            yield position, value
            continue
        identity = tuple(str(value.get(name)) for name in merge_key)
        seen[identity] = seen.get(identity, -1) + 1
        yield (identity, seen[identity]), value


def _restore(shape: Shape, value: Json, remainder: Remainder) -> None:
    """Put the unknown fields back into a freshly encoded value. Known fields win: the object decides about those."""
    if not remainder:
        return
    match shape:
        case Record(known):
            for name, child in remainder.children.items():
                if isinstance(name, str) and name in value:
                    _restore(known[name], value[name], child)
            value.update(remainder.fields)
        case Sequence(item):
            for key, part in _keyed_items(item, value):
                _restore(item, part, remainder.children.get(key, _NOTHING))
        case Mapping(item):
            for key, part in value.items():
                _restore(item, part, remainder.children.get(key, _NOTHING))
        case _:
            raise TypeError(f"{shape} holds no fields")


def _unknown_paths(shape: Shape, value: Json, path: str) -> Iterator[str]:
    match shape:
        case Record(known) if isinstance(value, dict):
            for name, item in value.items():
                below = f"{path}.{name}" if path else name
                if name in known:
                    yield from _unknown_paths(known[name], item, below)
                else:
                    yield below
        case Sequence(item_shape) if isinstance(value, list):
            for index, item in enumerate(value):
                yield from _unknown_paths(item_shape, item, f"{path}[{index}]")
        case Mapping(item_shape) if isinstance(value, dict):
            for key, item in value.items():
                yield from _unknown_paths(item_shape, item, f"{path}[{key}]")
