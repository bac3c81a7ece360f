"""Finding network interfaces and RDMA devices in sysfs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from drayman.drivers.dranet.devices import Interface
from drayman.drivers.pci import PciDevice, pci_device, pci_devices, read_text
from drayman.drivers.sysfs import address_of, entries

_NETWORK: Final = ("0x02", "0x0c06")
"""Classes of PCI devices: network controllers, and InfiniBand ones among the serial buses."""
_ENCAPSULATIONS: Final = {"1": "ether", "32": "infiniband", "772": "loopback"}
_OURS: Final = ("lo", "docker0")
_PREFIXES: Final = ("cilium_", "lxc", "veth")
"""Interfaces that belong to the node's own network."""
_NAMES: Final = ("usr/share/hwdata/pci.ids", "usr/share/misc/pci.ids")


def discover(root: Path) -> list[Interface]:
    """What pods may have: no uplink of the node, and nothing of its own network. Raises OSError."""
    rdma = {address_of(path): path.name for path in entries(root / "sys/class/infiniband")}
    names, uplinks = PciNames.read(root), set(_uplinks(root))
    found, taken = [], set()
    for link in entries(root / "sys/class/net"):
        home = link / "device"
        pci = pci_device(root, home.resolve().name) if home.exists() else None
        if pci is not None:
            taken.add(pci.address)
        if link.name in uplinks or link.name in _OURS or link.name.startswith(_PREFIXES):
            continue
        found.append(_interface(link, pci, rdma, names))
    for pci in pci_devices(root):
        # A port without an interface is of use if it has RDMA.
        if pci.address in rdma and pci.address not in taken and pci.class_.startswith(_NETWORK):
            vendor, device = names.of(pci)
            found.append(
                Interface(pci.slot, vendor=vendor, device=device, rdma_device=rdma[pci.address])
            )
    return sorted(
        found, key=lambda each: (each.slot is None, each.slot and each.slot.bus_id, each.name)
    )


def _interface(
    link: Path, pci: PciDevice | None, rdma: dict[str, str], names: PciNames
) -> Interface:
    vendor, device = ("", "") if pci is None else names.of(pci)
    functions = None if pci is None else pci.text("sriov_totalvfs")
    return Interface(
        slot=None if pci is None else pci.slot,
        name=link.name,
        mac=read_text(link / "address") or "",
        mtu=int(read_text(link / "mtu") or "0") or None,
        encapsulation=_ENCAPSULATIONS.get(read_text(link / "type") or "", ""),
        state=read_text(link / "operstate") or "",
        type="device" if pci is not None else _kind(link),
        alias=read_text(link / "ifalias") or "",
        vendor=vendor,
        device=device,
        rdma_device=None if pci is None else rdma.get(pci.address),
        sriov=bool(int(functions or "0")),
        functions=int(functions) if functions else None,
        is_function=True if pci is not None and pci.parent_function else None,
    )


def _kind(link: Path) -> str:
    """Of a virtual interface, where the kernel tells it: vlan, bridge, bond."""
    for line in (read_text(link / "uevent") or "").splitlines():
        name, _, value = line.partition("=")
        if name == "DEVTYPE":
            return value
    return ""


def _uplinks(root: Path) -> Iterator[str]:
    """The interfaces of default routes."""
    for line in (read_text(root / "proc/net/route") or "").splitlines()[1:]:
        name, destination, *_ = line.split()
        if destination == "00000000":
            yield name
    for line in (read_text(root / "proc/net/ipv6_route") or "").splitlines():
        fields = line.split()
        if fields[0] == "0" * 32 and fields[1] == "00" and fields[-1] != "lo":
            yield fields[-1]


class PciNames:
    """What vendors and devices are called, by their numbers: the list that most machines have."""

    def __init__(self, lines: list[str]) -> None:
        self._vendors: dict[str, str] = {}
        self._devices: dict[tuple[str, str], str] = {}
        vendor = ""
        for line in lines:
            number, _, name = line.strip().partition("  ")
            if line.startswith("C "):
                break  # classes come last
            if not line or line.startswith(("#", "\t\t")):
                continue
            if line.startswith("\t"):
                self._devices[vendor, number] = name
            else:
                vendor = number
                self._vendors[vendor] = name

    @classmethod
    def read(cls, root: Path) -> PciNames:
        """Raises OSError."""
        for path in _NAMES:
            if (root / path).exists():
                return cls((root / path).read_text(errors="replace").splitlines())
        return cls([])

    def of(self, pci: PciDevice) -> tuple[str, str]:
        """Vendor and device; empty where they are not known. As an attribute holds them, 64 characters."""
        vendor, device = pci.vendor.removeprefix("0x"), pci.device.removeprefix("0x")
        return self._vendors.get(vendor, "")[:64], self._devices.get((vendor, device), "")[:64]
