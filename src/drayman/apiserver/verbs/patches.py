"""The verb patch: four ways to say what should change, one way to write it.

A patch is applied to the object in the version of the request. The outcome is read as if it had been sent as a whole, and then
replaces the object like any update. Apply also creates objects that do not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from drayman.api.errors import BodyError, MalformedError
from drayman.api.schema import Message, decode_strict, strict_error
from drayman.api.struct import Json
from drayman.api.syntax.json_text import parse_tree
from drayman.api.syntax.values import duplicate_paths, plain
from drayman.api.syntax.yaml_text import parse_yaml_tree, warning_texts
from drayman.api.validation.field_errors import invalid as invalid_field
from drayman.apiserver.patching.json_patch import apply_json_patch
from drayman.apiserver.patching.merge_patch import apply_merge_patch
from drayman.apiserver.patching.strategic import apply_strategic_merge
from drayman.apiserver.protocol.errors import (
    StatusError,
    Subject,
    bad_request,
    conflict,
    invalid,
    not_found,
    unknown_format,
)
from drayman.apiserver.protocol.negotiation import parse_media_type
from drayman.apiserver.requests.bodies import SCHEME, internal_package
from drayman.apiserver.requests.calls import Call, Patch, Result
from drayman.apiserver.requests.large_bodies import bounded, check_json, read_beside
from drayman.apiserver.served.conversion import from_hub, is_kept_in, to_hub
from drayman.apiserver.served.encoding import encode
from drayman.apiserver.served.resources import GroupVersionKind
from drayman.apiserver.served.shaping import known_message, message_of
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs import metadata as meta
from drayman.apiserver.verbs.creating import store_new
from drayman.apiserver.verbs.ownership import manager_of
from drayman.apiserver.verbs.planning import planned
from drayman.apiserver.verbs.updating import replace

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_MERGE: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
BUILTIN_TYPES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE, APPLY)
CUSTOM_TYPES: Final = (JSON_PATCH, MERGE_PATCH, APPLY)


def patch_type(header: str, *, custom: bool) -> str:
    """The type of a patch. Raises StatusError 415."""
    media = parse_media_type(header).type
    accepted = CUSTOM_TYPES if custom else BUILTIN_TYPES
    if media in accepted:
        return media
    if custom and media == STRATEGIC_MERGE:
        raise unknown_format(accepted)
    raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", Subject())


async def read_patch(media: str, body: bytes) -> Patch:
    """The patch in a body. Raises StatusError 400."""
    return await read_beside(body, lambda: _read_patch(media, body))


def _read_patch(media: str, body: bytes) -> Patch:
    try:
        if media == APPLY:
            body_tree, problems = parse_yaml_tree(body)
            return Patch(media, plain(bounded(body, body_tree)), problems)
        check_json(body)
        tree = bounded(body, parse_tree(body))
        prefix = "json patch " if media == JSON_PATCH else ""
        found = tuple(f'{prefix}duplicate field "{path}"' for path in duplicate_paths(tree))
        return Patch(media, plain(tree), found)
    except BodyError as error:
        if media == APPLY:
            raise bad_request(f"error decoding YAML: {error}") from error
        raise bad_request(f"error decoding patch: {error}") from error


async def patch(call: Call) -> Result:
    """Apply the patch of a call to its object."""
    assert call.patch is not None
    media, change = call.patch.media_type, call.patch.change
    duplicates = call.patch.duplicates
    existing = call.core.store.latest(call.key)
    if media == APPLY:
        return await _apply(call, change)
    if existing is None:
        raise not_found(call.subject)

    def changed(there: Call, obj: Object) -> Object:
        current = from_hub(there.resource, obj, there.version)
        patched = patched_value(
            lambda: message_of(there.resource.kind_in(there.version)), media, current, change
        )
        return reread(there, patched, duplicates, current)

    return Result(await replace(call, existing, changed))


def patched_value(schema: Callable[[], Message], media: str, current: Object, change: Json) -> Json:
    """A value with a patch applied. Strategic merges use the schema."""
    if media == JSON_PATCH:
        return apply_json_patch(current, change)
    if media == MERGE_PATCH:
        return apply_merge_patch(current, change)
    return apply_strategic_merge(schema(), current, change)


def reread(
    call: Call, patched: Json, duplicates: tuple[str, ...] = (), before: Object | None = None
) -> Object:
    """A patched object as if it had been sent: decoded by its schema, with defaults, in the hub version.

    Members that it shares with the object before, which is in stored form, are as they would be.
    """
    kind, codec = call.resource.kind_in(call.version), call.resource.codec
    shared = {} if codec is None else _shared(call, patched, before)
    try:
        _check_kind(call, patched)
        if codec is not None:
            value, unknown = codec.decode(_without(patched, shared), call.version)
        else:
            value, unknown = decode_strict(message_of(kind), patched)
    except BodyError as error:
        raise _unfit(patched, str(error)) from error
    problems = (*duplicates, *unknown)
    if problems and call.write.field_validation == "Strict":
        raise _unfit(patched, strict_error(problems))
    if call.write.field_validation != "Ignore":
        call.warnings.extend(warning_texts(problems))
    value["metadata"] = dict(value.get("metadata") or {})
    meta.check_name(call, value["metadata"])
    meta.check_namespace(call, value["metadata"])
    obj = to_hub(call.resource, value, call.version)
    call.resource.strategy.default(obj, call.context)
    if not shared:
        return obj
    obj.update(shared)
    # In the order in which they came: objects are shown as they are stored.
    return {name: obj[name] for name in (*patched, *obj) if name in obj}


def _without(patched: Json, shared: Object) -> Json:
    return {k: v for k, v in patched.items() if k not in shared} if shared else patched


def _shared(call: Call, patched: Json, before: Object | None) -> Object:
    """The members of a patched object that are those of the stored one."""
    if (
        before is None
        or not isinstance(patched, dict)
        or not is_kept_in(call.resource, call.version)
    ):
        return {}
    return {
        name: value
        for name, value in patched.items()
        if value is before.get(name) and isinstance(value, dict) and name != "metadata"
    }


def _check_kind(call: Call, patched: Json) -> None:
    """Refuse a patch that changes the kind of an object. Raises BodyError, which for an existing kind says what
    the object lacks to be of that kind."""
    kind = call.resource.kind_in(call.version)
    if not isinstance(patched, dict):
        return
    given = (patched.get("apiVersion", kind.api_version), patched.get("kind", kind.kind))
    if given == (kind.api_version, kind.kind):
        return
    group, _, version = str(given[0]).rpartition("/")
    named = GroupVersionKind(group, version, str(given[1]))
    message = known_message(named, call.core.resources)
    if message is None:
        raise MalformedError(
            f'no kind "{given[1]}" is registered for version "{given[0]}" in {SCHEME}'
        )
    decode_strict(message, patched)
    raise MalformedError(
        f"converting ({version}.{given[1]}) to ({internal_package(kind.group)}.{kind.kind}): "
        "unknown conversion"
    )


def _unfit(patched: Json, why: str) -> StatusError:
    """The error for a patch with an outcome that is not a valid object."""
    shown = encode(dict(sorted(patched.items())) if isinstance(patched, dict) else patched).decode()
    return invalid(Subject(), [invalid_field("patch", shown, why)])


async def _apply(call: Call, config: Json) -> Result:
    config = {} if config is None else config
    if not isinstance(config, dict):
        raise bad_request("error decoding YAML: the configuration is not an object")
    for name in ("apiVersion", "kind"):
        if not isinstance(config.get(name, ""), str):
            raise bad_request(f"error decoding YAML: {name} is not text")
    _report_duplicates(call)
    existing = call.core.store.latest(call.key)
    part = call.subresource.name if call.subresource is not None else ""
    if existing is None and part:
        raise not_found(call.subject)

    def applied(there: Call, live: Object | None) -> Object:
        return manager_of(there).apply(
            live,
            config,
            there.write.field_manager,
            force=there.write.force,
            now=there.context.now,
            subresource=part,
        )

    if existing is None:
        value = await planned(
            call, call.size, lambda there: _decoded(there, applied(there, None), there.version)
        )
        if uid := value["metadata"].get("uid"):
            why = f"the provided object specified uid {uid}, and no existing object was found"
            raise conflict(call.subject, f"uid mismatch: {why}")
        return Result(await store_new(call, value, owns=False), status=201)

    def changed(there: Call, obj: Object) -> Object:
        merged = _decoded(there, applied(there, obj), there.resource.hub_kind.version)
        there.resource.strategy.default(merged, there.context)
        return merged

    return Result(await replace(call, existing, changed, owns=False))


def _report_duplicates(call: Call) -> None:
    """Keys that occur twice in a configuration: an error, warnings or nothing, as requested. Raises StatusError 400."""
    duplicates = call.patch.duplicates if call.patch is not None else ()
    if duplicates and call.write.field_validation == "Strict":
        raise bad_request(f"error strict decoding YAML: {', '.join(duplicates)}")
    if call.write.field_validation != "Ignore":
        call.warnings.extend(warning_texts(duplicates))


def _decoded(call: Call, obj: Object, version: str) -> Object:
    """The result of apply, without the nulls it leaves where fields were removed."""
    codec, kind = call.resource.codec, call.resource.hub_kind
    kind = kind if version == kind.version else call.resource.kind_in(version)
    try:
        if codec is not None:
            value, _ = codec.decode(obj, version)
        else:
            value, _ = decode_strict(message_of(kind), obj)
    except BodyError as error:
        raise bad_request(str(error)) from error
    return _located(call, value)


def _located(call: Call, value: Object) -> Object:
    """An applied object with the name and namespace it was applied to. Raises StatusError 400."""
    value["metadata"] = dict(value.get("metadata") or {})
    meta.check_name(call, value["metadata"])
    meta.check_namespace(call, value["metadata"])
    return value
