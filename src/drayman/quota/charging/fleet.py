"""The devices of a cluster as prices see them: which match selectors, are untainted, and can be used on nodes of a flavor.

All sets are bitsets over one hardware, that of the whole cluster (`Inventory.everywhere`), whose pools are complete and of their newest
generation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from drayman.api.core import Node
from drayman.api.resource import DeviceToleration
from drayman.inventory.bitsets import bitset, first, positions
from drayman.inventory.device import DeviceRecord
from drayman.inventory.hardware import NodeHardware
from drayman.inventory.identity import DeviceId
from drayman.inventory.pool import selects_node
from drayman.placement.state import ClusterState


class Fleet:
    """The devices of a cluster at this moment, or those of one flavor."""

    def __init__(self, state: ClusterState, labels: Mapping[str, str] | None = None) -> None:
        """With `labels`, only devices that can be used on a node with all of these labels."""
        self._inventory = state.inventory
        self._nodes = state.nodes
        self._labels = tuple((labels or {}).items())

    @cached_property
    def hardware(self) -> NodeHardware:
        """All devices of the cluster. Most prices only count what is asked for, and do not need it."""
        return self._inventory.everywhere

    @cached_property
    def scope(self) -> int:
        """The devices that count."""
        if not self._labels:
            return self.hardware.everything
        found = 0
        for _, devices in self.by_node():
            found |= devices
        return found

    def by_node(self) -> Iterator[tuple[str, int]]:
        """The nodes that count, with the devices that can be used there. Without labels, nodes that only slices name count too."""
        placed = self.hardware.derived(_Placed)
        wanted = dict(self._labels).items()
        for name, known in self._nodes.items():
            if known.node.metadata.labels.items() >= wanted:
                yield name, placed.on(known.node)
        if self._labels:
            return
        for name, devices in placed.named.items():
            if name not in self._nodes:
                yield name, devices | placed.anywhere
        if not self._nodes and not placed.named:
            yield "", placed.anywhere

    def of_driver(self, driver: str) -> int:
        """The devices of a driver."""
        return self.hardware.derived(drivers_of).get(driver, 0) & self.scope

    def selected(self, expressions: tuple[str, ...], among: int) -> tuple[int, int]:
        """Of some devices, those that pass all selectors, and those on which one fails before another says no."""
        passing, failing = self.hardware.select(expressions)
        return passing & among, failing & among

    def failure(self, expressions: tuple[str, ...], failing: int) -> str:
        """Why a selector has no verdict, for the first of the devices it fails on."""
        position = first(failing)
        text = self.hardware.failure(expressions, position)
        return f"on {self.hardware.records[position].id}: {text}"

    def tolerated(self, tolerations: tuple[DeviceToleration, ...]) -> int:
        """The devices without taints that keep requests away, or with such as are tolerated."""
        return self.hardware.taints(self._inventory.taint_rules).tolerated(tolerations)

    def is_elsewhere(self, device: DeviceId) -> bool:
        """Whether a device of the cluster is not one of those that count."""
        position = self.hardware.position.get(device)
        return position is not None and not self.scope >> position & 1

    def record(self, device: DeviceId) -> DeviceRecord | None:
        """A device of the cluster."""
        position = self.hardware.position.get(device)
        return None if position is None else self.hardware.records[position]


def drivers_of(hardware: NodeHardware) -> dict[str, int]:
    """The devices of each driver."""
    found: dict[str, int] = {}
    for pool, devices in zip(hardware.pools, hardware.pool_devices, strict=True):
        members = (1 << devices.stop) - (1 << devices.start)
        found[pool.id.driver] = found.get(pool.id.driver, 0) | members
    return found


class _Placed:
    """Where the devices of a hardware can be used."""

    def __init__(self, hardware: NodeHardware) -> None:
        self._records = hardware.records
        named: dict[str, list[int]] = {}
        anywhere: list[int] = []
        chosen: list[int] = []
        for position, record in enumerate(hardware.records):
            if record.node_name:
                named.setdefault(record.node_name, []).append(position)
            else:
                (anywhere if record.all_nodes else chosen).append(position)
        size = len(hardware.records)
        self.named = {name: bitset(members, size) for name, members in named.items()}
        self.anywhere = bitset(anywhere, size)
        self._chosen = bitset(chosen, size)
        """Devices of nodes that a selector finds."""

    def on(self, node: Node) -> int:
        """The devices that can be used on a node."""
        found = self.named.get(node.metadata.name, 0) | self.anywhere
        for position in positions(self._chosen):
            if selects_node(self._records[position], node):
                found |= 1 << position
        return found
