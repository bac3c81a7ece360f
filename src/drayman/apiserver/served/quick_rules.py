"""Rules in CEL are evaluated in the event loop as long as that is quick.

How costly the rules of a definition are depends on the object: one that compares the items of a list with each other is cheap for three
of them and takes a second for a thousand. So a write of a small object is planned at once, with a small allowance for rules. If that does
not suffice, or if a rule has yet to be compiled, `TooLongError` ends the attempt, and the write is planned again in another thread, where
rules may cost as much as they may at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

ALLOWANCE: Final = 3_000
"""What rules may cost in the event loop, for one write: some milliseconds."""


class TooLongError(Exception):
    """What is being done would take too long in the event loop."""


class Quickly:
    """What is left of an allowance."""

    __slots__ = ("left",)

    def __init__(self, allowance: int) -> None:
        self.left = allowance

    def spend(self, cost: int) -> None:
        """Raises TooLongError."""
        self.left -= cost
        if self.left < 0:
            raise TooLongError


_CURRENT: Final[ContextVar[Quickly | None]] = ContextVar("quickly", default=None)


def allowance() -> Quickly | None:
    """What rules may still cost here; None: as much as they may at all."""
    return _CURRENT.get()


@contextmanager
def quickly() -> Iterator[None]:
    """Have rules cost little. What would cost more raises TooLongError."""
    token = _CURRENT.set(Quickly(ALLOWANCE))
    try:
        yield
    finally:
        _CURRENT.reset(token)
