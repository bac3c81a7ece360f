"""Finding network interfaces and RDMA devices in sysfs.

What sysfs does not tell of an interface, such as its addresses, is passed in, so that it can be left out where netlink is not to be had.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

from drayman.drivers.dranet.devices import Interface
from drayman.drivers.dranet.netlink import Details
from drayman.drivers.pci import PciDevice, pci_device, pci_devices
from drayman.drivers.pci_names import PciNames
from drayman.drivers.sysfs import address_of, entries, read_text

_log: Final = logging.getLogger(__name__)
_LINKS: Final = "sys/class/net"
_NETWORK: Final = ("0x02", "0x0c06")
"""Classes of PCI devices: network controllers, and InfiniBand ones among the serial buses."""
_ENCAPSULATIONS: Final = {"1": "ether", "32": "infiniband", "772": "loopback"}
_OURS: Final = ("lo", "docker0")
_PREFIXES: Final = ("cilium_", "lxc", "veth")
"""Interfaces that belong to the node's own network."""
_REPRESENTOR: Final = re.compile(r"(c\d+)?pf\d+.*")
"""Ports of a card's own switch that stand for a function, such as `pf0vf1`. The card's way out is called `p0`."""
_VIRTUAL: Final = Interface(slot=None)
_NOTHING: Final[Mapping[str, Details]] = MappingProxyType({})


def discover(root: Path, details: Mapping[str, Details] = _NOTHING) -> list[Interface]:
    """What pods may have: no uplink of the node, and nothing of its own network. `details` are by interface. Raises OSError."""
    rdma = {address_of(path): path.name for path in entries(root / "sys/class/infiniband")}
    names, uplinks = PciNames.read(root), _uplinks(root)
    virtual, functions = _links(root)
    found = [_interface(link) for link in virtual if not _is_ours(link.name, uplinks)]
    for pci in pci_devices(root):
        if pci.address not in functions and pci.address not in rdma:
            continue
        port = _port(pci, rdma.get(pci.address), names)
        links = functions.get(pci.address, [])
        offered = [link for link in links if not _is_ours(link.name, uplinks)]
        if offered:
            found.append(_interface(offered[0], port))
        elif not links and port.rdma_device is not None and pci.class_.startswith(_NETWORK):
            found.append(port)  # it has no interface, and is of use all the same
        for link in offered[1:]:
            _log.info("%s is not offered: %s is on the same device", link.name, offered[0].name)
    told = [_with_details(each, details.get(each.name)) for each in found]
    return sorted(
        told, key=lambda each: (each.slot is None, each.slot and each.slot.bus_id, each.name)
    )


def find(
    root: Path, address: str, names: Sequence[str], hardware_addresses: Collection[str]
) -> str | None:
    """What an interface that has been away is called now; None if it is not on the node. Raises OSError.

    It is looked for at its PCI address if it has one. Otherwise a name alone does not tell: a pod may have used one that means another
    interface on the node.
    """
    if address:
        uplinks, (_, functions) = _uplinks(root), _links(root)
        links = [link for link in functions.get(address, ()) if link.name not in uplinks]
        # A pod may have set a hardware address of its own; then the first port of the device is meant.
        others = [link for link in links if _number(link) == 0]
    else:
        links, others = [root / _LINKS / name for name in names], []
    known = [link for link in links if read_text(link / "address") in hardware_addresses]
    return next((link.name for link in (*known, *others)), None)


def _links(root: Path) -> tuple[list[Path], dict[str, list[Path]]]:
    """Virtual interfaces, and those of PCI devices by address: the first port first, representors of other functions left out."""
    virtual, functions = [], dict[str, list[Path]]()
    for link in entries(root / _LINKS):
        home = (link / "device").resolve()
        # virtio has a device of its own below that of the PCI bus.
        address = (home.parent if home.name.startswith("virtio") else home).name
        if not (link / "device").exists() or pci_device(root, address) is None:
            virtual.append(link)
        elif not _REPRESENTOR.fullmatch(_port_name(link)):
            functions.setdefault(address, []).append(link)
    for links in functions.values():
        links.sort(key=lambda link: (_number(link), link.name))
    return virtual, functions


def _number(link: Path) -> int:
    """Of the port, among those of its device."""
    return int(read_text(link / "dev_port") or "0")


def _port_name(link: Path) -> str:
    try:
        return read_text(link / "phys_port_name") or ""
    except OSError:  # of a card that does not name its ports
        return ""


def _is_ours(name: str, uplinks: Collection[str]) -> bool:
    return name in uplinks or name in _OURS or name.startswith(_PREFIXES)


def _port(pci: PciDevice, rdma_device: str | None, names: PciNames) -> Interface:
    """What the PCI device says, whether it has an interface or not."""
    vendor, device = names.of(pci)
    may_have = int(pci.text("sriov_totalvfs") or "0") > 0
    return Interface(
        slot=pci.slot,
        vendor=vendor,
        device=device,
        subsystem=(pci.text("subsystem_device") or "").removeprefix("0x"),
        rdma_device=rdma_device,
        functions=int(pci.text("sriov_numvfs") or "0") if may_have else None,
        is_function=True if pci.parent_function else None,
    )


def _interface(link: Path, port: Interface = _VIRTUAL) -> Interface:
    """An interface, virtual or of a port."""
    return replace(
        port,
        name=link.name,
        mac=read_text(link / "address") or "",
        mtu=int(read_text(link / "mtu") or "0") or None,
        encapsulation=_ENCAPSULATIONS.get(read_text(link / "type") or "", ""),
        state=read_text(link / "operstate") or "",
        type="device" if port.slot is not None else _kind(link),
        alias=read_text(link / "ifalias") or "",
    )


def _with_details(found: Interface, details: Details | None) -> Interface:
    if details is None:
        return found
    return replace(
        found,
        type=details.kind or found.type,
        ipv4=details.ipv4,
        ipv6=details.ipv6,
        ebpf=details.ebpf,
    )


def _kind(link: Path) -> str:
    """Of a virtual interface, where the kernel tells it: vlan, bridge, bond."""
    for line in (read_text(link / "uevent") or "").splitlines():
        name, _, value = line.partition("=")
        if name == "DEVTYPE":
            return value
    return ""


def _uplinks(root: Path) -> set[str]:
    """The interfaces of default routes, and all that they are made of: the members of a bond, the ports of a bridge."""
    found: set[str] = set()
    waiting = list(_default_routes(root))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            below = entries(root / _LINKS / name, "lower_")
            waiting += [path.name.removeprefix("lower_") for path in below]
    return found


def _default_routes(root: Path) -> Iterator[str]:
    for line in (read_text(root / "proc/net/route") or "").splitlines()[1:]:
        name, destination, *_ = line.split()
        if destination == "00000000":
            yield name
    for line in (read_text(root / "proc/net/ipv6_route") or "").splitlines():
        fields = line.split()
        if fields[0] == "0" * 32 and fields[1] == "00" and fields[-1] != "lo":
            yield fields[-1]
