"""Notes of what changed, for those who keep something that follows from it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_MOST: Final = 1 << 16
"""Changes that are remembered one by one. Who has missed more looks at everything again."""


class Notes(Generic[K]):
    """What changed, in its order. Several readers each remember how far they have read."""

    __slots__ = ("_dropped", "_kept", "_most")

    def __init__(self, most: int = _MOST) -> None:
        self._kept: list[K] = []
        self._dropped = 0
        self._most = most

    def add(self, key: K) -> None:
        if len(self._kept) >= self._most:
            self._dropped += len(self._kept)
            self._kept.clear()
        self._kept.append(key)

    @property
    def position(self) -> int:
        """How many changes there were."""
        return self._dropped + len(self._kept)

    def since(self, position: int) -> tuple[K, ...] | None:
        """What changed after some position, each once; None if that is too long ago."""
        if position < self._dropped:
            return None
        return tuple(dict.fromkeys(self._kept[position - self._dropped :]))
