"""Whose turn it is, kept up to date: of the queues that have a group in line, the first at each level.

The order is that of `order`. A queue whose first group changes, or what it uses, takes another place among its sisters, and so do the
queues above it; no other queue is looked at.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TypeAlias

from drayman.placement.queueing.queues import Amount
from drayman.quota.shares.order import Order, Turn

_Place: TypeAlias = tuple[Turn, str, str]
"""The turn of a queue, its name, and the leaf below it whose group it stands in line with."""


class KeptLine:
    """Queues in the order of their turns, as long as shares do not change."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._tree = order.tree
        self._requests: dict[str, Amount] = {}  # by leaf
        self._places: dict[str, dict[str, _Place]] = {}  # by parent and queue
        # The same in order, with places that queues no longer have.
        self._heaps: dict[str, list[_Place]] = {}

    def set(self, leaf: str, request: Amount | None) -> None:
        """How much the first group of a leaf takes; None if it has none. Also to be called when what the leaf uses has changed."""
        if request is None:
            self._requests.pop(leaf, None)
        else:
            self._requests[leaf] = request
        for name in self._tree.path(leaf):
            self._put(name, self._first_below(name))

    def first(self) -> str | None:
        """The leaf whose turn it is."""
        return self._first_below("")

    def _first_below(self, name: str) -> str | None:
        if name in self._requests:
            return name
        heap, places = self._heaps.get(name, []), self._places.get(name, {})
        while heap and places.get(heap[0][1]) is not heap[0]:
            heappop(heap)
        return heap[0][2] if heap else None

    def _put(self, name: str, leaf: str | None) -> None:
        queue = self._tree[name]
        places = self._places.setdefault(queue.parent, {})
        if leaf is None:
            places.pop(name, None)
            return
        place = (self._order.turn(queue, self._requests[leaf]), name, leaf)
        if places.get(name) == place:
            return
        places[name] = place
        heap = self._heaps.setdefault(queue.parent, [])
        heappush(heap, place)
        if len(heap) > 2 * len(places):
            heap[:] = places.values()
            heapify(heap)
