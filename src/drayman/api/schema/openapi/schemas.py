"""Messages as OpenAPI schemas, under the names that clients look for.

Written for OpenAPI 3; version 2 is derived from that. Clients merge and explain by what is said here, so lists and maps carry how
they are owned and merged, and a schema is complete or not given at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from drayman.api.schema.model import Field, ListOf, MapOf, Message, Omit, Scalar, ScalarKind, Type
from drayman.api.schema.openapi.descriptions import field_description, message_description
from drayman.api.schema.tables import message_named
from drayman.api.struct import Json

Schema = dict[str, Json]

REFERENCE: Final = "#/components/schemas/"
GVK: Final = "x-kubernetes-group-version-kind"

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_EXTENSIONS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_PACKAGES: Final = {"meta/v1": _META, "apiextensions/v1": _EXTENSIONS}
_PLAIN: Final[dict[ScalarKind, Schema]] = {
    ScalarKind.STRING: {"type": "string"},
    ScalarKind.BOOL: {"type": "boolean"},
    ScalarKind.INT32: {"type": "integer", "format": "int32"},
    ScalarKind.INT64: {"type": "integer", "format": "int64"},
    ScalarKind.DOUBLE: {"type": "number", "format": "double"},
    ScalarKind.BYTES: {"type": "string", "format": "byte"},
}
_DEFAULTS: Final[dict[ScalarKind, Json]] = {
    ScalarKind.STRING: "",
    ScalarKind.BOOL: False,
    ScalarKind.INT32: 0,
    ScalarKind.INT64: 0,
    ScalarKind.DOUBLE: 0,
}
_SPECIAL: Final[dict[ScalarKind, tuple[str, Schema]]] = {
    ScalarKind.QUANTITY: (
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        {
            "description": "An exact amount with an optional suffix, such as 500m, 2Gi or 1e3.",
            "oneOf": [{"type": "string"}, {"type": "number"}],
        },
    ),
    ScalarKind.INT_OR_STRING: (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        {
            "description": "A number, or a text such as 25% or the name of a port.",
            "format": "int-or-string",
            "oneOf": [{"type": "integer"}, {"type": "string"}],
        },
    ),
    ScalarKind.TIME: (
        f"{_META}.Time",
        {
            "description": "A point in time to the second, in the form of RFC 3339.",
            "type": "string",
            "format": "date-time",
        },
    ),
    ScalarKind.MICRO_TIME: (
        f"{_META}.MicroTime",
        {
            "description": "A point in time to the microsecond, in the form of RFC 3339.",
            "type": "string",
            "format": "date-time",
        },
    ),
    ScalarKind.RAW_EXTENSION: (
        "io.k8s.apimachinery.pkg.runtime.RawExtension",
        {"description": "An object of a kind that is not known here.", "type": "object"},
    ),
    ScalarKind.FIELDS_V1: (
        f"{_META}.FieldsV1",
        {"description": "A set of fields, as a tree of their names.", "type": "object"},
    ),
    ScalarKind.JSON: (f"{_EXTENSIONS}.JSON", {"description": "Any JSON value."}),
    ScalarKind.SCHEMA_OR_ARRAY: (
        f"{_EXTENSIONS}.JSONSchemaPropsOrArray",
        {"description": "A schema, or a list of schemas."},
    ),
    ScalarKind.SCHEMA_OR_BOOL: (
        f"{_EXTENSIONS}.JSONSchemaPropsOrBool",
        {"description": "A schema, or true or false."},
    ),
    ScalarKind.SCHEMA_OR_STRINGS: (
        f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray",
        {"description": "A schema, or a list of names."},
    ),
}


def component_name(message: Message) -> str:
    """The name under which clients know a message, such as `io.k8s.api.core.v1.Pod`."""
    package = _PACKAGES.get(message.package)
    prefix = package or f"io.k8s.api.{message.package.replace('/', '.')}"
    return f"{prefix}.{message.name}"


def reference(name: str) -> Schema:
    return {"$ref": f"{REFERENCE}{name}"}


def components(messages: list[Message]) -> dict[str, Schema]:
    """The schemas of some messages and of all that they contain, by name."""
    found: dict[str, Schema] = {}
    waiting = list(messages)
    while waiting:
        message = waiting.pop()
        name = component_name(message)
        if name in found:
            continue
        found[name] = message_schema(message)
        for type_ in _leaves(message):
            if isinstance(type_, Message):
                waiting.append(type_)
            elif type_.kind in _SPECIAL:
                special, schema = _SPECIAL[type_.kind]
                found[special] = schema
    return found


def _leaves(message: Message) -> Iterator[Message | Scalar]:
    """The messages and scalars that fields hold, also in lists and maps."""
    for field in message.fields.values():
        type_ = field.type
        while isinstance(type_, ListOf | MapOf):
            type_ = type_.item if isinstance(type_, ListOf) else type_.value
        yield type_


def message_schema(message: Message) -> Schema:
    """The schema of one message, others referred to."""
    schema: Schema = {"type": "object"}
    if text := message_description(message):
        schema["description"] = text
    required = [name for name, field in message.fields.items() if field.required]
    if required:
        schema["required"] = required
    if message.fields:
        schema["properties"] = {
            name: _property(message, field) for name, field in sorted(message.fields.items())
        }
    if message.is_atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    return schema


def _property(message: Message, field: Field) -> Schema:
    schema = _type_schema(field.type)
    if text := field_description(message, field.name):
        schema["description"] = text
    default = _default(field)
    if default is not None:
        schema["default"] = default
    schema.update(_ownership(field))
    return schema


def _default(field: Field) -> Json:
    if field.default is not None:
        return field.default
    if field.pointer:
        return None
    if isinstance(field.type, Message):
        return {}
    if isinstance(field.type, Scalar) and field.omit is Omit.NEVER:
        return _DEFAULTS.get(field.type.kind)
    return None


def _ownership(field: Field) -> Schema:
    """How items are distinguished and merged, by owners and by patches."""
    schema: Schema = {}
    if field.list_type:
        schema["x-kubernetes-list-type"] = field.list_type
    if field.list_keys:
        schema["x-kubernetes-list-map-keys"] = list(field.list_keys)
    if field.is_atomic:
        schema["x-kubernetes-map-type"] = "atomic"
    if field.merge_key:
        schema["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.merge_strategies:
        schema["x-kubernetes-patch-strategy"] = ",".join(sorted(field.merge_strategies))
    return schema


def _type_schema(type_: Type) -> Schema:
    if isinstance(type_, Message):
        return {"allOf": [reference(component_name(type_))]}
    if isinstance(type_, ListOf):
        return {"type": "array", "items": _item_schema(type_.item)}
    if isinstance(type_, MapOf):
        return {"type": "object", "additionalProperties": _item_schema(type_.value)}
    if type_.kind in _SPECIAL:
        return {"allOf": [reference(_SPECIAL[type_.kind][0])]}
    return dict(_PLAIN[type_.kind])


def _item_schema(type_: Type) -> Schema:
    schema = _type_schema(type_)
    if isinstance(type_, Message):
        schema["default"] = {}
    elif isinstance(type_, Scalar) and type_.kind in _DEFAULTS:
        schema["default"] = _DEFAULTS[type_.kind]
    return schema


def kind_schema(message: Message, group: str, version: str) -> Schema:
    """The schema of a kind, with its group, version and kind."""
    return {**message_schema(message), GVK: [gvk(group, version, message.name)]}


def list_schema(item: str, group: str, version: str, kind: str) -> Schema:
    """The schema of a list of a kind, which is the same for all."""
    text: Schema = {"type": "string"}
    metadata = component_name(message_named("meta/v1.ListMeta"))
    return {
        "description": f"A list of {kind} objects.",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": text,
            "items": {"type": "array", "items": {"allOf": [reference(item)], "default": {}}},
            "kind": text,
            "metadata": {"allOf": [reference(metadata)], "default": {}},
        },
        GVK: [gvk(group, version, f"{kind}List")],
    }


def gvk(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "kind": kind, "version": version}
