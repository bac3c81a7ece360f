"""How well a flavor would serve: whether it fits, whom it would take to make it fit, and from how far up the tree it would borrow.

The two preferences are the ones that Kueue acts on. (Its documentation of the field has them the other way round.)
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from msgspec import Struct

from drayman.api.kueue import FlavorFungibility

TRY_NEXT: Final = "TryNextFlavor"
PREEMPTION_FIRST: Final = "PreemptionOverBorrowing"


class Rank(IntEnum):
    """From worst to best."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    """There is quota, others have it, and none of them may be preempted."""
    PREEMPT = 2
    """Some of its own queue would have to go."""
    RECLAIM = 3
    """Only others that borrow would have to go."""
    FIT = 4


class Serving(Struct, frozen=True):
    """How a flavor would serve a request."""

    rank: Rank
    borrowing: int = 0
    """The height of the subtree whose quota would hold the request; 0: that of the queue itself."""


UNSERVED: Final = Serving(Rank.NO_FIT)


def is_better(one: Serving, other: Serving, fungibility: FlavorFungibility) -> bool:
    """Whether a queue prefers one way to be served to another."""
    if one.rank is Rank.NO_FIT or other.rank is Rank.NO_FIT:
        return one.rank > other.rank
    if (one.rank is Rank.NO_CANDIDATES) != (other.rank is Rank.NO_CANDIDATES):
        return other.rank is Rank.NO_CANDIDATES
    if fungibility.preference == PREEMPTION_FIRST:
        return (-one.borrowing, one.rank) > (-other.borrowing, other.rank)
    return (one.rank, -one.borrowing) > (other.rank, -other.borrowing)


def goes_on(serving: Serving, fungibility: FlavorFungibility) -> bool:
    """Whether the next flavor is tried although this one could serve."""
    if serving.rank in (Rank.NO_FIT, Rank.NO_CANDIDATES):
        return True
    if serving.rank is not Rank.FIT and fungibility.when_can_preempt == TRY_NEXT:
        return True
    return serving.borrowing > 0 and fungibility.when_can_borrow == TRY_NEXT
