"""The tables of built-in messages, one text file for each group version, and how to look a message up.

A line at the left margin begins a message:

    Name [kind] [atomic]

`kind` adds `kind` and `apiVersion`; `atomic` makes it one unit of ownership. The lines below it, indented by one space, are its
fields in the order in which they are written:

    name number type [property ...]

* `number`: in protobuf; `-` for none. The name `@` takes over the fields of the message that is named as the type.
* `type`: `string`, `bool`, `int32`, `int64`, `double`, `bytes`, a special type of `model.ScalarKind`, a message of this file, or one of
  another as `meta/v1.ObjectMeta`; `[T]` is a list, `{T}` a map, `{Key=T}` one with keys of a named type; `*` after a type makes it
  a pointer; `:Name` gives the name under which clients know it.
* properties: `shown` and `zero-omitted` say when it is written although empty (see `model.Omit`); `atomic`, `set`, `keys=a,b` is
  the list type, where `atomic` on anything else makes it one unit of ownership; `patch=merge,retain` and `by=key` are its strategy
  and merge key; `required`; `default=JSON`.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from typing import Final

import msgspec

from drayman.api.schema.model import (
    Contents,
    Field,
    ListOf,
    ListType,
    MapOf,
    Message,
    Omit,
    Scalar,
    ScalarKind,
    Type,
)

JSON_SCHEMA: Final = "apiextensions/v1.JSONSchemaProps"
_DATA: Final = "data"
_SCALARS: Final = {kind.value: kind for kind in ScalarKind}
_NATIVE: Final = {
    ScalarKind.DOUBLE: "float64",
    ScalarKind.BYTES: "[]uint8",
    ScalarKind.QUANTITY: "resource.Quantity",
    ScalarKind.INT_OR_STRING: "intstr.IntOrString",
    ScalarKind.TIME: "v1.Time",
    ScalarKind.MICRO_TIME: "v1.MicroTime",
    ScalarKind.RAW_EXTENSION: "runtime.RawExtension",
    ScalarKind.FIELDS_V1: "v1.FieldsV1",
    ScalarKind.JSON: "v1.JSON",
    ScalarKind.SCHEMA_OR_ARRAY: "v1.JSONSchemaPropsOrArray",
    ScalarKind.SCHEMA_OR_BOOL: "v1.JSONSchemaPropsOrBool",
    ScalarKind.SCHEMA_OR_STRINGS: "v1.JSONSchemaPropsOrStringArray",
}
_TEXT: Final = Scalar(ScalarKind.STRING, "string")
_TYPE_META: Final = {
    "kind": Field("kind", _TEXT, number=0),
    "apiVersion": Field("apiVersion", _TEXT, number=0),
}
_OMISSIONS: Final = {"shown": Omit.NEVER, "zero-omitted": Omit.ZERO}
_STRATEGY_NAMES: Final = {"retain": "retainKeys"}


def schema_for(group: str, version: str, kind: str) -> Message | None:
    """The message of a built-in kind, or None if there is none of that name."""
    message = package_messages(package_of(group, version)).get(kind)
    return message if message is not None and message.is_kind else None


def package_of(group: str, version: str) -> str:
    """The package of a group version: its first label, with `core` for the group without a name."""
    return f"{group.partition('.')[0] or 'core'}/{version}"


def message_named(name: str) -> Message:
    """The message with a full name such as `meta/v1.ObjectMeta`. Raises KeyError."""
    package, _, own_name = name.partition(".")
    return package_messages(package)[own_name]


@cache
def package_messages(package: str) -> dict[str, Message]:
    """All messages of a package by name; empty if there is no such package."""
    try:
        text = pkgutil.get_data(__package__, f"{_DATA}/{package.replace('/', '_')}.txt")
    except FileNotFoundError:
        return {}
    assert text is not None, "packages are installed with a loader that has data"
    found: dict[str, Message] = {}
    lines: list[str] = []
    for line in text.decode().splitlines():
        if line[0] == " ":
            lines.append(line)
            continue
        lines = []
        name, *properties = line.split()
        found[name] = _message(name, package, lines, properties)
    return found


def _message(name: str, package: str, lines: list[str], properties: list[str]) -> Message:
    is_kind = "kind" in properties
    return Message(
        name,
        package,
        lambda message: _contents(message, lines),
        is_kind=is_kind,
        is_atomic="atomic" in properties,
    )


def _contents(message: Message, lines: list[str]) -> Contents:
    fields: dict[str, Field] = dict(_TYPE_META) if message.is_kind else {}
    inlined: dict[int, Message] = {}
    for line in lines:
        name, number, expression, *properties = line.split()
        if name == "@":
            source = _named_message(expression, message.package)
            inlined[int(number)] = source
            fields.update(source.fields)
        else:
            fields[name] = _field(name, number, expression, properties, message.package)
    return Contents(fields, inlined)


def _field(name: str, number: str, expression: str, properties: list[str], package: str) -> Field:
    pointer = expression.endswith("*")
    type_ = _type(expression.removesuffix("*"), package)
    values = dict(part.split("=", 1) for part in properties if "=" in part)
    list_type: ListType | None = None
    if isinstance(type_, ListOf):
        list_type = "map" if "keys" in values else "set" if "set" in properties else None
        list_type = "atomic" if "atomic" in properties else list_type
    strategies = (_STRATEGY_NAMES.get(word, word) for word in values.get("patch", "").split(","))
    return Field(
        name,
        type_,
        number=int(number) if number != "-" else 0,
        pointer=pointer,
        omit=next((_OMISSIONS[word] for word in properties if word in _OMISSIONS), Omit.EMPTY),
        list_type=list_type,
        list_keys=tuple(values["keys"].split(",")) if "keys" in values else (),
        is_atomic="atomic" in properties and not isinstance(type_, ListOf),
        merge_key=values.get("by"),
        merge_strategies=frozenset(filter(None, strategies)),
        required="required" in properties,
        default=msgspec.json.decode(values["default"]) if "default" in values else None,
    )


def _type(expression: str, package: str) -> Type:
    """The type an expression stands for. A name after the last bracket or word belongs to the whole."""
    version = package.partition("/")[2]
    head, _, alias = expression.rpartition(":") if _has_alias(expression) else (expression, "", "")
    native = alias if "." in alias or not alias else f"{version}.{alias}"
    if head[0] == "[":
        inner = head[1:-1]
        item = _type(inner.removesuffix("*"), package)
        name = native or f"[]{'*' if inner.endswith('*') else ''}{item.native}"
        return ListOf(item, name, nullable=inner.endswith("*"))
    if head[0] == "{":
        return _map(head[1:-1], native, package)
    kind = _SCALARS.get(head)
    if kind is not None:
        return Scalar(kind, native or _NATIVE.get(kind, head))
    return _named_message(head, package)


def _map(inner: str, native: str, package: str) -> MapOf:
    key, equals, value = inner.rpartition("=")
    version = package.partition("/")[2]
    key_name = (key if "." in key else f"{version}.{key}") if equals else "string"
    value_type = _type(value.removesuffix("*"), package)
    return MapOf(value_type, native or f"map[{key_name}]{value_type.native}")


def _has_alias(expression: str) -> bool:
    """Whether a name follows the whole type rather than a part of it."""
    return expression.rfind(":") > max(expression.rfind("]"), expression.rfind("}"))


def _named_message(name: str, package: str) -> Message:
    if "/" not in name:
        return package_messages(package)[name]
    return message_named(name)
