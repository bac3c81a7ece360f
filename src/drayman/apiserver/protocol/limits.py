"""How many requests at a time, and how large. Anything beyond the limits is refused at once rather than queued."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final

from drayman.apiserver.protocol.access import User
from drayman.apiserver.protocol.errors import StatusError, Subject, bad_request, object_too_large
from drayman.apiserver.protocol.exchange import Query
from drayman.apiserver.protocol.shares import Shares
from drayman.apiserver.protocol.totals import BODIES, REQUESTS, SESSIONS, WATCHES, Limit

RETRY_AFTER_S: Final = 1
RESERVED_PART: Final = 10
LARGE_WORK: Final = 32 * 1024
"""The fewest bytes, of a body and of the object it changes together, that are worth another thread."""
SMALL_BODY: Final = 64 * 1024
"""The most bytes of a body, or of an answer, that do not count for its sender."""
BODY_LIMIT: Final = 3 * 1024 * 1024
MOST_OBJECT_BYTES: Final = BODY_LIMIT
"""The largest object: what can be sent at once. Patches, each of them small, could make one grow until no client can read it."""
_DURATION: Final = re.compile(r"[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)")


def shares_of(limit: Limit, most: int | None = None) -> Shares:
    """What users share, of which a tenth is reserved for administrators and nodes. `most` stands for the usual number."""
    total = (limit.usual if most is None else most) * limit.unit
    return Shares(total, reserve=total // RESERVED_PART)


@dataclass(slots=True)
class ServerLimits:
    """What requests hold while they are being answered, shared by all users, and the patience with clients."""

    requests: Shares = field(default_factory=lambda: shares_of(REQUESTS))
    watches: Shares = field(default_factory=lambda: shares_of(WATCHES))
    sessions: Shares = field(default_factory=lambda: shares_of(SESSIONS))
    """Commands in containers that are being followed."""
    body_bytes: Shares = field(default_factory=lambda: shares_of(BODIES))
    """Bytes of large bodies and large answers."""
    patience_s: float = 60.0
    """How long a client may leave data unread before it is disconnected."""
    head_s: float = 32.0
    """How long a client may take to send the head of a request, from its first byte; the first one from the moment it connects."""
    body_s: float = 10.0
    """How long a client may take to send a body, in addition to what it takes at the lowest rate."""

    def request(self, user: User) -> AbstractContextManager[None]:
        """Counts a request while it is being answered. Raises StatusError 429."""
        if not self.requests.has_room(user):
            raise used_up(REQUESTS, self.requests, user)
        return self.requests.taking(user)

    def body(self, user: User, length: int) -> AbstractContextManager[None]:
        """Counts the bytes of a body from before it is read until it is answered. Raises StatusError 429.

        Small ones are not counted: clients that announce large bodies and send them slowly only block other large bodies.
        """
        if length <= SMALL_BODY:
            return nullcontext()
        self.check_body(user, length)
        return self.body_bytes.taking(user, length)

    def check_body(self, user: User, length: int) -> None:
        """Raises StatusError 429 where there is no room for so many more bytes of a large body or answer."""
        if not self.body_bytes.has_room(user, length):
            raise used_up(BODIES, self.body_bytes, user)

    def check_watches(self, user: User) -> None:
        """Raises StatusError 429 where there is no room for another watch, or for another log that is followed."""
        if not self.watches.has_room(user):
            raise used_up(WATCHES, self.watches, user)

    def check_sessions(self, user: User) -> None:
        """Raises StatusError 429 where there is no room for another session in a container."""
        if not self.sessions.has_room(user):
            raise used_up(SESSIONS, self.sessions, user)


def used_up(limit: Limit, shares: Shares, user: User) -> StatusError:
    """A user may have no more of something at the moment. Says how much of it there is, and which users have it."""
    own, other, others = shares.use_of(user)
    most, taken = limit.shown(shares.most), limit.shown(shares.taken)
    alone = limit.shown(-(-(shares.most - shares.reserve) // 2))
    who = f'{limit.shown(own)} by "{user.name}"'
    if other:
        who += f' and {limit.shown(others)} by "{other}"'
    message = (
        f"too many requests, please try again later: {taken} of {most} {limit.what} are in use, {who};"
        f" {limit.shown(shares.reserve)} are reserved for administrators and nodes, and one user alone gets"
        f" at most {alone} ({limit.option})"
    )
    return StatusError(
        429,
        "TooManyRequests",
        message,
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
