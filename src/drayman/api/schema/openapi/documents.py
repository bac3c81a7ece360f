"""The OpenAPI documents: one of version 3 for each group version with an index over them, and one of version 2 for everything.

Version 2 is version 3 rewritten, so that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from drayman.api.schema.model import Message
from drayman.api.schema.openapi.operations import PATCH, STATUS, PathBuilder, Paths
from drayman.api.schema.openapi.resources import ServedResource
from drayman.api.schema.openapi.schemas import (
    GVK,
    REFERENCE,
    Schema,
    component_name,
    components,
    gvk,
    kind_schema,
    list_schema,
    reference,
)
from drayman.api.schema.tables import message_named, schema_for
from drayman.api.struct import Json

Document = dict[str, Json]

_TITLE: Final = "Kubernetes"
_SHARED: Final = ("meta/v1.DeleteOptions", "meta/v1.Status", "meta/v1.ListMeta")
_DEFINITION: Final = "#/definitions/"
_BODY_METHODS: Final = frozenset({"get", "put", "post", "patch", "delete"})
_KEPT_IN_OPERATION: Final = ("description", "operationId", "tags", "x-kubernetes-action", GVK)


def openapi_v3(
    group: str, version: str, resources: Sequence[ServedResource], *, release: str = "v1.36.4"
) -> Document:
    """The document of a group version. Raises KeyError for a resource whose kind is neither built in nor has a schema."""
    builder = PathBuilder(group, version)
    paths: Paths = {}
    messages = [message_named(name) for name in _SHARED]
    own: dict[str, Schema] = {
        PATCH: {
            "description": "What to change, in the form its media type tells.",
            "type": "object",
        }
    }
    for resource in resources:
        message = _message_of(group, version, resource)
        name = component_name(message) if message else _custom_name(group, version, resource.kind)
        if message is None:
            own[name] = _custom_schema(group, version, resource)
            messages.append(message_named("meta/v1.ObjectMeta"))
        else:
            own[name] = kind_schema(message, group, version)
            messages.append(message)
        if "list" in resource.verbs:
            own[f"{name}List"] = list_schema(name, group, version, resource.kind)
        builder.add(resource, name, paths)
        for part in resource.subresources:
            if (taken := schema_for(part.group, part.version, part.kind)) is not None:
                messages.append(taken)
                schema = kind_schema(taken, part.group, part.version)
                own.setdefault(component_name(taken), schema)
    schemas = {**components(messages), **own}
    schemas[STATUS] = {**schemas[STATUS], GVK: [gvk("", "v1", "Status")]}
    return {
        "openapi": "3.0.0",
        "info": {"title": _TITLE, "version": release},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def _message_of(group: str, version: str, resource: ServedResource) -> Message | None:
    if resource.is_custom:
        return None
    message = schema_for(group, version, resource.kind)
    if message is None:
        raise KeyError(f"{resource.kind} of {group}/{version} is not a built-in kind")
    return message


def _custom_name(group: str, version: str, kind: str) -> str:
    """Labels of the group in reverse, as for Java packages: `com.example.v1.Widget`."""
    return ".".join([*reversed(group.split(".")), version, kind])


def _custom_schema(group: str, version: str, resource: ServedResource) -> Schema:
    schema = dict(resource.schema)
    metadata = component_name(message_named("meta/v1.ObjectMeta"))
    properties = {
        **schema.get("properties", {}),
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"allOf": [reference(metadata)], "default": {}},
    }
    return {
        **schema,
        "type": "object",
        "properties": dict(sorted(properties.items())),
        GVK: [gvk(group, version, resource.kind)],
    }


def openapi_v3_index(hashes: Mapping[str, str]) -> Document:
    """The index over documents, by path such as `apis/apps/v1`, given the hash of each."""
    return {
        "paths": {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={hashes[path]}"}
            for path in sorted(hashes)
        }
    }


def openapi_v2(documents: Sequence[Document], *, release: str = "v1.36.4") -> Document:
    """One document of version 2 with the content of those of version 3."""
    paths: Paths = {}
    definitions: dict[str, Schema] = {}
    for document in documents:
        for path, operations in document["paths"].items():
            paths[path] = {
                method: _operation(operation)
                if method in _BODY_METHODS
                else [_parameter(each) for each in operation]
                for method, operation in operations.items()
            }
        for name, schema in document["components"]["schemas"].items():
            if name not in definitions or GVK in schema:
                definitions[name] = _schema(schema)
    return {
        "swagger": "2.0",
        "info": {"title": _TITLE, "version": release},
        "paths": dict(sorted(paths.items())),
        "definitions": dict(sorted(definitions.items())),
    }


def _operation(operation: Schema) -> Schema:
    parameters = [_parameter(each) for each in operation.get("parameters", ())]
    result: Schema = {k: operation[k] for k in _KEPT_IN_OPERATION if k in operation}
    result["consumes"] = ["*/*"]
    if (body := operation.get("requestBody")) is not None:
        content = body["content"]
        result["consumes"] = list(content)
        schema = _schema(next(iter(content.values()))["schema"])
        parameter: Schema = {"name": "body", "in": "body", "schema": schema}
        if body.get("required"):
            parameter["required"] = True
        parameters.insert(0, parameter)
    if parameters:
        result["parameters"] = parameters
    result["produces"] = ["application/json", "application/yaml"]
    result["responses"] = {code: _response(r) for code, r in operation["responses"].items()}
    return result


def _parameter(parameter: Schema) -> Schema:
    rest = {name: value for name, value in parameter.items() if name != "schema"}
    return {**rest, **parameter["schema"]}


def _response(response: Schema) -> Schema:
    result: Schema = {"description": response["description"]}
    if "content" in response:
        result["schema"] = _schema(next(iter(response["content"].values()))["schema"])
    return result


def _schema(schema: Schema) -> Schema:
    """A schema in version 2, which has one type for a value, and references instead of combinations."""
    result = {name: value for name, value in schema.items() if name not in ("allOf", "oneOf")}
    if "oneOf" in schema:
        result["type"] = "string"
    if len(schema.get("allOf", ())) == 1 and "$ref" in schema["allOf"][0]:
        result.update(schema["allOf"][0])
        result.pop("default", None)
    if "$ref" in result:
        result["$ref"] = result["$ref"].replace(REFERENCE, _DEFINITION)
    for name in ("items", "additionalProperties"):
        if isinstance(result.get(name), dict):
            result[name] = _schema(result[name])
    if "properties" in result:
        result["properties"] = {k: _schema(v) for k, v in result["properties"].items()}
    for name in ("nullable", "not", "anyOf"):
        result.pop(name, None)
    return result


def encode_document(document: Document) -> bytes:
    """A document as it is served."""
    return msgspec.json.encode(document)
