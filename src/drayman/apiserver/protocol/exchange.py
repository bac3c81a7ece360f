"""Requests and answers as values, free of any web framework."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from drayman.apiserver.protocol.access import ANONYMOUS, User
from drayman.node.streams.channels import Socket

JSON_TYPE: Final = "application/json"
TEXT_TYPE: Final = "text/plain; charset=utf-8"
PIECE: Final = 48 * 1024
"""About this many bytes of a long answer are assembled at a time, so that they are sent while still in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Query:
    """The query of a request: pairs in the order given, a lookup returns the first value of a name, as in Go."""

    pairs: tuple[tuple[str, str], ...] = ()

    def get(self, name: str) -> str | None:
        return next((value for key, value in self.pairs if key == name), None)

    def all(self, name: str) -> tuple[str, ...]:
        return tuple(value for key, value in self.pairs if key == name)

    def text(self, name: str) -> str:
        return self.get(name) or ""

    def flag(self, name: str) -> bool | None:
        """A boolean: `false`, `False` and `0` are false, anything else given is true, absent is None."""
        value = self.get(name)
        return None if value is None else value not in ("false", "False", "0")


NO_QUERY: Final = Query()


@dataclass(frozen=True, slots=True)
class PeerCertificate:
    """The certificate that a client has shown, and that the server's authority has signed."""

    name: str
    organizations: tuple[str, ...]
    expires: float
    """In seconds since the epoch. A connection may be older."""


@dataclass(slots=True)
class Request:
    """A request as it arrived. `headers` has lower-case names; `path` is percent-decoded, `raw_path` is not.

    `user` is the user it acts as, once that is known, and `impersonator` who sent it, if that is another. `constraint` is the
    verb that allowed this. `new_name` is the name of an object that it is to create, once its body is read.
    """

    method: str
    path: str
    query: Query = NO_QUERY
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    raw_path: str = ""
    user: User = ANONYMOUS
    impersonator: User | None = None
    constraint: str = ""
    new_name: str = ""
    peer: str = ""
    certificate: PeerCertificate | None = None
    annotations: dict[str, str] = field(default_factory=dict)
    """What the audit log notes about it, other than what every event has."""

    @property
    def sender(self) -> User:
        """Who sent it, once that is known."""
        return self.impersonator or self.user

    def header(self, name: str) -> str:
        return self.headers.get(name, "")


@dataclass(slots=True)
class Response:
    """An answer that is complete in memory."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON_TYPE
    headers: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(slots=True)
class LongResponse:
    """An answer that is assembled while it is sent: a long list. Other requests are served between any two pieces."""

    pieces: Iterator[bytes]
    length: int
    """Bytes of all pieces together."""
    status: int = 200
    content_type: str = JSON_TYPE
    headers: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def whole(self) -> Response:
        """The same answer, assembled. Consumes the pieces."""
        body = b"".join(self.pieces)
        return Response(self.status, body, self.content_type, self.headers, self.warnings)


def _do_nothing() -> None:
    """Nothing is to be recorded."""


@dataclass(slots=True)
class StreamingResponse:
    """An answer that is sent as it is produced: a watch, a log. The sender closes `chunks` when the client goes away, and calls `end`."""

    chunks: AsyncIterator[bytes]
    status: int = 200
    content_type: str = JSON_TYPE
    headers: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    end: Callable[[], None] = _do_nothing
    """Called once when the answer is over, even if it was never begun."""


@dataclass(slots=True)
class UpgradedResponse:
    """The connection becomes a WebSocket, or SPDY. `converse` has it until it returns, and is cancelled when the client goes away.

    Then, or if the client left before, `end` is called.
    """

    converse: Callable[[Socket], Awaitable[None]]
    protocol: str
    """Of those that the client offers."""
    is_spdy: bool = False
    """A message is then any piece of the bytes."""
    status: int = 101
    content_type: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    end: Callable[[], None] = _do_nothing


Answer = Response | LongResponse | StreamingResponse | UpgradedResponse
