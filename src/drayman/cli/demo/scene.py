"""What the demo plays on: one simulated node, its inventory and ledger, and the claims that come with the package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Final

from drayman.api.checking import defaulted
from drayman.api.core import Node
from drayman.api.loading import Finding, LoadedObject, load_files
from drayman.api.resource import Device, ResourceClaim
from drayman.drivers.profiles import HardwareNode, dgx_h100
from drayman.inventory import DeviceId, Inventory, Ledger, NodeView
from drayman.topology import Kind, Matrix, matrix

NODE_NAME: Final = "dgx-h100-1"


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


def build() -> Scene:
    """The node with nothing in use."""
    hardware = dgx_h100(NODE_NAME)
    inventory = Inventory()
    for device_class in hardware.classes:
        inventory.apply_class(device_class)
    for each in hardware.slices:
        inventory.apply_slice(each)
    return Scene(hardware, inventory)


def claims() -> list[ResourceClaim]:
    """The claims of the demo, in the order of their file names."""
    folder = files("drayman.cli.demo") / "manifests"
    manifests = sorted((file.name, file.read_bytes()) for file in folder.iterdir())
    return [_claim(result) for result in load_files(manifests)]


def _claim(result: LoadedObject | Finding) -> ResourceClaim:
    if isinstance(result, Finding) or result.carried is None:
        raise ValueError(f"the demo's own manifests are broken: {result}")
    claim = defaulted(result.carried, result.version).object
    assert isinstance(claim, ResourceClaim)
    return claim


@dataclass(frozen=True, slots=True)
class Layout:
    """The node's matrix, and the short names its devices have in it: GPU0, NIC3."""

    matrix: Matrix
    names: dict[DeviceId, str]
    rows: dict[DeviceId, int]


def layout(scene: Scene) -> Layout:
    """The matrix of a scene's node."""
    found = matrix((device_id.driver, device) for device_id, device in scene.devices())
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
