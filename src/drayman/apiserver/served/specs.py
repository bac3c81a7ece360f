"""Specs that come again: read and brought into their final form once for all objects that carry the same.

Everything here comes to what `decode_strict` and `normalise` would come to; only specs in which there is nothing to object to are
remembered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from drayman.api.schema import Decoded, Message, decode_strict
from drayman.api.schema.normal import field_writer, normalise, normalise_around
from drayman.api.schema.quick import Unusual, read_value
from drayman.api.struct import Json
from drayman.api.syntax.json_text import parse_unique
from drayman.apiserver.served.recurring import LONGEST, Recurring, text_of
from drayman.apiserver.served.strategy import Object

SPEC: Final = "spec"
_MEMBER: Final = b'"spec":'
_SPACE: Final = b" \t\r\n"

_read: Final[Recurring[bytes]] = Recurring()
"""Specs as they were read, as JSON text, by message and by the text that they came as."""
_final: Final[Recurring[Object]] = Recurring()
"""Specs in their final form, by message and text."""


class _WithSpec(msgspec.Struct):
    spec: msgspec.Raw = msgspec.Raw()


_spec: Final = msgspec.json.Decoder(_WithSpec)
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


def read_body(message: Message, body: Json) -> Decoded:
    """What `decode_strict` makes of a body: JSON text, or a value decoded elsewhere. Raises BodyError."""
    if SPEC not in message.fields:
        return decode_strict(message, body)
    split = _split(body)
    if split is None:
        return decode_strict(message, body)
    text, rest = split
    known = _read.find((message, text))
    if known is None:
        decoded = decode_strict(message, body)
        if not decoded.problems and isinstance(decoded.value.get(SPEC), dict):
            _read.keep((message, text), _encode(decoded.value[SPEC]))
        return decoded
    try:
        value = read_value(message, rest)
    except Unusual:
        # What is said about it depends on the body as it came.
        return decode_strict(message, body)
    value[SPEC] = _decode(known)
    return Decoded(value, ())


def _split(body: Json) -> tuple[bytes, Object] | None:
    """The text of the spec of a body and its other members, or None where one of these cannot be told."""
    if isinstance(body, bytes):
        # Large bodies are read in another thread, which shares no memory with this one.
        return _split_text(body.strip(_SPACE)) if len(body) <= LONGEST else None
    if type(body) is not dict or type(body.get(SPEC)) is not dict:
        return None
    text = text_of(body[SPEC])
    if text is None:
        return None
    return text, {name: value for name, value in body.items() if name != SPEC}


def _split_text(body: bytes) -> tuple[bytes, Object] | None:
    try:
        spec = bytes(_spec.decode(body).spec)
        if not spec.startswith(b"{"):
            return None
        # Where this takes out something else of the same text, or one spec of two, the spec is still there.
        rest = parse_unique(body.replace(_MEMBER + spec, _MEMBER + b"null", 1))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return (spec, rest) if type(rest) is dict and rest.pop(SPEC, spec) is None else None


def final_form(message: Message, obj: Mapping[str, Json]) -> Object:
    """What `normalise` makes of an object. Its spec may be shared with others: it is not to be changed."""
    spec = obj.get(SPEC)
    text = text_of(spec) if type(spec) is dict else None
    if text is None or SPEC not in message.fields:
        return normalise(message, obj)
    known = _final.find((message, text))
    if known is None:
        known = {}
        field_writer(message.fields[SPEC])(spec, known)
        _final.keep((message, text), known)
    if SPEC not in known:
        return normalise(message, obj)
    return normalise_around(message, obj, known)
