"""Counter sets of a node: who consumes from them, and who is left without when so much is gone.

All of it follows from the hardware alone, so it is worked out once and kept with it, from one search to the next.
"""

from __future__ import annotations

from collections.abc import Hashable

from drayman.inventory.device import Amount
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.view import positions

_MOST_KEPT = 20_000  # states of counter sets; a node of partitioned GPUs goes through hundreds


class CounterTables:
    """Tables over the counter sets of a node's hardware."""

    def __init__(self, hardware: NodeHardware) -> None:
        self.consumers: list[list[tuple[int, tuple[Amount, ...]]]] = [
            [] for _ in hardware.counter_sets
        ]
        for position in positions(hardware.consumers):
            for index, amounts in hardware.consumption[position]:
                self.consumers[index].append((position, amounts))
        self.shapes = self._shapes()
        self._blocked: dict[tuple[int, tuple[Amount, ...]], int] = {}

    def _shapes(self) -> list[int]:
        """A number for what can be had from each set; equal for sets with the same menu."""
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
            if len(self._blocked) >= _MOST_KEPT:
                self._blocked.clear()
            found = 0
            for position, amounts in self.consumers[index]:
                if exceeds(amounts, left):
                    found |= 1 << position
            self._blocked[key] = found
        return found


def exceeds(wanted: tuple[Amount, ...] | None, left: tuple[Amount, ...]) -> bool:
    """Whether something is wanted of which not enough is left; None cannot be had at all."""
    if wanted is None:
        return True
    for amount, have in zip(wanted, left, strict=True):
        if amount > have:
            return True
    return False
