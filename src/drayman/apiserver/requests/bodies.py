"""Request bodies: from bytes in JSON, YAML or protobuf to an object of the kind the request is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drayman.api.errors import BodyError, UnrecognizedError
from drayman.api.schema import (
    Identity,
    decode_strict,
    excerpt,
    identify,
    identify_tree,
    message_named,
    strict_error,
)
from drayman.api.schema.protobuf import decode_protobuf, read_envelope
from drayman.api.struct import Json
from drayman.api.syntax.yaml_text import parse_yaml_tree, warning_texts
from drayman.apiserver.protocol.errors import StatusError, bad_request, unknown_format
from drayman.apiserver.protocol.exchange import JSON_TYPE, Request
from drayman.apiserver.protocol.negotiation import PROTOBUF_TYPE, YAML_TYPE, parse_media_type
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.requests.large_bodies import bounded, check_json, read_beside
from drayman.apiserver.served.resources import GroupVersionKind
from drayman.apiserver.served.shaping import known_message, message_of
from drayman.apiserver.served.strategy import Object

ACCEPTED: Final = (JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE)
SCHEME: Final = 'scheme "pkg/api/legacyscheme/scheme.go:30"'


def body_type(request: Request) -> str:
    """The media type of a body; JSON if the request names none. Raises StatusError 415."""
    header = request.header("content-type")
    media = parse_media_type(header).type if header else JSON_TYPE
    if media not in ACCEPTED:
        raise unknown_format(ACCEPTED)
    return media


async def read_object(call: Call, request: Request, *, strict: str) -> Object:
    """The object in a body. `strict` is the field validation asked for. Raises StatusError 400 or 415."""
    body = request.body
    return await read_beside(body, lambda: bounded(body, _read_object(call, request, strict)))


def _read_object(call: Call, request: Request, strict: str) -> Object:
    kind, body = call.kind, request.body
    media = body_type(request)
    if media == PROTOBUF_TYPE:
        return _typed(kind, _read_protobuf(call, kind, body))
    problems: tuple[str, ...] = ()
    try:
        if media == JSON_TYPE:
            check_json(body)
            tree: Json = body
            identity = identify(body)
        else:
            tree, problems = parse_yaml_tree(body)
            identity = identify_tree(tree)
    except UnrecognizedError as error:
        raise _unrecognized(kind, body, error) from error
    _check_identity(call, kind, identity)
    value, found = _decoded(call, kind, tree)
    report(call, kind, (*problems, *found), strict)
    return _typed(kind, value)


def read_value(call: Call, value: Object, *, strict: str) -> Object:
    """The object in a body that is decoded JSON already. Raises StatusError 400."""
    kind = call.kind
    identity = Identity(value.get("apiVersion") or "", value.get("kind") or "")
    if not call.resource.custom or (identity.kind and identity.api_version):
        _check_identity(call, kind, identity)
    decoded, found = _decoded(call, kind, value)
    report(call, kind, found, strict)
    return _typed(kind, decoded)


def _typed(kind: GroupVersionKind, value: Object) -> Object:
    """A body that may omit its kind and apiVersion, with both filled in."""
    return {**value, "kind": kind.kind, "apiVersion": kind.api_version}


def _unrecognized(kind: GroupVersionKind, body: bytes, error: Exception) -> StatusError:
    return bad_request(
        f"the object provided is unrecognized (must be of type {kind.kind}): {error} ({excerpt(body)})"
    )


def _decoded(call: Call, kind: GroupVersionKind, tree: Json) -> tuple[Object, Sequence[str]]:
    codec = call.resource.codec
    is_own = call.subresource is None or call.subresource.kind is None
    try:
        if codec is not None and is_own:
            return codec.decode(tree, call.version)
        return decode_strict(message_of(kind), tree)
    except BodyError as error:
        raise cannot_handle(kind, kind, str(error)) from error


def cannot_handle(given: GroupVersionKind, kind: GroupVersionKind, why: str) -> StatusError:
    return bad_request(
        f'{given.kind} in version "{given.version}" cannot be handled as a {kind.kind}: {why}'
    )


def _check_identity(call: Call, kind: GroupVersionKind, identity: Identity) -> None:
    """Refuse a body that says it is something else. What it omits is taken from the address, except for custom kinds."""
    if call.resource.custom and (not identity.kind or not identity.api_version):
        missing = "kind" if not identity.kind else "apiVersion"
        raise bad_request(f"Object '{missing.capitalize()}' is missing in the body")
    api_version = identity.api_version or kind.api_version
    group, _, version = api_version.rpartition("/")
    given = GroupVersionKind(group, version, identity.kind or kind.kind)
    if given == kind:
        return
    if call.resource.custom and given.kind == kind.kind:
        raise _other_version(given, kind)
    if not _is_known(call, given) and not _is_older_part(call, given):
        why = f'no kind "{given.kind}" is registered for version "{given.api_version}" in {SCHEME}'
        raise cannot_handle(given, kind, why)
    if given.group == kind.group and given.kind == kind.kind:
        if call.subresource is not None and call.subresource.kind is not None:
            return  # An Eviction, for example, may use an older version that differs only in name.
        raise _other_version(given, kind)
    why = (
        f"converting ({given.version}.{given.kind}) to ({internal_package(kind.group)}.{kind.kind}): "
        "unknown conversion"
    )
    raise cannot_handle(given, kind, why)


def _other_version(given: GroupVersionKind, kind: GroupVersionKind) -> StatusError:
    return bad_request(
        f"the API version in the data ({given.api_version}) does not match the expected API version "
        f"({kind.api_version})"
    )


def internal_package(group: str) -> str:
    return group.partition(".")[0] or "core"


def _is_older_part(call: Call, given: GroupVersionKind) -> bool:
    part = call.subresource.kind if call.subresource is not None else None
    return part is not None and (part.group, part.kind) == (given.group, given.kind)


def _is_known(call: Call, kind: GroupVersionKind) -> bool:
    if call.core.resources.find_kind(kind.group, kind.version, kind.kind) is not None:
        return True
    return known_message(kind, call.core.resources) is not None


def _read_protobuf(call: Call, kind: GroupVersionKind, body: bytes) -> Object:
    if call.resource.custom and call.resource.codec is not None:
        raise unknown_format((JSON_TYPE, YAML_TYPE))
    try:
        envelope = read_envelope(body)
    except UnrecognizedError as error:
        raise _unrecognized(kind, body, error) from error
    _check_identity(call, kind, Identity(envelope.api_version, envelope.kind))
    try:
        return decode_protobuf(message_of(kind), envelope.raw)
    except BodyError as error:
        raise cannot_handle(kind, kind, str(error)) from error


def read_delete_options(body: bytes) -> Object:
    """DeleteOptions in protobuf. Raises StatusError 400."""
    try:
        return decode_protobuf(message_named("meta/v1.DeleteOptions"), read_envelope(body).raw)
    except BodyError as error:
        raise bad_request(str(error)) from error


def report(call: Call, kind: GroupVersionKind, problems: Sequence[str], strict: str) -> None:
    """Unknown and duplicate fields: an error, warnings or nothing, as asked. Raises StatusError 400."""
    if not problems or strict == "Ignore":
        return
    if strict == "Strict":
        raise cannot_handle(kind, kind, strict_error(tuple(problems)))
    call.warnings.extend(warning_texts(tuple(problems)))
