"""Field managers for the endpoints of a kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from drayman.api.schema import Message
from drayman.apiserver.patching.builtin_shapes import shape_of, zero_of
from drayman.apiserver.patching.field_manager import FieldManager
from drayman.apiserver.patching.field_set import field_set, named_path
from drayman.apiserver.patching.shapes import Shape
from drayman.apiserver.patching.versions import Convert, Object, Versions, in_the_same_words

FieldNames = tuple[str, ...]


def field_manager(
    api_version: str,
    kind: str,
    shapes: Mapping[str, Shape],
    *,
    empty: Object | None = None,
    convert: Convert = in_the_same_words,
    reset_fields: Iterable[FieldNames] = (),
) -> FieldManager:
    """The field manager of an endpoint.

    `shapes` has the shape of each API version of the kind; `empty` is what an object without content shows, if anything;
    `reset_fields` are those that writes through the endpoint cannot change.
    """
    fields = field_set(named_path(*path) for path in reset_fields)
    nothing: Object = {**(empty or {}), "apiVersion": api_version, "kind": kind}
    return FieldManager(api_version, kind, Versions(shapes, convert, fields), nothing)


def builtin_field_manager(
    api_version: str,
    kind: str,
    messages: Mapping[str, Message],
    *,
    convert: Convert = in_the_same_words,
    reset_fields: Iterable[FieldNames] = (),
) -> FieldManager:
    """The field manager of an endpoint of a built-in kind, from the schema of each of its API versions."""
    return field_manager(
        api_version,
        kind,
        {version: shape_of(message) for version, message in messages.items()},
        empty=zero_of(messages[api_version]),
        convert=convert,
        reset_fields=reset_fields,
    )
