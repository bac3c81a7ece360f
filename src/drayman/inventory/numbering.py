"""Numbers for values: equal values get equal numbers, so that big keys can be compared and hashed like small ones."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from drayman.bounded import Bounded

_MOST_KEPT: Final = 65_536


class Numbering:
    """Hands out numbers. It may forget a value and give it another number later, but never one number to two values."""

    __slots__ = ("_next", "_numbers")

    def __init__(self) -> None:
        self._numbers: Bounded[Hashable, int] = Bounded(_MOST_KEPT)
        self._next = 0

    def unique(self) -> int:
        """A number that nothing else has."""
        self._next += 1
        return self._next

    def of(self, value: Hashable) -> int:
        number = self._numbers.get(value)
        if number is None:
            number = self._numbers[value] = self.unique()
        return number
