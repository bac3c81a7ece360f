"""Nodes by block, rack and NVLink domain, each with what its devices are counted as."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from drayman.api.core import Node
from drayman.placement.fit.readiness import Closed, closed_by
from drayman.placement.occupancy import Occupancy, State
from drayman.questions.devices.node_places import node_places
from drayman.questions.devices.ordering import natural
from drayman.simulate.unit_counts import Unit, count_by_kind, gather
from drayman.topology import DeviceKind, LevelKind

Counts = Mapping[DeviceKind, Counter[State]]

ORDERS: Final = {"used": (State.USED, State.SHARED, State.PARTITIONED), "free": (State.FREE,)}
"""The states that are counted, for each order except by name."""


@dataclass(frozen=True, slots=True)
class NodeUse:
    """A node and its own devices. Those that several nodes reach belong to none."""

    name: str
    counts: Counts
    closed: tuple[Closed, ...] = ()
    """Why it takes no pods."""


@dataclass(frozen=True, slots=True)
class Rack:
    """Nodes that their labels put in the same place. A rack with several NVLink domains is split into as many of these."""

    block: str
    rack: str
    nvlink_domain: str
    nodes: list[NodeUse] = field(default_factory=list)

    @property
    def counts(self) -> Counts:
        return total(node.counts for node in self.nodes)

    @property
    def closed(self) -> Counter[Closed]:
        """How many nodes take no pods, and why."""
        return Counter(why for node in self.nodes for why in node.closed)

    @property
    def key(self) -> tuple[object, ...]:
        """The order in which racks are shown: by name, and those without one last."""
        names = (self.block, self.rack, self.nvlink_domain)
        return tuple((not name, natural(name)) for name in names)


@dataclass(frozen=True, slots=True)
class Floor:
    """A cluster."""

    racks: list[Rack]
    elsewhere: Counts
    """Devices that are not on a known node: many nodes reach them, or their node is gone."""

    @property
    def counts(self) -> Counts:
        return total([*(rack.counts for rack in self.racks), self.elsewhere])

    @property
    def blocks(self) -> list[list[Rack]]:
        """The racks of each block."""
        found: dict[str, list[Rack]] = {}
        for rack in self.racks:
            found.setdefault(rack.block, []).append(rack)
        return list(found.values())

    def sorted_by(self, order: str, kind: DeviceKind) -> Floor:
        """The same with the blocks and racks first that have the most devices `used` or `free`; unchanged by `name`."""
        if order == "name":
            return self

        def most(racks: Iterable[Rack]) -> int:
            counts = total(rack.counts for rack in racks).get(kind, Counter())
            return -sum(counts[state] for state in ORDERS[order])

        blocks = sorted(self.blocks, key=most)
        racks = [rack for block in blocks for rack in sorted(block, key=lambda rack: most([rack]))]
        return Floor(racks, self.elsewhere)


def floor(nodes: Iterable[Node], found: Occupancy) -> Floor:
    """Where the nodes are."""
    units: dict[str, list[Unit]] = {}
    for unit in gather(found.devices.values()):
        units.setdefault(unit.node, []).append(unit)
    racks: dict[tuple[str, str, str], Rack] = {}
    for node in sorted(nodes, key=lambda node: natural(node.metadata.name)):
        own = units.pop(node.metadata.name, [])
        place = _place(node, own)
        counts = count_by_kind(own)
        use = NodeUse(node.metadata.name, counts, closed_by(node))
        racks.setdefault(place, Rack(*place)).nodes.append(use)
    elsewhere = count_by_kind(unit for rest in units.values() for unit in rest)
    return Floor(sorted(racks.values(), key=lambda rack: rack.key), elsewhere)


def total(counts: Iterable[Counts]) -> Counts:
    """Sums by kind and state."""
    found: dict[DeviceKind, Counter[State]] = {}
    for each in counts:
        for kind, numbers in each.items():
            found.setdefault(kind, Counter()).update(numbers)
    return {kind: found[kind] for kind in DeviceKind if kind in found}


def _place(node: Node, own: Iterable[Unit]) -> tuple[str, str, str]:
    """Block, rack and NVLink domain; the zone serves as the block where nothing names one."""
    names: dict[LevelKind, str] = {}
    for place in node_places(node, own):
        names.setdefault(place.kind, place.value)
    block = names.get(LevelKind.BLOCK) or names.get(LevelKind.ZONE, "")
    return block, names.get(LevelKind.RACK, ""), names.get(LevelKind.NVLINK_DOMAIN, "")
