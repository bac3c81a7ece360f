"""The map of a cluster as plain values: its racks, their nodes, and how many devices of each kind are in which state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from drayman.api.struct import ApiStruct
from drayman.placement.occupancy import State
from drayman.questions.devices.floor import Counts, Floor, NodeUse, Rack

DeviceCounts: TypeAlias = Mapping[str, Mapping[str, int]]
"""By kind, then by state and in `total`."""


class MappedNode(ApiStruct, kw_only=True):
    """A node and its own devices."""

    name: str
    closed: tuple[str, ...] = ()
    """Why it takes no pods."""
    devices: DeviceCounts


class MappedRack(ApiStruct):
    """Nodes that their labels put in the same place; None for what no label says."""

    block: str | None
    rack: str | None
    nvlink_domain: str | None
    devices: DeviceCounts
    nodes: tuple[MappedNode, ...]


class ClusterMap(ApiStruct):
    """A cluster."""

    devices: DeviceCounts
    racks: tuple[MappedRack, ...]
    elsewhere: DeviceCounts
    """Devices that are not on a known node: many nodes reach them, or their node is gone."""


def cluster_map(floor: Floor) -> ClusterMap:
    """The map with everything on it."""
    return ClusterMap(
        devices=_counts(floor.counts),
        racks=tuple(map(_rack, floor.racks)),
        elsewhere=_counts(floor.elsewhere),
    )


def _rack(rack: Rack) -> MappedRack:
    return MappedRack(
        block=rack.block or None,
        rack=rack.rack or None,
        nvlink_domain=rack.nvlink_domain or None,
        devices=_counts(rack.counts),
        nodes=tuple(map(_node, rack.nodes)),
    )


def _node(node: NodeUse) -> MappedNode:
    closed = tuple(why.value for why in node.closed)
    return MappedNode(name=node.name, closed=closed, devices=_counts(node.counts))


def _counts(counts: Counts) -> DeviceCounts:
    return {
        kind.value: {
            "total": sum(numbers.values()),
            **{state.value: numbers[state] for state in State if numbers[state]},
        }
        for kind, numbers in counts.items()
    }
