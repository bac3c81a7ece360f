"""Nodes on which a device plugin and a DRA driver both offer the same devices.

Neither knows what the other has allocated, so two pods can end up on one device. It happens in the middle of a migration, when the
driver is installed and the plugin not yet removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from drayman.api.core import Node
from drayman.api.resource import ResourceSlice
from drayman.migrate.plugin_resources import device_for
from drayman.migrate.vendors import AMD, NVIDIA

_ADVICE: Final = {
    NVIDIA: "keep NVIDIA's plugin off the node, with the GPU operator by a label",
    AMD: "keep AMD's plugin off the node, by the node selector of its DaemonSet",
}
_ANY_ADVICE: Final = "keep the plugin off the node, by the node selector of its DaemonSet"
_COMMANDS: Final = {
    NVIDIA: "kubectl label node NODE nvidia.com/gpu.deploy.device-plugin=false --overwrite",
}


@dataclass(frozen=True, slots=True)
class Overlap:
    """A resource of a plugin and the devices of a driver that are the same things on a node."""

    node: str
    resource: str
    count: int
    """What the plugin offers."""
    driver: str
    devices: int
    """What the driver publishes."""

    @property
    def advice(self) -> str:
        """What to do."""
        return _ADVICE.get(self.driver, _ANY_ADVICE)

    @property
    def command(self) -> str:
        """How to do it, with NODE for the node; empty where it depends on the installation."""
        return _COMMANDS.get(self.driver, "")


def overlaps(nodes: Iterable[Node], slices: Iterable[ResourceSlice]) -> Iterator[Overlap]:
    """What is offered twice, in the order of the nodes and of the names of resources."""
    published = _published(slices)
    for node in sorted(nodes, key=lambda node: node.metadata.name):
        name = node.metadata.name
        for resource, amount in sorted(node.status.allocatable.items()):
            device = device_for(resource)
            if device is None or (name, device.driver) not in published:
                continue
            if (count := amount.rounded_up()) > 0:
                devices = published[name, device.driver]
                yield Overlap(name, resource, count, device.driver, devices)


def _published(slices: Iterable[ResourceSlice]) -> Counter[tuple[str, str]]:
    """Devices by node and driver. Devices that do not belong to one node cannot be a plugin's."""
    found: Counter[tuple[str, str]] = Counter()
    for each in slices:
        spec = each.spec
        for device in spec.devices or ():
            node = spec.node_name or device.node_name
            if node:
                found[node, spec.driver] += 1
    return found
