"""Topology objects: the levels of a cluster, as its administrators list them."""

from __future__ import annotations

from collections.abc import Iterator

from drayman.api.custom_groups import (
    KaiTopology,
    KueueTopology,
    TopologyLevel,
    TopologySpec,
    spec_of,
)
from drayman.inventory.undo import UndoLog

Topology = KaiTopology | KueueTopology
_Key = tuple[type[Topology], str]


class Topologies:
    """Follows the Topology objects of a cluster."""

    def __init__(self, log: UndoLog | None = None) -> None:
        self._log = log or UndoLog()
        self._known: dict[_Key, Topology] = {}
        self.revision = 0
        """Grows with each change."""

    def set(self, topology: Topology) -> None:
        self._put((type(topology), topology.metadata.name), topology)

    def remove(self, topology: Topology) -> None:
        self._put((type(topology), topology.metadata.name), None)

    def find(self, type_: type[Topology], name: str) -> Topology | None:
        return self._known.get((type_, name))

    def __iter__(self) -> Iterator[Topology]:
        """Always in the same order: by kind and name."""
        for key in sorted(self._known, key=lambda key: (key[0].__name__, key[1])):
            yield self._known[key]

    def _put(self, key: _Key, topology: Topology | None) -> None:
        self._log.note(self._put, key, self._known.get(key))
        if topology is None:
            self._known.pop(key, None)
        else:
            self._known[key] = topology
        self.revision += 1


def levels_of(topology: Topology) -> tuple[TopologyLevel, ...]:
    """The levels that an object lists, from wide to narrow. Raises DecodeError."""
    return spec_of(TopologySpec, topology).levels
