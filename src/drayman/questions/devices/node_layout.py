"""One node's devices by where they sit: package, NUMA node, PCIe root.

A level that no driver names is not invented. What is known to be on no NUMA node, or on an unknown one, is listed separately.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from drayman.api.core import Node
from drayman.inventory.device import DeviceRecord
from drayman.placement.occupancy import DeviceStanding
from drayman.questions.devices.reading import Reading
from drayman.simulate.unit_counts import Unit, gather
from drayman.topology import DeviceKind, Locality, locality

_PACKAGE_NAMES: Final = ("socketID", "packageID")
_KINDS: Final = tuple(DeviceKind)


@dataclass(frozen=True, slots=True)
class Root:
    """What is attached to one PCIe root; an unknown root has no name."""

    name: str | None
    units: list[Unit] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NumaNode:
    """What is close to one memory; None if it is not known which."""

    number: int | None
    roots: dict[str | None, Root] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Package:
    """A processor with its NUMA nodes; None if it is not known which processor they belong to."""

    number: int | None
    numa_nodes: dict[int | None, NumaNode] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeLayout:
    """A node's devices."""

    packages: list[Package]
    reached: list[Unit]
    """Devices that other nodes can use as well."""

    @property
    def units(self) -> list[Unit]:
        """The node's own."""
        return [
            unit
            for package in self.packages
            for numa in package.numa_nodes.values()
            for root in numa.roots.values()
            for unit in root.units
        ]


def own_and_reached(
    reading: Reading, node: Node
) -> tuple[list[DeviceStanding], list[DeviceStanding]]:
    """The devices that sit on a node, and those that it can use but that sit on none."""
    found = reading.occupancy
    own = [s for s in found.devices.values() if s.node == node.metadata.name]
    view = found.inventory.view(node, found.ledger)
    usable = (record.id for record in view.hardware.records)
    reached = [found.devices[device] for device in usable if not found.devices[device].node]
    return own, reached


def layout(reading: Reading, node: Node) -> NodeLayout:
    """Where the devices of a node are."""
    own, reached = own_and_reached(reading, node)
    packages_of_numa = _packages_of_numa(own)
    packages: dict[int | None, Package] = {}
    for unit in sorted(gather(own), key=_order):
        place = unit_locality(unit)
        number = packages_of_numa.get(place.numa)
        package = packages.setdefault(number, Package(number))
        numa = package.numa_nodes.setdefault(place.numa, NumaNode(place.numa))
        numa.roots.setdefault(place.pcie_root, Root(place.pcie_root)).units.append(unit)
    return NodeLayout(
        sorted(packages.values(), key=lambda package: _last(package.number)), gather(reached)
    )


def unit_locality(unit: Unit) -> Locality:
    """Where a unit is: its parts are in the same place."""
    record = unit.members[0].record
    return locality(record.id.driver, record.device)


def _order(unit: Unit) -> tuple[object, ...]:
    """By place and kind; within those as they are published."""
    place = unit_locality(unit)
    return (
        _last(place.numa),
        place.pcie_root is not None,
        place.pcie_root or "",
        _KINDS.index(unit.kind),
    )


def _last(number: int | None) -> tuple[bool, int]:
    """Numbers in order, and what has none after them."""
    return number is None, number or 0


def _packages_of_numa(standings: Iterable[DeviceStanding]) -> dict[int | None, int]:
    """The package of each NUMA node, from devices whose drivers publish both: those of processors do."""
    found: dict[int | None, int] = {}
    for standing in standings:
        package = _package(standing.record)
        numa = locality(standing.id.driver, standing.record.device).numa
        if package is not None and numa is not None:
            found[numa] = package
    return found


def _package(record: DeviceRecord) -> int | None:
    attributes = record.device.attributes
    for name in _PACKAGE_NAMES:
        found = attributes.get(name) or attributes.get(f"{record.id.driver}/{name}")
        if found is not None and found.int_ is not None:
            return found.int_
    return None
