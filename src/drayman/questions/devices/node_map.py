"""One node with its devices, as plain values."""

from __future__ import annotations

from collections.abc import Mapping

from drayman.api.core import Node
from drayman.api.struct import ApiStruct
from drayman.placement.fit.readiness import closed_by
from drayman.questions.devices.node_layout import NodeLayout, unit_locality
from drayman.questions.devices.node_places import node_places
from drayman.questions.devices.reading import Reading
from drayman.questions.devices.rows import DeviceRow, device_row


class NodeMap(ApiStruct, kw_only=True):
    """A node."""

    node: str
    closed: tuple[str, ...] = ()
    """Why it takes no pods."""
    levels: Mapping[str, str]
    """The labels, and the attributes of its devices, that say where it is."""
    devices: tuple[DeviceRow, ...]
    """Its own by where they sit, then those that other nodes reach as well."""


def node_map(reading: Reading, node: Node, layout: NodeLayout) -> NodeMap:
    """The node and its devices."""
    return NodeMap(
        node=node.metadata.name,
        closed=tuple(why.value for why in closed_by(node)),
        levels={each.label: each.value for each in node_places(node, layout.units)},
        devices=tuple(
            device_row(reading, standing, unit_locality(unit))
            for unit in (*layout.units, *layout.reached)
            for standing in unit.members
        ),
    )
