"""Gangs that have started and have too few members left.

The members that are left compute nothing without the others, and hold their devices for it. Where a gang says how long that may last
(`Gang.grace_s`), it is ended as one: its owner can make all of it again, and until then nothing is held for nothing.

A gang that comes to its end is not below its quorum: members that have succeeded count, also when they have been deleted since. Members
that wait for a node do not, whether they are new or replace others: as long as they find none, the gang does not run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from msgspec import Struct

from drayman.placement.gangs.book import GangBook, Member, ranked
from drayman.placement.gangs.gang import Gang
from drayman.placement.gangs.quorum import Shortfall, shortfall


class Fallen(Struct, frozen=True, eq=False):
    """A gang that has started, and has fewer members than have to run together."""

    gang: Gang
    lack: Shortfall
    left: tuple[Member, ...]
    """The members that still run."""


def fallen(book: GangBook, gang: Gang, done: Mapping[str, int]) -> Fallen | None:
    """Whether a gang is below its quorum, or that of one of its parts.

    `done` is how many members had succeeded before they were deleted, by subgroup. A gang of which no member is placed has not started, or
    has ended.
    """
    left = {uid: member for uid, member in book.placed(gang.key).items() if member.is_staying}
    if not left:
        return None
    has = Counter(done)
    has.update(member.membership.subgroup for member in left.values())
    has.update(member.membership.subgroup for member in book.succeeded(gang.key).values())
    lack = shortfall(gang, has)
    return None if lack is None else Fallen(gang, lack, tuple(ranked(left)))
