"""How many requests at a time, and how large. Anything beyond the limits is refused at once rather than queued."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from drayman.apiserver.protocol.errors import StatusError, Subject, bad_request, object_too_large
from drayman.apiserver.protocol.exchange import Query

RETRY_AFTER_S: Final = 1
SMALL_BODY: Final = 64 * 1024
MOST_OBJECT_BYTES: Final = 3 * 1024 * 1024
"""The largest object: what can be sent at once. Patches, each of them small, could make one grow until no client can read it."""
_DURATION: Final = re.compile(r"[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)")


@dataclass(slots=True)
class ServerLimits:
    """Requests and watches that are open, the bodies they hold, and the limits on each."""

    most_requests: int = 1_000
    most_watches: int = 10_000
    most_body_bytes: int = 256 * 1024 * 1024
    patience_s: float = 60.0
    """How long a client may leave data unread before it is disconnected."""
    requests: int = 0
    watches: int = 0
    body_bytes: int = 0

    @contextmanager
    def request(self) -> Iterator[None]:
        """Counts a request while it is being answered. Raises StatusError 429."""
        if self.requests >= self.most_requests:
            raise too_many()
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1

    @contextmanager
    def body(self, length: int) -> Iterator[None]:
        """Counts the bytes of a body from before it is read until it is answered. Raises StatusError 429.

        Small ones are not counted: clients that announce large bodies and send them slowly only block other large bodies.
        """
        counted = length if length > SMALL_BODY else 0
        if counted and self.body_bytes + counted > self.most_body_bytes:
            raise too_many()
        self.body_bytes += counted
        try:
            yield
        finally:
            self.body_bytes -= counted

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Counts a watch while it is open."""
        self.watches += 1
        try:
            yield
        finally:
            self.watches -= 1

    def check_watches(self) -> None:
        """Raises StatusError 429 where there is no room for another watch."""
        if self.watches >= self.most_watches:
            raise too_many()


def too_many() -> StatusError:
    return StatusError(
        429,
        "TooManyRequests",
        "too many requests, please try again later",
        Subject(),
        retry_after_seconds=RETRY_AFTER_S,
        headers={"Retry-After": str(RETRY_AFTER_S)},
    )


def check_timeout(query: Query) -> None:
    """Refuse a timeout that is not a duration. It limits nothing: no request takes long. Raises StatusError 400."""
    timeout = query.get("timeout")
    if timeout and not _DURATION.fullmatch(timeout):
        why = f'time: invalid duration "{timeout}"'
        raise bad_request(f"invalid timeout specified in the request URL - {why}")


def within_size(encode: Callable[[int], bytes], subject: Subject) -> Callable[[int], bytes]:
    """The stored form of an object, refused if it is too large. Raises StatusError 413, and then nothing is written.

    Deletion does not check this: any stored object can be marked and removed.
    """

    def checked(revision: int) -> bytes:
        data = encode(revision)
        if len(data) > MOST_OBJECT_BYTES:
            raise object_too_large(subject, len(data), MOST_OBJECT_BYTES)
        return data

    return checked
