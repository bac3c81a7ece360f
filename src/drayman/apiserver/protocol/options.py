"""The options of requests: read from the query (for DELETE also from the body), checked, and refused with the messages of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from drayman.api.struct import Json
from drayman.api.validation.field_errors import (
    FieldError,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from drayman.apiserver.protocol.errors import StatusError, Subject, bad_request
from drayman.apiserver.protocol.errors import invalid as invalid_status
from drayman.apiserver.protocol.exchange import Query, Request
from drayman.cluster import options
from drayman.cluster.options import WriteOptions

META_GROUP: Final = "meta.k8s.io"
ALL: Final = "All"
MANAGER_LENGTH: Final = 128
FIELD_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
PROPAGATIONS: Final = ("Foreground", "Background", "Orphan")
UNKNOWN_MANAGER: Final = "unknown"


def write_options(
    request: Request, kind: str, *, is_apply: bool = False, is_patch: bool = False
) -> WriteOptions:
    """The options of a write. `kind` is their name in errors, as in `CreateOptions`. Raises StatusError 422."""
    query = request.query
    if not query.pairs and not is_apply:
        return WriteOptions(field_manager=default_manager(request))
    manager, validation = query.text("fieldManager"), query.text("fieldValidation")
    force = query.flag("force") if is_patch else None
    errors: list[FieldError] = []
    if is_apply and not manager:
        errors.append(required("fieldManager", "is required for apply patch"))
    if is_patch and not is_apply and force is not None:
        errors.append(forbidden("force", "may not be specified for non-apply patch"))
    errors.extend(_manager_errors(manager))
    errors.extend(_dry_run_errors(query.all("dryRun")))
    if validation not in FIELD_VALIDATIONS:
        errors.append(not_supported("fieldValidation", validation, FIELD_VALIDATIONS))
    _refuse(kind, errors)
    return WriteOptions(
        dry_run=bool(query.all("dryRun")),
        field_manager=manager or default_manager(request),
        field_validation=validation,  # type: ignore[arg-type]
        force=bool(force),
    )


def default_manager(request: Request) -> str:
    """The name of the calling program, used if the request names no manager: its user agent up to the version."""
    name = request.header("user-agent").partition("/")[0]
    if not name.isprintable():
        name = "".join(filter(str.isprintable, name))
    return name[:MANAGER_LENGTH] or UNKNOWN_MANAGER


def _manager_errors(manager: str) -> Iterator[FieldError]:
    if len(manager.encode()) > MANAGER_LENGTH:
        yield too_long("fieldManager", MANAGER_LENGTH)
    position = 0
    for character in manager:
        if not character.isprintable():
            detail = f"invalid character U+{ord(character):04X} (at position {position})"
            yield invalid("fieldManager", manager, detail)
        position += len(character.encode())


def _dry_run_errors(values: tuple[str, ...]) -> Iterator[FieldError]:
    if any(value != ALL for value in values):
        yield not_supported("dryRun", list(values), (ALL,))


def _refuse(kind: str, errors: list[FieldError]) -> None:
    if errors:
        raise invalid_status(Subject(kind, META_GROUP), errors)


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of delete and deletecollection. None means not given."""

    dry_run: bool = False
    grace_seconds: int | None = None
    propagation: str | None = None
    orphan_dependents: bool | None = None
    uid: str | None = None
    resource_version: str | None = None


def delete_options(query: Query, body: Json) -> DeleteOptions:
    """The options of a deletion: those of the body if there is one, else those of the query. Raises StatusError."""
    options, dry_run = _options_of_body(body) if body is not None else _options_of_query(query)
    errors: list[FieldError] = []
    if options.orphan_dependents is not None and options.propagation is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(invalid("propagationPolicy", options.propagation, detail))
    if options.propagation is not None and options.propagation not in PROPAGATIONS:
        supported = (*PROPAGATIONS, "nil")
        errors.append(not_supported("propagationPolicy", options.propagation, supported))
    errors.extend(_dry_run_errors(dry_run))
    _refuse("DeleteOptions", errors)
    if options.grace_seconds is not None and options.grace_seconds < 0:
        # A negative period has always been taken for the shortest one.
        options = replace(options, grace_seconds=1)
    return replace(options, dry_run=bool(dry_run))


def _options_of_query(query: Query) -> tuple[DeleteOptions, tuple[str, ...]]:
    options = DeleteOptions(
        grace_seconds=integer(query, "gracePeriodSeconds"),
        propagation=query.get("propagationPolicy"),
        orphan_dependents=query.flag("orphanDependents"),
    )
    return options, query.all("dryRun")


def _options_of_body(body: Json) -> tuple[DeleteOptions, tuple[str, ...]]:
    if not isinstance(body, dict):
        raise bad_request(
            "couldn't get version/kind; json parse error: the options are not an object"
        )
    preconditions = _typed(body, "preconditions", dict) or {}
    options = DeleteOptions(
        grace_seconds=_typed(body, "gracePeriodSeconds", int),
        propagation=_typed(body, "propagationPolicy", str),
        orphan_dependents=_typed(body, "orphanDependents", bool),
        uid=_typed(preconditions, "uid", str),
        resource_version=_typed(preconditions, "resourceVersion", str),
    )
    dry_run = _typed(body, "dryRun", list) or []
    return options, tuple(str(value) for value in dry_run)


_GO_TYPES: Final = {
    "preconditions": "v1.Preconditions",
    "gracePeriodSeconds": "int64",
    "propagationPolicy": "v1.DeletionPropagation",
    "orphanDependents": "bool",
    "uid": "types.UID",
    "resourceVersion": "string",
    "dryRun": "[]string",
}
JSON_TYPES: Final = {
    bool: "bool",
    int: "number",
    float: "number",
    str: "string",
    dict: "object",
    list: "array",
}


def _typed(members: dict[str, Json], name: str, type_: type) -> Json:
    value = members.get(name)
    if value is None or (
        isinstance(value, type_) and (type_ is bool or (value is not True and value is not False))
    ):
        return value
    given = JSON_TYPES.get(type(value), "value")
    raise bad_request(
        f"json: cannot unmarshal {given} into Go struct field DeleteOptions.{name} of type {_GO_TYPES[name]}"
    )


class ListOptions(options.ListOptions, frozen=True, kw_only=True):
    """Options of list and watch: those that clients give a list, and those of watches."""

    timeout_seconds: int | None = None
    allow_bookmarks: bool = False
    send_initial_events: bool | None = None


def list_options(query: Query, *, watch: bool) -> ListOptions:
    """The options of a list or a watch. Raises StatusError 400 or 422."""
    options = ListOptions(
        label_selector=query.text("labelSelector"),
        field_selector=query.text("fieldSelector"),
        limit=integer(query, "limit") or 0,
        continue_=query.text("continue"),
        resource_version=query.text("resourceVersion"),
        resource_version_match=query.text("resourceVersionMatch"),  # type: ignore[arg-type]
        timeout_seconds=integer(query, "timeoutSeconds"),
        allow_bookmarks=bool(query.flag("allowWatchBookmarks")),
        send_initial_events=query.flag("sendInitialEvents"),
        omit_managed_fields=bool(query.flag("omitManagedFields")),
    )
    errors = _watch_errors(options) if watch else _list_errors(options)
    _refuse("ListOptions", list(errors))
    return options


_MATCH: Final = "resourceVersionMatch"


def _list_errors(options: ListOptions) -> Iterator[FieldError]:
    if match := options.resource_version_match:
        if not options.resource_version:
            yield forbidden(_MATCH, f"{_MATCH} is forbidden unless resourceVersion is provided")
        if options.continue_:
            yield forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided")
        if match not in ("Exact", "NotOlderThan"):
            yield not_supported(_MATCH, match, ("Exact", "NotOlderThan", ""))
        if match == "Exact" and options.resource_version == "0":
            yield forbidden(_MATCH, f'{_MATCH} "exact" is forbidden for resourceVersion "0"')
    if options.send_initial_events is not None:
        yield forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list")


def _watch_errors(options: ListOptions) -> Iterator[FieldError]:
    match = options.resource_version_match
    if options.send_initial_events is not None and match != "NotOlderThan":
        yield forbidden(_MATCH, f"sendInitialEvents requires setting {_MATCH} to NotOlderThan")
    if match:
        if options.send_initial_events is None:
            yield forbidden(
                _MATCH, f"{_MATCH} is forbidden for watch unless sendInitialEvents is provided"
            )
        if match != "NotOlderThan":
            yield not_supported(_MATCH, match, ("NotOlderThan",))
        if options.continue_:
            yield forbidden(_MATCH, f"{_MATCH} is forbidden when continue is provided")


def integer(query: Query, name: str) -> int | None:
    """A 64-bit integer of the query. Raises StatusError 400 with the words of Go's parser."""
    text = query.get(name)
    if text is None or text == "":
        return None
    return parse_int64(text)


def parse_int64(text: str) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    value = int(text) if len(digits) < 30 else 1 << 70
    if not -(2**63) <= value < 2**63:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return value


def parse_version(text: str) -> int | None:
    """A resourceVersion as a number, or None if it is not one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None


def version_syntax(text: str) -> StatusError:
    """What the real server answers to a resourceVersion that is not a number if it has not checked it first."""
    detail = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
    return StatusError(500, "", detail)
