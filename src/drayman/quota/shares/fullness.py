"""How full a queue is: what it uses in relation to what it may have, comparable between queues."""

from __future__ import annotations

from fractions import Fraction
from typing import TypeAlias

from drayman.placement.queueing.queues import Amount

Fullness: TypeAlias = tuple[int, Amount]
"""The fuller, the greater."""


def fullness(used: Amount, share: Amount) -> Fullness:
    """How full a queue is that uses so much of a share. One that uses something without a share is fuller than any that has one.

    While it is worked out who gives way, a queue may be supposed to have given more than it has: without a share it is then emptier
    than any other.
    """
    if share > 0:
        return 0, Fraction(used) / share
    return (used > 0) - (used < 0), used
