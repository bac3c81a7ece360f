"""Where a node is, by its labels and by what its own devices state."""

from __future__ import annotations

from collections.abc import Iterable

from drayman.api.core import Node
from drayman.simulate.unit_counts import Unit
from drayman.topology import Place, StatedPlaces, places


def node_places(node: Node, units: Iterable[Unit]) -> tuple[Place, ...]:
    """The places of a node with these devices, from near to far."""
    stated = StatedPlaces(standing.record for unit in units for standing in unit.members)
    return places({**stated.known, **node.metadata.labels})
