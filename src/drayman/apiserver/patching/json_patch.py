"""JSON Patch (RFC 6902), with the liberties Kubernetes takes.

The real server uses a library that is laxer than the RFC, and clients have come to rely on it: `replace` of an absent member
adds it, a missing `value` is null, negative indices count from the end, anything before the first slash of a path is
ignored, and null equals absence in a `test`. Every failure gets the same answer: 422 without details.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from drayman.api.struct import Json
from drayman.api.syntax.values import MAX_DEPTH, depth_exceeds
from drayman.apiserver.protocol.errors import StatusError, bad_request, rejected_patch
from drayman.apiserver.protocol.options import JSON_TYPES

MAX_OPERATIONS: Final = 10_000
"""A longer patch is refused before it is tried."""

MAX_COPIED_BYTES: Final = 3 * 1024 * 1024
"""What all `copy` operations of a patch may add together: a short patch must not make a huge object by doubling."""

_INDEX: Final = re.compile(r"[+-]?[0-9]{1,18}")


def apply_json_patch(obj: Json, operations: Json) -> Json:
    """The patched document; `obj` is not changed, and shares with it the members that no operation is about.

    Raises `StatusError` 400, 413 or 422.
    """
    checked = _checked(operations)
    untouched = _untouched(obj, checked)
    document = _Document(
        {name: value if name in untouched else _copy(value) for name, value in obj.items()}
        if untouched
        else _copy(obj)
    )
    try:
        for operation in checked:
            handler = _HANDLERS.get(operation.get("op"))
            if handler is None:
                raise rejected_patch()
            handler(document, operation)
    except RecursionError:
        # Each copy into itself doubles how deep a value is.
        raise rejected_patch() from None
    touched = document.root
    if untouched:
        touched = {name: value for name, value in touched.items() if name not in untouched}
    if depth_exceeds(touched, MAX_DEPTH):
        # Moves and copies can nest deeper than any single operation does.
        raise rejected_patch()
    return document.root


def _untouched(obj: Json, operations: list[dict[str, Json]]) -> frozenset[str]:
    """The members of an object that operations neither read nor change; none if one of them is about the whole."""
    if not isinstance(obj, dict):
        return frozenset()
    names: set[str] = set()
    for operation in operations:
        for path in (operation.get("path"), operation.get("from")):
            if path is not None:
                parts = path.split("/")
                if len(parts) < 2:
                    return frozenset()
                names.add(_unescaped(parts[1]))
    return frozenset(obj.keys() - names)


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _checked(operations: Json) -> list[dict[str, Json]]:
    """The operations, none for null; anything but a list of operations is refused."""
    if operations is None:
        return []
    if not isinstance(operations, list):
        raise _undecodable(operations, "Go value of type []handlers.jsonPatchOp")
    for operation in operations:
        if not isinstance(operation, dict):
            raise _undecodable(operation, "Go value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            value = operation.get(name)
            if value is not None and not isinstance(value, str):
                raise _undecodable(value, f"Go struct field jsonPatchOp.{name} of type string")
    if len(operations) > MAX_OPERATIONS:
        raise StatusError(
            413,
            "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(operations)}",
        )
    return operations


def _undecodable(value: Json, target: str) -> StatusError:
    kind = JSON_TYPES.get(type(value), "null")
    return bad_request(f"error decoding patch: json: cannot unmarshal {kind} into {target}")


class _Document:
    """A document being changed. `copied` counts the bytes that copies have added."""

    __slots__ = ("copied", "root")

    def __init__(self, root: Json) -> None:
        self.root = root
        self.copied = 0

    def parent(self, path: str) -> tuple[Json, str]:
        """The object or list a path leads into, and the last part of the path."""
        parts = [_unescaped(part) for part in path.split("/")[1:]]
        if not parts:
            raise rejected_patch()
        container = self.root
        for part in parts[:-1]:
            container = _member(container, part)
            if not isinstance(container, dict | list):
                raise rejected_patch()
        return container, parts[-1]


def _member(container: Json, part: str) -> Json:
    """The value at a part of a path; None where an object has no such member."""
    if isinstance(container, dict):
        return container.get(part)
    return container[_index(part, len(container))]


def _index(part: str, length: int) -> int:
    """An index below `length`; a negative one counts from the end."""
    if not _INDEX.fullmatch(part):
        raise rejected_patch()
    index = int(part)
    if not -length <= index < length:
        raise rejected_patch()
    return index if index >= 0 else index + length


def _put(container: Json, part: str, value: Json) -> None:
    """Add to an object, or insert into a list; `-` is the end of a list."""
    if isinstance(container, dict):
        container[part] = value
    elif part == "-":
        container.append(value)
    else:
        container.insert(_index(part, len(container) + 1), value)


def _take(container: Json, part: str) -> Json:
    if isinstance(container, dict):
        if part not in container:
            raise rejected_patch()
        return container.pop(part)
    return container.pop(_index(part, len(container)))


def _path(operation: Mapping[str, Json], name: str = "path") -> str:
    path = operation.get(name)
    if not isinstance(path, str):
        raise rejected_patch()
    return path


def _add(document: _Document, operation: Mapping[str, Json]) -> None:
    container, part = document.parent(_path(operation))
    _put(container, part, _copy(operation.get("value")))


def _remove(document: _Document, operation: Mapping[str, Json]) -> None:
    _take(*document.parent(_path(operation)))


def _replace(document: _Document, operation: Mapping[str, Json]) -> None:
    path, value = _path(operation), _copy(operation.get("value"))
    if path == "":
        if not isinstance(value, dict | list):
            raise rejected_patch()
        document.root = value
        return
    container, part = document.parent(path)
    if isinstance(container, dict):
        container[part] = value
    else:
        container[_index(part, len(container))] = value


def _move(document: _Document, operation: Mapping[str, Json]) -> None:
    value = _take(*document.parent(_path(operation, "from")))
    container, part = document.parent(_path(operation))
    _put(container, part, value)


def _duplicate(document: _Document, operation: Mapping[str, Json]) -> None:
    value = _member(*document.parent(_path(operation, "from")))
    container, part = document.parent(_path(operation))
    document.copied += len(msgspec.json.encode(value))
    if document.copied > MAX_COPIED_BYTES:
        raise rejected_patch()
    _put(container, part, _copy(value))


def _test(document: _Document, operation: Mapping[str, Json]) -> None:
    path = _path(operation)
    found = _member(*document.parent(path)) if path else document.root
    if not _same(found, operation.get("value")):
        raise rejected_patch()


_HANDLERS: Final[Mapping[Json, Callable[[_Document, Mapping[str, Json]], None]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _duplicate,
    "test": _test,
}


def _same(left: Json, right: Json) -> bool:
    """Equality of JSON values by their notation: 1, 1.0 and true are three values."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return type(left) is type(right) and bool(left == right)


def _copy(value: Json) -> Json:
    """A deep copy of a JSON value; scalars cannot change and are shared."""
    if isinstance(value, dict):
        return {name: _copy(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
