"""Static types.

A type is a kind, a name and parameters; two types are the same when those are equal, so types are plain values and can be keys. `str(type)`
is the spelling used in error messages: `list(int)`, `map(string, dyn)`, `optional_type(int)`.
"""

from __future__ import annotations

from enum import Enum, auto

from msgspec import Struct


class TypeKind(Enum):
    NULL = auto()
    BOOL = auto()
    INT = auto()
    UINT = auto()
    DOUBLE = auto()
    STRING = auto()
    BYTES = auto()
    TIMESTAMP = auto()
    DURATION = auto()
    LIST = auto()
    MAP = auto()
    TYPE = auto()
    OPAQUE = auto()  # a named type with parameters, such as optional_type(T) or net.IP
    OBJECT = auto()  # a named type without, with or without fields, such as kubernetes.Quantity
    DYN = auto()
    ANY = auto()
    ERROR = auto()
    PARAMETER = auto()  # a type variable in a declaration, or a fresh one while checking


class Type(Struct, frozen=True):
    kind: TypeKind
    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    @property
    def is_dynamic(self) -> bool:
        """Whether nothing is known about the value before run time."""
        return self.kind in _DYNAMIC

    @property
    def is_wrapper(self) -> bool:
        return self.name == "wrapper"

    @property
    def unwrapped(self) -> Type:
        return self.parameters[0] if self.is_wrapper else self

    @property
    def is_optional(self) -> bool:
        return self.kind is TypeKind.OPAQUE and self.name == "optional_type"


_DYNAMIC = frozenset((TypeKind.DYN, TypeKind.ANY, TypeKind.ERROR))

NULL = Type(TypeKind.NULL, "null_type")
BOOL = Type(TypeKind.BOOL, "bool")
INT = Type(TypeKind.INT, "int")
UINT = Type(TypeKind.UINT, "uint")
DOUBLE = Type(TypeKind.DOUBLE, "double")
STRING = Type(TypeKind.STRING, "string")
BYTES = Type(TypeKind.BYTES, "bytes")
TIMESTAMP = Type(TypeKind.TIMESTAMP, "google.protobuf.Timestamp")
DURATION = Type(TypeKind.DURATION, "google.protobuf.Duration")
DYN = Type(TypeKind.DYN, "dyn")
ANY = Type(TypeKind.ANY, "any")
ERROR = Type(TypeKind.ERROR, "!error!")


def list_of(element: Type) -> Type:
    return Type(TypeKind.LIST, "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type(TypeKind.MAP, "map", (key, value))


def type_of(instance: Type) -> Type:
    return Type(TypeKind.TYPE, "type", (instance,))


def optional_of(value: Type) -> Type:
    return Type(TypeKind.OPAQUE, "optional_type", (value,))


def opaque(name: str, *parameters: Type) -> Type:
    return Type(TypeKind.OPAQUE, name, parameters)


def object_type(name: str) -> Type:
    return Type(TypeKind.OBJECT, name)


def wrapper(wrapped: Type) -> Type:
    """A scalar type that null also fits; everything else about it is the wrapped type's."""
    return Type(wrapped.kind, "wrapper", (wrapped,))


def parameter(name: str) -> Type:
    return Type(TypeKind.PARAMETER, name)


TYPE = Type(TypeKind.TYPE, "type")
