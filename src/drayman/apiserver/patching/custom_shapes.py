"""Shapes of custom resources, from the OpenAPI schema of their definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Final

from drayman.api.schema import message_named
from drayman.api.struct import Json
from drayman.apiserver.patching.builtin_shapes import shape_of
from drayman.apiserver.patching.shapes import (
    ANY_SCALAR,
    BOOLEAN,
    DEDUCED,
    NUMBER,
    STRING,
    FieldShape,
    ListShape,
    MapShape,
    Shape,
)

_SCALARS: Final = {"string": STRING, "integer": NUMBER, "number": NUMBER, "boolean": BOOLEAN}


def custom_resource_shape(schema: Mapping[str, Json] | None) -> Shape:
    """The shape of a custom resource. Without a schema, everything but its metadata is accepted as it is."""
    root = _map_shape(schema) if schema is not None else DEDUCED.map
    assert root is not None, "DEDUCED may be an object"
    own = root.fields()
    fields = {
        **own,
        "apiVersion": FieldShape(lambda: STRING),
        "kind": FieldShape(lambda: STRING),
        "metadata": FieldShape(_metadata),
    }
    return Shape(map=MapShape(lambda: fields, root.others))


def _metadata() -> Shape:
    return shape_of(message_named("meta/v1.ObjectMeta"))


def structural_shape(schema: Mapping[str, Json]) -> Shape:
    """The shape of a value a structural schema describes."""
    if schema.get("x-kubernetes-int-or-string"):
        return ANY_SCALAR
    if schema.get("x-kubernetes-embedded-resource"):
        return custom_resource_shape(schema)
    match schema.get("type"):
        case "object":
            return Shape(map=_map_shape(schema))
        case "array":
            return Shape(list=_list_shape(schema))
        case str(name) if name in _SCALARS:
            return _SCALARS[name]
        case _:
            return DEDUCED


def _list_shape(schema: Mapping[str, Json]) -> ListShape:
    item = cache(partial(structural_shape, schema.get("items") or {}))
    atomic = schema.get("x-kubernetes-list-type", "atomic") == "atomic"
    return ListShape(item, atomic, tuple(schema.get("x-kubernetes-list-map-keys") or ()))


def _map_shape(schema: Mapping[str, Json]) -> MapShape:
    properties = schema.get("properties") or {}
    fields = {
        name: FieldShape(cache(partial(structural_shape, inner)), inner.get("default"))
        for name, inner in properties.items()
    }
    others: Callable[[], Shape] | None = None
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        others = cache(partial(structural_shape, additional))
    elif additional or schema.get("x-kubernetes-preserve-unknown-fields"):
        others = cache(partial(structural_shape, {}))
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    return MapShape(lambda: fields, others, atomic)
