"""Those of the units in line that are in queues of KAI, by queue: who is the first in each, and of which queues that may have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import TypeAlias

from drayman.quota.shares.groups import Place

_Position: TypeAlias = tuple[Place, int, str]
"""The place of a unit in its queue, its ticket and its key."""


class LeafLines:
    """A line for each queue. A unit that leaves is dropped when it comes to the front."""

    def __init__(self, is_in_line: Callable[[int, str], bool]) -> None:
        """`is_in_line` says whether a ticket of a unit still holds."""
        self._is_in_line = is_in_line
        self._lines: dict[str, list[_Position]] = {}
        self._changed: dict[str, None] = {}

    def join(self, leaf: str, place: Place, ticket: int, key: str) -> None:
        """A unit got in line."""
        heappush(self._lines.setdefault(leaf, []), (place, ticket, key))
        self._changed[leaf] = None

    def changed(self, leaf: str) -> None:
        """A unit of a queue has left the line, or has changed."""
        self._changed[leaf] = None

    def changes(self) -> Iterator[tuple[str, str | None]]:
        """The queues in which something has changed since this was asked last, each with the key of its first unit, if it has any."""
        for leaf in self._changed:
            line = self._lines.get(leaf, [])
            while line and not self._is_in_line(*line[0][-2:]):
                heappop(line)
            if not line:
                self._lines.pop(leaf, None)
            yield leaf, line[0][-1] if line else None
        self._changed.clear()
