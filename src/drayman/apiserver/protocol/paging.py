"""Continue tokens: where a page of a list ended, and which revision it showed.

The form is Kubernetes' own, so that tokens look alike if inspected; clients must not rely on it.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Final

import msgspec

from drayman.apiserver.protocol.errors import StatusError, bad_request

TOKEN_VERSION: Final = "meta.k8s.io/v1"
CURRENT: Final = -1
"""Revision of a token that continues at the present state, as handed out when the original revision is gone."""


@dataclass(frozen=True, slots=True)
class Position:
    """A list continues after (namespace, name). `all_namespaces` says whether the list spans namespaces."""

    revision: int
    namespace: str
    name: str


class _Token(msgspec.Struct, kw_only=True):
    v: str = ""
    rv: int = 0
    start: str = ""


def encode_token(position: Position, *, all_namespaces: bool) -> str:
    start = f"{position.namespace}/{position.name}" if all_namespaces else position.name
    token = _Token(v=TOKEN_VERSION, rv=position.revision, start=f"/{start}\0")
    # Go escapes the NUL the same way msgspec does.
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).rstrip(b"=").decode()


def decode_token(text: str, *, namespace: str | None) -> Position:
    """The position a client sends back. `namespace` is None for a list of all namespaces. Raises StatusError 400."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise _invalid(f"continue key is not valid: illegal base64 data: {error}") from error
    try:
        token = msgspec.json.decode(raw, type=_Token)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _invalid(f"continue key is not valid: {_reason(raw)}") from error
    if token.v != TOKEN_VERSION:
        raise _invalid(
            f'continue key is not valid: server does not recognize this encoded version "{token.v}"'
        )
    if not token.start.startswith("/") or token.rv < CURRENT or token.rv == 0:
        raise _invalid(
            "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
        )
    start = token.start[1:].removesuffix("\0")
    if namespace is not None:
        return Position(token.rv, namespace, start)
    within, _, name = start.rpartition("/")
    return Position(token.rv, within, name)


def _invalid(why: str) -> StatusError:
    return bad_request(f"invalid continue token: {why}")


def _reason(raw: bytes) -> str:
    """The message of Go's JSON decoder for the most common case, text that is not a token at all."""
    if not raw:
        return "unexpected end of JSON input"
    first = chr(raw[0])
    shown = first if first.isprintable() and first.isascii() else f"\\u{raw[0]:04x}"
    return f"invalid character '{shown}' looking for beginning of value"
