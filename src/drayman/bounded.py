"""Memory that does not grow without bound.

What is worked out once and kept grows with what users send: selectors, shapes of pods, names. Each such memory is a `Bounded`, so the rule
for what is dropped is here and nowhere else. Functions of a module that depend on their arguments alone use `functools.lru_cache`.
"""

from __future__ import annotations

from itertools import islice
from typing import Final, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_SHARE: Final = 256
"""One in so many entries is dropped when there is no room, and at least one. A dict walks past all deleted entries to find its oldest."""


class Bounded(dict[K, V]):
    """A dict of at most `most` entries. The oldest make room for a new one; looking one up costs what it costs in any dict.

    An entry is as old as the assignment that made it, or as its last renewal. Assigning to an existing key only changes the value.
    """

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        if most < 1:
            raise ValueError(f"there must be room for at least one entry, not {most}")
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self._most and key not in self:
            for oldest in tuple(islice(self, max(1, self._most // _SHARE))):
                self.pop(oldest, None)  # Another thread may have dropped it.
        dict.__setitem__(self, key, value)

    def renew(self, key: K) -> None:
        """Make the entry the youngest. Raises KeyError."""
        dict.__setitem__(self, key, self.pop(key))

    # These would get around the bound.
    setdefault = update = __ior__ = None  # type: ignore[assignment]
