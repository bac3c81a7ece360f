"""Which nodes floating slices are for.

Thousands of slices carry the same few node selectors. Each distinct one is a *place*, matched against a node once; nodes that match
the same places, and have no devices of their own, see the same devices.
"""

from __future__ import annotations

from collections.abc import Iterable

from drayman.api.core import Node, NodeSelector
from drayman.api.errors import SelectorError
from drayman.api.nodeselector import matches
from drayman.inventory.identity import PoolId
from drayman.inventory.pool import PlaceKey, SliceRecord


class Place:
    """Somewhere that slices, or single devices of them, are for."""

    __slots__ = ("key", "pools", "revision")

    def __init__(self, key: PlaceKey) -> None:
        self.key = key
        self.pools: set[PoolId] = set()
        self.revision = 0  # when a pool here last changed

    def includes(self, node: Node) -> bool:
        """Whether the node is in it. A selector that cannot be read takes in every node, as it concerns them all."""
        if self.key is None:
            return True
        if isinstance(self.key, str):
            return self.key == node.metadata.name
        try:
            return matches(self.key, node)
        except SelectorError:
            return True


class Places:
    """The places of all floating slices."""

    def __init__(self) -> None:
        self._named: dict[str, Place] = {}
        self._selecting: dict[NodeSelector | None, Place] = {}
        self._of_pool: dict[PoolId, frozenset[Place]] = {}

    def of_node(self, node: Node) -> tuple[Place | None, frozenset[Place]]:
        """The place that is this node alone, and the others that take it in."""
        found = [place for place in self._selecting.values() if place.includes(node)]
        return self._named.get(node.metadata.name), frozenset(found)

    def put(self, pool: PoolId, slices: Iterable[SliceRecord], time: int) -> None:
        """Note where the slices of a pool are now, and that the pool has changed there and where it was before."""
        before = self._of_pool.get(pool, frozenset())
        keys = {key for slice_ in slices for key in slice_.places}
        now = frozenset(self._place(key) for key in keys)
        for place in before | now:
            place.revision = time
        for place in now - before:
            place.pools.add(pool)
        for place in before - now:
            place.pools.discard(pool)
            if not place.pools:
                self._remove(place.key)
        if now:
            self._of_pool[pool] = now
        else:
            self._of_pool.pop(pool, None)

    def _place(self, key: PlaceKey) -> Place:
        if isinstance(key, str):
            return self._named.setdefault(key, Place(key))
        return self._selecting.setdefault(key, Place(key))

    def _remove(self, key: PlaceKey) -> None:
        if isinstance(key, str):
            del self._named[key]
        else:
            del self._selecting[key]
