"""What DRANET (`dra.net`) publishes for RDMA network interfaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from drayman.api.resource import Device, DeviceAttribute, ResourceSlice
from drayman.drivers.profiles.hardware import (
    FALSE,
    TRUE,
    Slot,
    device_class,
    fingerprint,
    integer,
    pool_slices,
    string,
)

DRIVER = "dra.net"

# DRANET comes without classes; these are the two that its users write.
CLASSES = (
    device_class("dranet", "device.driver == 'dra.net'"),
    device_class("rdma", "device.driver == 'dra.net' && device.attributes['dra.net'].rdma == true"),
)


@dataclass(frozen=True, slots=True)
class Nic:
    """A port of a network card."""

    slot: Slot
    interface: str
    rdma_device: str


def interfaces(node_name: str, nics: Sequence[Nic]) -> tuple[ResourceSlice, ...]:
    """One slice with one device per interface."""
    return pool_slices(node_name, DRIVER, [tuple(_device(node_name, nic) for nic in nics)])


def _device(node_name: str, nic: Nic) -> Device:
    name = "pci-" + nic.slot.bus_id.replace(":", "-").replace(".", "-")
    return Device(name=name, attributes=_attributes(node_name, nic))


def _attributes(node_name: str, nic: Nic) -> dict[str, DeviceAttribute]:
    digits = fingerprint("nic", node_name, nic.interface, size=8)
    guid = ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))
    return {
        "dra.net/ifName": string(nic.interface),
        "dra.net/mac": DeviceAttribute(string=f"00:00:10:29:fe:80:00:00:00:00:00:00:{guid}"),
        "dra.net/pciAddress": string(nic.slot.bus_id),
        "dra.net/pciVendor": string("Mellanox Technologies"),
        "dra.net/pciDevice": string("MT2910 Family [ConnectX-7]"),
        "dra.net/numaNode": integer(nic.slot.numa),
        "dra.net/mtu": integer(4092),
        "dra.net/encapsulation": string("infiniband"),
        "dra.net/state": string("up"),
        "dra.net/type": string("device"),
        "dra.net/ebpf": FALSE,
        "dra.net/sriov": FALSE,
        "dra.net/virtual": FALSE,
        "dra.net/rdma": TRUE,
        "dra.net/rdmaDevice": string(nic.rdma_device),
        "resource.kubernetes.io/pcieRoot": string(nic.slot.pcie_root),
        "resource.kubernetes.io/numaNode": integer(nic.slot.numa),
    }
