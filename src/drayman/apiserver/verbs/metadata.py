"""The metadata the server owns: what it sets on creation, keeps on update, and checks for every kind.

Kinds check their metadata themselves, with their own rules for names. The checks here are additional ones for all kinds, as in
the real server, which is why some causes appear twice in its answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from drayman.api.codec import convert
from drayman.api.formats import path_segment_problems
from drayman.api.meta import ObjectMeta
from drayman.api.struct import Json
from drayman.api.validation.field_errors import FieldError, invalid_each
from drayman.api.validation.metadata import check_metadata, check_metadata_update
from drayman.apiserver.protocol.errors import bad_request, internal
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.served.strategy import Context, Object, Strategy, restore

GENERATED_BASE_LENGTH: Final = 58
NAME_ATTEMPTS: Final = 8
NAMESPACE_MISMATCH: Final = (
    "the namespace of the provided object does not match the namespace sent on the request"
)


def check_namespace(call: Call, metadata: Object) -> None:
    """Put the request's namespace on the object, or refuse one that names another. Raises StatusError 400."""
    if not call.resource.namespaced:
        metadata.pop("namespace", None)
        return
    if metadata.get("namespace", call.namespace) not in (call.namespace, ""):
        raise bad_request(NAMESPACE_MISMATCH)
    metadata["namespace"] = call.namespace


def check_name(call: Call, metadata: Object) -> None:
    """Refuse an object whose name is not the one of the request's address. Raises StatusError 400."""
    name = metadata.get("name", "")
    if not name:
        raise bad_request(
            f"the name of the object ({call.name} based on URL) was undeterminable: name must be provided"
        )
    if name != call.name:
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({call.name})"
        )


def fill_for_create(metadata: Object, context: Context) -> None:
    """Set identity and times, which the server decides whatever a client sends."""
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion"):
        metadata.pop(name, None)
    metadata["uid"] = context.ids.uid()
    metadata["creationTimestamp"] = context.now


def generate_name(metadata: Object, context: Context, is_taken: Callable[[str], bool]) -> bool:
    """Complete a name prefix, trying several suffixes until the name is free. Returns whether a name was generated."""
    base: str = metadata.get("generateName") or ""
    if not base or metadata.get("name"):
        return False
    for _ in range(NAME_ATTEMPTS):
        name = metadata["name"] = base[:GENERATED_BASE_LENGTH] + context.ids.suffix()
        if not is_taken(name):
            break
    return True


def keep_on_update(new: Object, old: Object) -> None:
    """What an update can neither set nor remove."""
    if not new.get("uid"):
        restore(new, old, "uid")
    restore(new, old, "creationTimestamp")
    restore(new, old, "selfLink")
    if "deletionTimestamp" in old:
        restore(new, old, "deletionTimestamp")
    if "deletionGracePeriodSeconds" in old and "deletionGracePeriodSeconds" not in new:
        restore(new, old, "deletionGracePeriodSeconds")


def without_duplicate_owners(metadata: Object) -> bool:
    """Remove duplicate owner references. Returns whether there were any."""
    owners = metadata.get("ownerReferences")
    if not owners or len(owners) < 2:
        return False
    unique: dict[frozenset[tuple[str, Json]], Object] = {}
    for owner in owners:
        unique.setdefault(frozenset(owner.items()), owner)
    if len(unique) == len(owners):
        return False
    metadata["ownerReferences"] = list(unique.values())
    return True


def common_create_errors(
    metadata: Object, strategy: Strategy, *, namespaced: bool
) -> list[FieldError]:
    """The checks on creation that run for every kind after its own.

    Kinds with rules have checked their metadata; it only remains to check that the name can be part of a path.
    """
    name = metadata.get("name", "")
    if name and type(strategy).validate is not Strategy.validate:
        return invalid_each("metadata.name", name, path_segment_problems(name))
    return list(
        check_metadata(
            convert(ObjectMeta, metadata),
            namespaced=namespaced,
            name_problems=path_segment_problems,
            check_base=False,
        )
    )


def common_update_errors(new: Object, old: Object, *, namespaced: bool) -> Iterator[FieldError]:
    """The checks on update that run for every kind before its own."""
    metadata = convert(ObjectMeta, new)
    yield from check_metadata(
        metadata, namespaced=namespaced, name_problems=path_segment_problems, check_base=False
    )
    yield from check_metadata_update(metadata, convert(ObjectMeta, old))


def version_of(metadata: Object) -> int:
    """The resourceVersion a client sent, 0 for none. Raises StatusError 500, as odd as that is."""
    text = metadata.get("resourceVersion", "")
    if text == "":
        return 0
    digits = text.lstrip("0") or text[:1]
    if digits.isascii() and digits.isdigit() and len(digits) <= 20 and int(digits) < 2**64:
        return int(digits)
    raise internal(f'strconv.ParseUint: parsing "{text}": invalid syntax')
