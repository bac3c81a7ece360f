"""What keeps work out of a queue: a limit of it or of a queue above it, a quota, or that there is no such queue."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from drayman.placement.queueing.queues import Amount


class Barrier(Enum):
    """Why work may not start. By the word that KAI has for it."""

    LIMIT = "OverLimit"
    QUOTA = "NonPreemptibleOverQuota"
    """Work that is not preemptible stays within quota."""
    NO_QUEUE = "QueueDoesNotExist"
    """There is none of this name that takes work."""


class Withheld(Struct, frozen=True):
    """Work that its queue keeps out."""

    barrier: Barrier
    leaf: str
    """The queue that it names."""
    queue: str = ""
    """The queue whose limit or quota it is: that one, or one above it."""
    resource: str = ""
    wanted: Amount = 0
    used: Amount = 0
    """Of that queue; where quota is in the way, by work that is not preemptible."""
    bound: Amount = 0
    flaw: str = ""
    """Why there is no such queue."""


def is_beyond(used: Amount, bound: Amount | None) -> bool:
    """Whether more is used than a bound allows."""
    return bound is not None and used > bound


def exceeds(used: Amount, more: Amount, bound: Amount | None) -> bool:
    """Whether a queue that uses so much may not have more. Work that takes nothing of a resource is not concerned."""
    return more > 0 and is_beyond(used + more, bound)
