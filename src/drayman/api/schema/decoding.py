"""From a request body to the value of an object, as the API server would read it.

The value is a dictionary without anything that the API server could not tell from its absence: nulls, unknown fields, and, in
fields that are not pointers, empty texts, zeros, `false` and structs with nothing in them. Empty lists and maps stay, since some
are written out. Quantities and times are in the form in which they are written.
"""

from __future__ import annotations

from typing import NamedTuple

from drayman.api.schema.exact import decode_exactly
from drayman.api.schema.model import Message
from drayman.api.schema.quick import Unusual, decode_quickly, read_value
from drayman.api.struct import Json
from drayman.api.syntax.json_text import parse_tree


class Decoded(NamedTuple):
    """A value, and what a strict server would refuse it for: `unknown field "spec.x"`, `duplicate field "data.a"`."""

    value: dict[str, Json]
    problems: tuple[str, ...]


def decode_strict(message: Message, body: Json) -> Decoded:
    """Decodes JSON text, a tree of `body.parse_tree`, or a plain JSON value. Raises BodyError."""
    try:
        if isinstance(body, bytes):
            return Decoded(decode_quickly(message, body), ())
        return Decoded(read_value(message, body), ())
    except Unusual:
        tree = parse_tree(body) if isinstance(body, bytes) else body
        return Decoded(*decode_exactly(message, tree))


def strict_error(problems: tuple[str, ...]) -> str:
    """The error for a request that asked for strict validation."""
    return "strict decoding error: " + ", ".join(problems)
