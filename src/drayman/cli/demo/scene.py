"""One node of the demo and its devices, for drawing it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drayman.api.resource import Device
from drayman.drivers.profiles import HardwareNode
from drayman.inventory import DeviceId
from drayman.topology import Kind, Matrix, matrix


@dataclass(frozen=True, slots=True)
class Layout:
    """The node's matrix, and the short names its devices have in it: GPU0, NIC3."""

    matrix: Matrix
    names: dict[DeviceId, str]
    rows: dict[DeviceId, int]


def layout(
    hardware: HardwareNode, drivers: tuple[str, ...] = ("gpu.nvidia.com", "dra.net")
) -> Layout:
    """The matrix of a node's GPUs and network interfaces."""
    found = matrix(
        (device_id.driver, device)
        for device_id, device in _devices(hardware)
        if device_id.driver in drivers
    )
    counts: dict[Kind, int] = {}
    names: dict[DeviceId, str] = {}
    rows: dict[DeviceId, int] = {}
    for index, row in enumerate(found.rows):
        device_id = DeviceId(row.driver, hardware.node.metadata.name, row.device)
        number = counts.get(row.kind, 0)
        counts[row.kind] = number + 1
        names[device_id] = f"{row.kind.upper()}{number}"
        rows[device_id] = index
    return Layout(found, names, rows)


def _devices(hardware: HardwareNode) -> Iterator[tuple[DeviceId, Device]]:
    for each in hardware.slices:
        for device in each.spec.devices or ():
            yield DeviceId(each.spec.driver, each.spec.pool.name, device.name), device
