"""URLs, taken apart as Go's `net/url` does it (Go 1.26).

Everything happens on bytes, because escapes such as `%ff` need not be text; what leaves this module is text again. Two entry points decide
what is a URL at all: `parse_request`, which requires an absolute URL or path, and `parse`, which splits off a fragment.
"""

from __future__ import annotations

import ipaddress
import re
import string
from enum import Enum, auto

from msgspec import Struct
from msgspec.structs import replace

_ALPHANUMERIC = frozenset((string.ascii_letters + string.digits).encode())
_UNRESERVED = _ALPHANUMERIC | frozenset(b"-_.~")
_HOST = _UNRESERVED | frozenset(b"!$&'()*+,;=:[]<>\"")
_USERINFO = re.compile(rb"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_SCHEME = re.compile(rb"([A-Za-z][A-Za-z0-9+\-.]*):(.*)", re.DOTALL)
_PORT = re.compile(rb"(:[0-9]*)?")
_ESCAPE = re.compile(rb"%(?:([0-9a-fA-F]{2})|.{0,2})", re.DOTALL)
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_NON_ASCII = 0x80
_STRICT_PORT_SCHEMES = (b"http", b"https")


class Part(Enum):
    """The parts of a URL, each of which has its own escaping rules."""

    PATH = auto()
    HOST = auto()
    ZONE = auto()  # of an IPv6 address in brackets
    USER = auto()
    FRAGMENT = auto()
    QUERY = auto()


_PLAIN = {
    Part.PATH: _UNRESERVED | frozenset(b"$&+,/:;=@"),
    Part.HOST: _HOST,
    Part.USER: _UNRESERVED | frozenset(b"$&+,;="),
    Part.FRAGMENT: _UNRESERVED | frozenset(b"$&+,/:;=?@!()*"),
}
"""The bytes that are never escaped when a part is written."""

_SUB_DELIMITERS = frozenset(b"!$&'()*+,;=:@[]%")


class Url(Struct, frozen=True):
    scheme: bytes = b""
    opaque: bytes = b""
    user: tuple[bytes, ...] | None = None  # the name, and the password if there is one
    host: bytes = b""
    path: bytes = b""
    raw_path: bytes = b""
    forced_query: bool = False
    query: bytes = b""
    raw_fragment: bytes = b""
    rooted: bool = False  # `scheme:/path`: there is no host, not even an empty one

    @property
    def hostname(self) -> str:
        return _text(_split_port(self.host)[0])

    @property
    def port(self) -> str:
        return _text(_split_port(self.host)[1])

    @property
    def escaped_path(self) -> str:
        return _text(self._escaped_path())

    def _escaped_path(self) -> bytes:
        if self.path == b"*":
            return b"*"
        return _as_written(self.raw_path, Part.PATH)

    def query_values(self) -> dict[str, list[object]]:
        """The values of each parameter, in order. Malformed parameters are left out."""
        values: dict[str, list[object]] = {}
        for setting in self.query.split(b"&"):
            if not setting or b";" in setting:
                continue
            key, _, value = setting.partition(b"=")
            try:
                pair = [
                    _text(unescape(part.replace(b"+", b" "), Part.QUERY)) for part in (key, value)
                ]
            except ValueError:
                continue
            values.setdefault(pair[0], []).append(pair[1])
        return values

    def __str__(self) -> str:
        prefix = self.scheme + b":" if self.scheme else b""
        body = self.opaque or self._authority() + self._escaped_path()
        if not prefix and not self.opaque and b":" in body.partition(b"/")[0]:
            prefix = b"./"  # otherwise it would read as a scheme
        suffix = b"?" + self.query if self.forced_query or self.query else b""
        if self.raw_fragment:
            suffix += b"#" + _as_written(self.raw_fragment, Part.FRAGMENT)
        return _text(prefix + body + suffix)

    def _authority(self) -> bytes:
        if not self.host and self.user is None and (self.rooted or not (self.scheme and self.path)):
            return b""
        user = (
            b""
            if self.user is None
            else b":".join(escape(part, Part.USER) for part in self.user) + b"@"
        )
        return b"//" + user + escape(self.host, Part.HOST)


def parse_request(text: str) -> Url:
    """An absolute URL or an absolute path. Raises ValueError."""
    raw = text.encode()
    if not raw:
        raise ValueError("empty url")
    return _parse(raw, via_request=True)


def parse(text: str) -> Url:
    """Any URL or reference, with its fragment. Raises ValueError."""
    raw, _, fragment = text.encode().partition(b"#")
    url = _parse(raw, via_request=False)
    unescape(fragment, Part.FRAGMENT)
    return replace(url, raw_fragment=fragment)


def _parse(raw: bytes, *, via_request: bool) -> Url:
    if _CONTROL.search(raw):
        raise ValueError("net/url: invalid control character in URL")
    if raw == b"*":
        return Url(path=raw, raw_path=raw)
    scheme, rest = _split_scheme(raw)
    forced_query = rest.endswith(b"?") and rest.count(b"?") == 1
    rest, _, query = rest.partition(b"?")
    if not rest.startswith(b"/"):
        if scheme:
            return Url(scheme, opaque=rest, forced_query=forced_query, query=query)
        if via_request:
            raise ValueError("invalid URI for request")
        if b":" in rest.partition(b"/")[0]:
            raise ValueError("first path segment in URL cannot contain colon")
    user, host, rooted = None, b"", bool(scheme) and rest.startswith(b"/")
    if rest.startswith(b"//") and (scheme or not (via_request or rest.startswith(b"///"))):
        authority, slash, path = rest[2:].partition(b"/")
        user, host = _parse_authority(scheme, authority)
        rest, rooted = slash + path, False
    path = unescape(rest, Part.PATH)
    return Url(scheme, b"", user, host, path, rest, forced_query, query, b"", rooted)


def _split_scheme(raw: bytes) -> tuple[bytes, bytes]:
    if raw.startswith(b":"):
        raise ValueError("missing protocol scheme")
    match = _SCHEME.fullmatch(raw)
    return (match[1].lower(), match[2]) if match else (b"", raw)


def _parse_authority(scheme: bytes, authority: bytes) -> tuple[tuple[bytes, ...] | None, bytes]:
    userinfo, at, host = authority.rpartition(b"@")
    host = _parse_host(scheme, host)
    if not at:
        return None, host
    if not _USERINFO.fullmatch(userinfo):
        raise ValueError("net/url: invalid userinfo")
    return tuple(unescape(part, Part.USER) for part in userinfo.split(b":", 1)), host


def _parse_host(scheme: bytes, host: bytes) -> bytes:
    if b"[" in host:
        return _parse_bracketed(host)
    # A host has no colon except before the port. Schemes with lists of hosts may break that rule, these must not.
    find = host.find if scheme in _STRICT_PORT_SCHEMES else host.rfind
    if (colon := find(b":")) >= 0:
        _check_port(host[colon:])
    return unescape(host, Part.HOST)


def _parse_bracketed(host: bytes) -> bytes:
    if host.rfind(b"[") > 0:
        raise ValueError("invalid IP-literal")
    inside, bracket, port = host[1:].rpartition(b"]")
    if not bracket:
        raise ValueError("missing ']' in host")
    _check_port(port)
    zone = inside.find(b"%25")
    if zone >= 0:
        address = unescape(inside[:zone], Part.HOST) + unescape(inside[zone:], Part.ZONE)
    else:
        address = unescape(inside, Part.HOST)
    ipaddress.IPv6Address(_text(address).partition("%")[0])
    if address.endswith(b"%"):
        raise ValueError("invalid host: zone must be a non-empty string")
    return b"[" + address + b"]" + port


def _check_port(port: bytes) -> None:
    if not _PORT.fullmatch(port):
        raise ValueError(f"invalid port {_text(port)!r} after host")


def _split_port(host: bytes) -> tuple[bytes, bytes]:
    name, colon, port = host.rpartition(b":")
    if not colon or not _PORT.fullmatch(b":" + port):
        name, port = host, b""
    if name.startswith(b"[") and name.endswith(b"]"):
        name = name[1:-1]
    return name, port


def unescape(raw: bytes, part: Part) -> bytes:
    """Raises ValueError for a malformed escape, and in hosts for any character that is not allowed there."""
    if part in (Part.HOST, Part.ZONE):
        for byte in _ESCAPE.sub(b"", raw):
            if byte < _NON_ASCII and byte not in _HOST:
                raise ValueError(f"invalid character {chr(byte)!r} in host name")

    def replacement(match: re.Match[bytes]) -> bytes:
        if match[1] is None or not _may_escape(byte := int(match[1], 16), part):
            raise ValueError(f"invalid URL escape {_text(match[0])!r}")
        return bytes((byte,))

    return _ESCAPE.sub(replacement, raw)


def _may_escape(byte: int, part: Part) -> bool:
    """A host may escape only what is not ASCII; a zone only what it could have written plainly, or a space."""
    if part is Part.HOST:
        return byte >= _NON_ASCII or byte == ord("%")
    return part is not Part.ZONE or byte in _HOST or byte in b"% "


def escape(plain: bytes, part: Part) -> bytes:
    return b"".join(bytes((byte,)) if byte in _PLAIN[part] else b"%%%02X" % byte for byte in plain)


def _as_written(raw: bytes, part: Part) -> bytes:
    """The text as it was, if that is a valid encoding; otherwise the standard encoding."""
    if all(byte in _SUB_DELIMITERS or byte in _PLAIN[part] for byte in raw):
        return raw
    return escape(unescape(raw, part), part)


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
