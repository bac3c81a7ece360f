"""Metadata of custom resources and of resources embedded in them: decoded and checked like any other."""

from __future__ import annotations

from collections.abc import Iterator

from drayman.api.codec import convert
from drayman.api.errors import BodyError
from drayman.api.meta import ObjectMeta
from drayman.api.schema import decode_strict, message_named, normalise
from drayman.api.struct import Json
from drayman.api.validation.field_errors import FieldError, invalid, required
from drayman.api.validation.metadata import check_metadata
from drayman.apiserver.extensions.findings import child, entry
from drayman.apiserver.extensions.names import dns_1035_problems
from drayman.apiserver.extensions.schemas import EMBEDDED, Schema, children, items, member
from drayman.apiserver.served.strategy import Object

_METADATA = "meta/v1.ObjectMeta"


def decode_metadata(tree: Json, path: str = "metadata") -> tuple[Object, list[str]]:
    """Metadata in its final form, and its unknown or duplicate fields. Raises BodyError."""
    value, problems = decode_strict(message_named(_METADATA), tree)
    found = normalised_metadata(value)
    return found, [problem.replace(' field "', f' field "{path}.', 1) for problem in problems]


def normalised_metadata(metadata: Object) -> Object:
    found = normalise(message_named(_METADATA), metadata)
    if found.get("creationTimestamp") is None:
        found.pop("creationTimestamp", None)
    return found


def coerce_embedded(value: Json, schema: Schema, problems: list[str], path: str = "") -> None:
    """Give the metadata of embedded resources its final form, in place. Raises BodyError."""
    if isinstance(value, dict):
        if schema.get(EMBEDDED) and "metadata" in value:
            where = child(path, "metadata")
            value["metadata"], found = decode_metadata(value["metadata"], where)
            problems += found
        for name, inner in value.items():
            inner_schema = member(schema, name)
            if inner_schema is not None:
                coerce_embedded(inner, inner_schema, problems, child(path, name))
    elif isinstance(value, list):
        item_schema = items(schema)
        if item_schema is not None:
            for position, item in enumerate(value):
                coerce_embedded(item, item_schema, problems, entry(path, position))


def embedded_errors(value: Json, schema: Schema, path: str = "") -> Iterator[FieldError]:
    """The errors of embedded resources: each names its kind and has valid metadata."""
    if isinstance(value, dict) and schema.get(EMBEDDED):
        yield from _resource_errors(value, path)
    for inner, inner_schema, where in children(value, schema, path):
        yield from embedded_errors(inner, inner_schema, where)


def _resource_errors(value: Object, path: str) -> Iterator[FieldError]:
    for name in ("apiVersion", "kind"):
        where = child(path, name)
        if name not in value:
            yield required(where)
        elif not isinstance(value[name], str):
            yield invalid(where, value[name], "must be a string")
        elif not value[name]:
            yield invalid(where, "", "must not be empty")
    kind, api_version = value.get("kind"), value.get("apiVersion")
    if isinstance(api_version, str) and api_version.count("/") > 1:
        text = f"unexpected GroupVersion string: {api_version}"
        yield invalid(child(path, "apiVersion"), api_version, text)
    if isinstance(kind, str) and kind and (found := dns_1035_problems(kind.lower())):
        text = f"may have mixed case, but should otherwise match: {','.join(found)}"
        yield invalid(child(path, "kind"), kind, text)
    if "metadata" in value:
        yield from _metadata_errors(value["metadata"], child(path, "metadata"))


def _metadata_errors(metadata: Json, path: str) -> Iterator[FieldError]:
    try:
        decoded, _ = decode_metadata(metadata)
    except BodyError as error:
        yield invalid(path, metadata, str(error))
        return
    decoded.setdefault("name", "fakename")
    meta = convert(ObjectMeta, decoded)
    namespaced = bool(decoded.get("namespace"))
    for found in check_metadata(meta, namespaced=namespaced, name_problems=lambda _: ()):
        where = f"{path}{found.path.removeprefix('metadata')}"
        yield FieldError(found.kind, where, found.value, found.detail)
