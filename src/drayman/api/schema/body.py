"""What a request body claims to be, which comes before decoding it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import msgspec

from drayman.api.errors import UnrecognizedError
from drayman.api.struct import Json
from drayman.api.syntax.json_text import parse_tree
from drayman.api.syntax.values import Number, Pairs, type_word

_SHOWN_BYTES: Final = 30
_TYPE_STRUCT: Final = (
    'struct { APIVersion string "json:\\"apiVersion,omitempty\\"";'
    ' Kind string "json:\\"kind,omitempty\\"" }'
)


@dataclass(frozen=True, slots=True)
class Identity:
    """What a body claims to be; empty where it does not say."""

    api_version: str
    kind: str


class _TypeMeta(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    kind: str | None = None


_TYPE_META: Final = msgspec.json.Decoder(_TypeMeta)


def identify(body: bytes) -> Identity:
    """What a JSON body claims to be. Raises UnrecognizedError with the text for the client."""
    try:
        found = _TYPE_META.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return identify_tree(parse_tree(body, "couldn't get version/kind; json parse error: "))
    return Identity(found.api_version or "", found.kind or "")


def identify_tree(tree: Json) -> Identity:
    """What a parsed body claims to be. Raises UnrecognizedError."""
    if not isinstance(tree, Pairs | dict | None):
        raise _not_a_kind(f"{type_word(tree)} into Go value of type {_TYPE_STRUCT}")
    found = {"apiVersion": "", "kind": ""}
    for name, value in tree.items() if isinstance(tree, dict) else tree or ():
        if name not in found or value is None:
            continue
        if not isinstance(value, str) or isinstance(value, Number):
            raise _not_a_kind(f"{type_word(value)} into Go struct field .{name} of type string")
        found[name] = value
    return Identity(found["apiVersion"], found["kind"])


def _not_a_kind(mismatch: str) -> UnrecognizedError:
    prefix = "couldn't get version/kind; json parse error: json: cannot unmarshal"
    return UnrecognizedError(f"{prefix} {mismatch}")


def excerpt(body: bytes) -> str:
    """The start of a body as error messages show it: as text if it might be an object, otherwise in hexadecimal."""
    if not body:
        return "<empty>"
    start = body[:_SHOWN_BYTES]
    shown = start.decode(errors="replace") if body[0] == ord("{") else start.hex()
    return f"{shown} ..." if len(body) > _SHOWN_BYTES else shown
