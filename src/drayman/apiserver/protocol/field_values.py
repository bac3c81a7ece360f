"""Values in validation messages, as the real server shows them.

It shows the objects it works with internally. Their members have the names of Go structs and are all present, set or not. Metadata
and values that clients sent as text are shown as they are on the wire.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Final

from drayman.api.codec import encode_json
from drayman.api.quantity import Quantity
from drayman.api.struct import ApiStruct, Json
from drayman.api.validation import ErrorKind, FieldError

_WITHOUT_VALUE: Final = frozenset(
    {ErrorKind.REQUIRED, ErrorKind.TOO_LONG, ErrorKind.FORBIDDEN, ErrorKind.INTERNAL}
)
_GO_NAMES: Final = {"cel": "CEL", "uid": "UID", "ips": "IPs", "apiGroup": "APIGroup"}
_ON_THE_WIRE: Final = ("drayman.api.meta",)
"""Modules whose types look the same internally as on the wire."""


class ShownValues:
    """Values as messages show them. A list that many errors quote is written once."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[int, tuple[object, str]] = {}

    def shown(self, value: object) -> str:
        if not isinstance(value, list | tuple | dict | ApiStruct):
            return shown(value)
        known = self._known.get(id(value))
        if known is None:
            # With the value itself: as long as it is kept, no other one can have its id.
            known = self._known[id(value)] = (value, shown(value))
        return known[1]


def error_body(error: FieldError, values: ShownValues) -> str:
    """The message of a field error without the field: `FieldError.body`, but with the value in the server's internal form."""
    text = error.kind.label
    if error.kind not in _WITHOUT_VALUE:
        text += f": {values.shown(error.value)}"
    return f"{text}: {error.detail}" if error.detail else text


def error_text(error: FieldError) -> str:
    """The message of a field error."""
    return f"{error.path}: {error_body(error, ShownValues())}"


def shown(value: object) -> str:
    """A value as messages show it."""
    if isinstance(value, str | Quantity):
        return json.dumps(str(value), ensure_ascii=False)
    return encode_json(_inside(value)).decode()


def _inside(value: object) -> Json:
    if isinstance(value, Quantity):
        return str(value)
    if isinstance(value, ApiStruct):
        if type(value).__module__ in _ON_THE_WIRE:
            return value
        names = _names(type(value))
        return {go: _member(getattr(value, name)) for name, go in names}
    if isinstance(value, dict):
        return {key: _inside(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_inside(item) for item in value]
    return value


def _member(value: object) -> Json:
    """A member of a struct: empty lists and maps are nil there."""
    return None if isinstance(value, tuple | dict) and not value else _inside(value)


@cache
def _names(type_: type[ApiStruct]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, _GO_NAMES.get(wire) or wire[:1].upper() + wire[1:])
        for name, wire in zip(type_.__struct_fields__, type_.__struct_encode_fields__, strict=True)
    )
