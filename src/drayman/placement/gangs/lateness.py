"""Gangs that wait longer than they may. Nothing is held while a gang waits, so a time limit has one consequence: it is reported."""

from __future__ import annotations

from msgspec import Struct

from drayman.api.times import seconds_of, time_left
from drayman.placement.gangs.book import GangBook
from drayman.placement.gangs.gang import Gang
from drayman.placement.gangs.quorum import shortfall


class Delay(Struct, frozen=True):
    """How long a gang has waited, and how long it may."""

    waited_s: float
    limit_s: float


def waits_since(book: GangBook, gang: Gang) -> float | None:
    """When the oldest of the members that wait was created, in seconds since the epoch; None if the gang runs, or no member waits.

    Once a gang has started, members that join later are not late: it does without them.
    """
    if not (gang.least or gang.subgroups) or shortfall(gang, book.running(gang)) is None:
        return None
    members = [m.pod for m in book.waiting(gang.key).values() if m.is_staying]
    # Whoever put a gate there decides when it may start.
    created = (p.metadata.creation_timestamp for p in members if not p.spec.scheduling_gates)
    return min((seconds_of(text) for text in created if text), default=None)


def time_to_wait(book: GangBook, gang: Gang, now: float) -> float | None:
    """Seconds until a gang is late, 0 if it is; None if it has no time limit or does not wait."""
    since = None if gang.timeout_s is None else waits_since(book, gang)
    if since is None or gang.timeout_s is None:
        return None
    return time_left(since, gang.timeout_s, now)


def delay(book: GangBook, gang: Gang, now: float) -> Delay | None:
    """How late a gang is; None if it is not."""
    since = None if gang.timeout_s is None else waits_since(book, gang)
    if since is None or gang.timeout_s is None or now - since < gang.timeout_s:
        return None
    return Delay(now - since, gang.timeout_s)
