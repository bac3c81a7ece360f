"""A custom kind whose schema has everything that a structural schema can have, and a message that describes the same."""

from __future__ import annotations

from typing import Any

from drayman.api.schema import (
    Field,
    ListOf,
    MapOf,
    Message,
    Scalar,
    ScalarKind,
    Type,
    message_named,
)
from drayman.api.schema.model import Contents

GROUP = "example.com"
TEXT = Scalar(ScalarKind.STRING, "string")
NUMBER = Scalar(ScalarKind.INT64, "int64")
DOUBLE = Scalar(ScalarKind.DOUBLE, "float64")
FLAG = Scalar(ScalarKind.BOOL, "bool")
ANY = Scalar(ScalarKind.JSON, "any")

_TEXT = {"type": "string"}
_ITEM = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": _TEXT, "size": {"type": "integer", "default": 1}, "tags": {"type": "array", "items": _TEXT}},
}  # fmt: skip
_SPEC: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {**_TEXT, "maxLength": 20, "pattern": "^[a-z]*$", "default": "d"},
        "choice": {**_TEXT, "enum": ["a", "b"], "nullable": True},
        "time": {**_TEXT, "format": "date-time"},
        "number": {"type": "integer", "minimum": -5, "maximum": 1000000, "multipleOf": 1},
        "double": {"type": "number", "exclusiveMinimum": False, "minimum": -1e300},
        "flag": {"type": "boolean"},
        "either": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "texts": {"type": "array", "items": _TEXT, "maxItems": 5},
        "unique": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set", "maxItems": 50},
        "keyed": {
            "type": "array", "items": _ITEM, "maxItems": 50,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        },
        "mapped": {"type": "object", "additionalProperties": _TEXT, "maxProperties": 5},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": _TEXT}},
        "anything": {"x-kubernetes-preserve-unknown-fields": True},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        "ruled": {
            "type": "object", "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
            "x-kubernetes-validations": [
                {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high", "message": "low is above high"},
                {"rule": "!has(oldSelf.low) || has(self.low)"},
            ],
        },
    },
}  # fmt: skip
_COLUMNS = [{"name": name, "type": "string", "jsonPath": f".spec.{name}"} for name in ("text", "anything", "keyed")]  # fmt: skip


def definition() -> dict[str, Any]:
    status = {"type": "object", "properties": {"replicas": {"type": "integer"}, "state": _TEXT}}
    schema = {"type": "object", "properties": {"spec": _SPEC, "status": status}}
    version = {
        "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, "additionalPrinterColumns": _COLUMNS,
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.number", "statusReplicasPath": ".status.replicas"}},
    }  # fmt: skip
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    return {
        "metadata": {"name": f"widgets.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def widget() -> dict[str, Any]:
    metadata = {"name": "w", "namespace": "default"}
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "metadata": metadata,
        "spec": {"number": 1},
    }


def _message(name: str, /, **types: Type) -> Message:
    fields = {key: Field(key, type_) for key, type_ in types.items()}
    return Message(name, f"{GROUP}/v1", lambda _: Contents(fields, {}))


_KEYED = _message("Item", name=TEXT, size=NUMBER, tags=ListOf(TEXT, "[]string"))
MESSAGE = _message(
    "Widget",
    metadata=message_named("meta/v1.ObjectMeta"),
    spec=_message(
        "Spec",
        text=TEXT, choice=TEXT, time=TEXT, number=NUMBER, double=DOUBLE, flag=FLAG, either=TEXT, texts=ListOf(TEXT, "[]string"),
        unique=ListOf(TEXT, "[]string"), keyed=ListOf(_KEYED, "[]Item"), mapped=MapOf(TEXT, "map[string]string"),
        whole=_message("Whole", a=TEXT), anything=ANY, embedded=_message("Any", apiVersion=TEXT, kind=TEXT, metadata=ANY),
        ruled=_message("Ruled", low=NUMBER, high=NUMBER),
    ),
    status=_message("Status", replicas=NUMBER, state=TEXT),
)  # fmt: skip
