"""What the API server knows about the shape of an object: messages, their fields, and the types of those.

One description serves all that must agree on it: decoding of JSON and protobuf, the form an object is written in, the merging of
patches, field ownership, and the published OpenAPI. Built-in kinds come from the tables of `drayman.api.schema.tables`; custom
resources may be described by messages built the same way.

A message finds its fields on first use, so that the six hundred there are cost nothing until one is sent, and so that
they can contain themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final, Literal

from drayman.api.struct import Json

ListType = Literal["atomic", "set", "map"]


class ScalarKind(Enum):
    """The kinds of value that hold no fields of their own, as far as the API is concerned."""

    STRING = "string"
    BOOL = "bool"
    INT32 = "int32"
    INT64 = "int64"
    DOUBLE = "double"
    BYTES = "bytes"
    QUANTITY = "Quantity"
    INT_OR_STRING = "IntOrString"
    TIME = "Time"
    MICRO_TIME = "MicroTime"
    RAW_EXTENSION = "RawExtension"
    FIELDS_V1 = "FieldsV1"
    JSON = "JSON"
    SCHEMA_OR_ARRAY = "SchemaOrArray"
    SCHEMA_OR_BOOL = "SchemaOrBool"
    SCHEMA_OR_STRINGS = "SchemaOrStrings"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value without fields. `native` is its type's name as clients of the real server know it from error messages."""

    kind: ScalarKind
    native: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list. `nullable` says that its items may be null."""

    item: Type
    native: str
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class MapOf:
    """A map from strings."""

    value: Type
    native: str


class Omit(Enum):
    """When a field without content is left out of the JSON form."""

    EMPTY = "empty"
    """When it is null, an empty list or map, or (for scalars that are not pointers) zero. Structs always show."""
    ZERO = "zero"
    """When it is zero; a struct when all its fields are."""
    NEVER = "never"
    """It always shows: `""`, 0, false, null or `{}`."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message. `number` is its protobuf number, 0 where it has none."""

    name: str
    type: Type
    number: int = 0
    pointer: bool = False
    """Absent and zero differ."""
    omit: Omit = Omit.EMPTY
    list_type: ListType | None = None
    list_keys: tuple[str, ...] = ()
    is_atomic: bool = False
    """A map or struct that field owners own as a whole."""
    merge_key: str | None = None
    merge_strategies: frozenset[str] = frozenset()
    """Of strategic merge patch: `merge`, `replace`, `retainKeys`."""
    required: bool = False
    default: Json = None
    """What a missing value counts as where the field identifies an item of a list."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The fields of a message in the order they are written, and the messages whose fields it takes over, by number."""

    fields: Mapping[str, Field]
    inlined: Mapping[int, Message]


class Message:
    """A struct of the API. Two messages are the same only if they are one object."""

    def __init__(
        self,
        name: str,
        package: str,
        contents: Callable[[Message], Contents],
        *,
        is_kind: bool = False,
        is_atomic: bool = False,
    ) -> None:
        self.name: Final = name
        self.package: Final = package
        """Group and version it is defined in, such as `core/v1`."""
        self.is_kind: Final = is_kind
        """It stands alone: it has apiVersion and kind."""
        self.is_atomic: Final = is_atomic
        """Field owners own it as a whole, wherever it is used."""
        self._find_contents: Final = contents

    def __repr__(self) -> str:
        return f"Message({self.package}.{self.name})"

    @property
    def native(self) -> str:
        """Its name in error messages, such as `v1.ObjectMeta`."""
        return f"{self.package.partition('/')[2]}.{self.name}"

    @cached_property
    def _contents(self) -> Contents:
        return self._find_contents(self)

    @cached_property
    def fields(self) -> Mapping[str, Field]:
        """By JSON name, in the order in which they are written; inlined ones included."""
        return self._contents.fields

    @cached_property
    def inlined(self) -> Mapping[int, Message]:
        """The messages whose fields appear among this one's, by their protobuf number."""
        return self._contents.inlined

    @cached_property
    def by_number(self) -> Mapping[int, Field]:
        """The fields that protobuf writes directly into this message."""
        indirect = {name for message in self.inlined.values() for name in message.fields}
        return {
            field.number: field
            for name, field in self.fields.items()
            if field.number and name not in indirect
        }


Type = Scalar | ListOf | MapOf | Message
