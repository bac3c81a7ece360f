"""Counter sets of a node: which devices consume from them, and which lack counters when so much is gone.

All of it follows from the hardware alone, so it is worked out once and kept with it, from one search to the next.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeAlias

from drayman.bounded import Bounded
from drayman.inventory.device import Amount
from drayman.inventory.identity import PoolId

_MOST_KEPT = 20_000  # states of counter sets; a node of partitioned GPUs goes through hundreds

Consumption: TypeAlias = tuple[tuple[int, tuple[Amount, ...]], ...]
"""What one device takes: by index of the counter set, the amount of each of its counters."""


class CounterSetInfo:
    """A counter set of one pool: its counters in a fixed order, and how much there is of each."""

    __slots__ = ("limits", "name", "names", "pool")

    def __init__(self, pool: PoolId, name: str, limits: dict[str, Amount]) -> None:
        self.pool = pool
        self.name = name
        self.names = tuple(limits)
        self.limits = tuple(limits.values())

    def amounts(self, used: dict[str, Amount]) -> tuple[Amount, ...]:
        return tuple([used.get(name, 0) for name in self.names])


class CounterTables:
    """Which devices consume from which counter set, on one hardware."""

    def __init__(self, sets: int, consumption: Sequence[Consumption]) -> None:
        self.consumers: list[list[tuple[int, tuple[Amount, ...]]]] = [[] for _ in range(sets)]
        for position, consumed in enumerate(consumption):
            for index, amounts in consumed:
                self.consumers[index].append((position, amounts))
        self.shapes = self._shapes()
        self._blocked: Bounded[tuple[int, tuple[Amount, ...]], int] = Bounded(_MOST_KEPT)

    def _shapes(self) -> list[int]:
        """A number for what each set offers; equal for sets that offer the same."""
        known: dict[Hashable, int] = {}
        return [
            known.setdefault(tuple(sorted(amounts for _, amounts in users)), len(known))
            for users in self.consumers
        ]

    def blocked_by(self, index: int, left: tuple[Amount, ...]) -> int:
        """The devices that need more of a counter set than is left of it."""
        key = (index, left)
        found = self._blocked.get(key)
        if found is None:
            found = 0
            for position, amounts in self.consumers[index]:
                if exceeds(amounts, left):
                    found |= 1 << position
            self._blocked[key] = found
        return found


def exceeds(wanted: tuple[Amount, ...] | None, left: tuple[Amount, ...]) -> bool:
    """Whether more of something is wanted than is left; None can never be served."""
    if wanted is None:
        return True
    for amount, have in zip(wanted, left, strict=True):
        if amount > have:
            return True
    return False
