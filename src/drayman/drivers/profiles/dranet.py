"""What DRANET (`dra.net`) publishes for network interfaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from drayman.api.resource import ResourceSlice
from drayman.drivers.describing import Slot, fingerprint
from drayman.drivers.dranet.devices import DRIVER, Interface, device
from drayman.drivers.profiles.hardware import pool_slices


@dataclass(frozen=True, slots=True)
class Card:
    """A product: what is the same for every port of it."""

    vendor: str
    device: str
    mtu: int
    encapsulation: str = "ether"


CONNECTX7_IB: Final = Card(
    "Mellanox Technologies", "MT2910 Family [ConnectX-7]", 4092, "infiniband"
)
CONNECTX6_IB: Final = Card(
    "Mellanox Technologies", "MT28908 Family [ConnectX-6]", 4092, "infiniband"
)
CONNECTX7: Final = Card("Mellanox Technologies", "MT2910 Family [ConnectX-7]", 9000)
CONNECTX7_GOOGLE: Final = Card("Mellanox Technologies", "MT2910 Family [ConnectX-7]", 8896)
GVNIC: Final = Card("Google, Inc.", "Compute Engine Virtual Ethernet [gVNIC]", 8244)
EFA: Final = Card("Amazon.com, Inc.", "Elastic Fabric Adapter (EFA)", 9001)


@dataclass(frozen=True, slots=True)
class Nic:
    """A port of a network card."""

    slot: Slot
    interface: str
    rdma_device: str | None
    card: Card = CONNECTX7_IB


def interfaces(node_name: str, nics: Sequence[Nic]) -> tuple[ResourceSlice, ...]:
    """One slice with one device per interface."""
    found = tuple(device(_interface(node_name, nic)) for nic in nics)
    return pool_slices(node_name, DRIVER, [found])


def _interface(node_name: str, nic: Nic) -> Interface:
    return Interface(
        slot=nic.slot,
        name=nic.interface,
        mac=_hardware_address(node_name, nic),
        mtu=nic.card.mtu,
        encapsulation=nic.card.encapsulation,
        state="up",
        type="device",
        vendor=nic.card.vendor,
        device=nic.card.device,
        rdma_device=nic.rdma_device,
        ebpf=False,
    )


def _hardware_address(node_name: str, nic: Nic) -> str:
    """Twenty bytes for InfiniBand, of which the last eight identify the port; six for Ethernet."""
    if nic.card.encapsulation == "infiniband":
        return f"00:00:10:29:fe:80:00:00:00:00:00:00:{_pairs(node_name, nic, 8)}"
    return f"02:{_pairs(node_name, nic, 5)}"


def _pairs(node_name: str, nic: Nic, size: int) -> str:
    digits = fingerprint("nic", node_name, nic.interface, size=size)
    return ":".join(digits[at : at + 2] for at in range(0, len(digits), 2))
