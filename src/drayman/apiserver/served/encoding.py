"""JSON as Kubernetes writes it, and the stored form of objects.

Go escapes the characters that mean something in HTML; some clients compare bytes. An object is encoded once, when it is written:
only the store knows its revision, so it is given a function that inserts the revision into prepared bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

import msgspec
import yaml

from drayman.api.struct import Json
from drayman.apiserver.served.resources import GroupVersionKind
from drayman.apiserver.served.strategy import Object

_ESCAPES: Final = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
)
_WIDE_ESCAPES: Final = (
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)
_LEADING: Final = ("name", "generateName", "namespace", "uid")
"""Metadata that precedes the resourceVersion."""

_REVISION: Final = b'"resourceVersion":"'
_NO_REVISION: Final = _REVISION + b'"'

_encoder = msgspec.json.Encoder()


def encode(value: Json) -> bytes:
    """Compact JSON in Go's escaping. These characters occur inside strings only, so replacing bytes is safe."""
    data = _encoder.encode(value)
    for plain, escaped in _ESCAPES:
        if plain in data:
            data = data.replace(plain, escaped)
    # Searching for several bytes takes as long as encoding; hardly any object contains one of these.
    if not data.isascii():
        for plain, escaped in _WIDE_ESCAPES:
            data = data.replace(plain, escaped)
    return data


def encode_pretty(value: Json) -> bytes:
    """JSON for people."""
    return indented(encode(value))


def indented(data: bytes) -> bytes:
    """A JSON text with a line for each value, indented two spaces deeper than its parent."""
    return msgspec.json.format(data, indent=2)


def encode_yaml(value: Json) -> bytes:
    items = value.get("items") if isinstance(value, dict) else None
    if not isinstance(items, list) or not items:
        return _dumped(value)
    # One item at a time: of a whole list, millions of small objects would be in memory at once.
    return b"".join(
        b"items:\n" + b"".join(_dumped([item]) for item in items)
        if name == "items"
        else _dumped({name: value[name]})
        for name in sorted(value)
    )


def _dumped(value: Json) -> bytes:
    text: str = yaml.safe_dump(value, default_flow_style=False, allow_unicode=True, width=1 << 20)
    return text.encode()


def decode(data: bytes) -> Object:
    """A private copy of a stored object."""
    obj: Object = msgspec.json.decode(data)
    return obj


@cache
def type_prefix(kind: GroupVersionKind) -> bytes:
    """How the JSON text of every stored object of a kind begins. A list item is a brace and the rest of the text."""
    return b'{"kind":' + encode(kind.kind) + b',"apiVersion":' + encode(kind.api_version) + b","


def stored_form(obj: Object, kind: GroupVersionKind) -> Callable[[int], bytes]:
    """The bytes of an object as a function of its revision. The object has a name and a uid."""
    given: Object = obj["metadata"]
    metadata: Object = {name: given[name] for name in _LEADING if name in given}
    metadata["resourceVersion"] = ""
    metadata.update(given)
    metadata["resourceVersion"] = ""
    whole: Object = {"kind": kind.kind, "apiVersion": "", "metadata": metadata}
    whole.update(obj)
    whole["kind"], whole["apiVersion"], whole["metadata"] = kind.kind, kind.api_version, metadata
    # Only strings precede it, and quotes are escaped in those.
    before, _, after = encode(whole).partition(_NO_REVISION)
    before += _REVISION

    def with_revision(revision: int) -> bytes:
        return b'%b%d"%b' % (before, revision, after)

    return with_revision
