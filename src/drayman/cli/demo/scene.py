"""One node of the demo as the allocator sees it, for drawing it and for trying what would help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from drayman.api.core import Node
from drayman.api.resource import Device, ResourceClaim
from drayman.drivers.profiles import HardwareNode
from drayman.inventory import DeviceId, Inventory, Ledger, NodeView
from drayman.inventory.ledger import holdings_of
from drayman.topology import Kind, Matrix, matrix


@dataclass(frozen=True, slots=True)
class Scene:
    """A node and who holds what on it."""

    hardware: HardwareNode
    inventory: Inventory
    ledger: Ledger = field(default_factory=Ledger)

    @property
    def node(self) -> Node:
        """The node."""
        return self.hardware.node

    def view(self, ledger: Ledger | None = None) -> NodeView:
        """The node as it is now, or as it would be with another ledger."""
        return self.inventory.view(self.node, self.ledger if ledger is None else ledger)

    def devices(self) -> Iterator[tuple[DeviceId, Device]]:
        """Every device of the node."""
        for each in self.hardware.slices:
            for device in each.spec.devices or ():
                yield DeviceId(each.spec.driver, each.spec.pool.name, device.name), device


def build(hardware: HardwareNode, claims: Iterable[ResourceClaim] = ()) -> Scene:
    """A node with what claims hold."""
    inventory = Inventory()
    for device_class in hardware.classes:
        inventory.apply_class(device_class)
    for each in hardware.slices:
        inventory.apply_slice(each)
    scene = Scene(hardware, inventory)
    for claim in claims:
        if claim.status.allocation is not None:
            # By name instead of uid: people are told who would have to give something back.
            name = f"{claim.metadata.namespace}/{claim.metadata.name}"
            scene.ledger.observe(name, holdings_of(claim.status.allocation))
    return scene


@dataclass(frozen=True, slots=True)
class Layout:
    """The node's matrix, and the short names its devices have in it: GPU0, NIC3."""

    matrix: Matrix
    names: dict[DeviceId, str]
    rows: dict[DeviceId, int]


def layout(scene: Scene, drivers: tuple[str, ...] = ("gpu.nvidia.com", "dra.net")) -> Layout:
    """The matrix of a node's GPUs and network interfaces."""
    found = matrix(
        (device_id.driver, device)
        for device_id, device in scene.devices()
        if device_id.driver in drivers
    )
    counts: dict[Kind, int] = {}
    names: dict[DeviceId, str] = {}
    rows: dict[DeviceId, int] = {}
    for index, row in enumerate(found.rows):
        device_id = DeviceId(row.driver, scene.node.metadata.name, row.device)
        number = counts.get(row.kind, 0)
        counts[row.kind] = number + 1
        names[device_id] = f"{row.kind.upper()}{number}"
        rows[device_id] = index
    return Layout(found, names, rows)
