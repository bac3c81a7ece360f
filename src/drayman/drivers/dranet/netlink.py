"""What netlink tells of the interfaces of this machine and sysfs does not, and that something about them has changed.

Details need the optional package `pyroute2`. To hear of changes none is needed: whatever the message says, interfaces are looked at anew.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from ipaddress import ip_interface
from typing import Any, Final

_LINKS: Final = 0x1
_IPV4_ADDRESSES: Final = 0x10
_IPV6_ADDRESSES: Final = 0x100
_SETTLE_S: Final = 0.5
"""An interface that comes up sends several messages."""
_CLASSIFYING: Final = ("clsact", "ingress")
_HOOKS: Final = (0xFFFFFFF2, 0xFFFFFFF3)
"""Where `tc` attaches filters for what comes in and goes out."""
_PROGRAM: Final = "bpf"


@dataclass(frozen=True, slots=True)
class Details:
    """Of one interface."""

    kind: str = ""
    """Of a virtual one: dummy, vlan, bridge and so on; empty for others."""
    ipv4: tuple[str, ...] = ()
    """Its addresses beyond the link, each with the length of its prefix."""
    ipv6: tuple[str, ...] = ()
    ebpf: bool = False
    """Whether programs are attached by XDP or `tc`. Those of tcx are not told by netlink."""


def read_details() -> Mapping[str, Details]:
    """All interfaces, by name; none if the package is not there. Raises OSError, and NetlinkError of the package."""
    try:
        library = import_module("pyroute2")
    except ModuleNotFoundError:
        return {}
    with library.IPRoute() as route:
        links = {int(link["index"]): link for link in route.get_links()}
        addresses: dict[int, list[str]] = {}
        for each in route.get_addr():
            text = f"{local_address(each)}/{each['prefixlen']}"
            addresses.setdefault(int(each["index"]), []).append(text)
        filtered = {
            int(each["index"])
            for each in route.get_qdiscs()
            if each.get_attr("TCA_KIND") in _CLASSIFYING
        }
        return {
            link.get_attr("IFLA_IFNAME"): _details(
                link, addresses.get(index, []), index in filtered and _is_filtered(route, index)
            )
            for index, link in links.items()
        }


def local_address(message: Any) -> str:
    """The address that a message is about, as text. On a line between two, the other attribute has that of the far end."""
    return str(message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS"))


def _details(link: Any, addresses: list[str], is_filtered: bool) -> Details:
    about, xdp = link.get_attr("IFLA_LINKINFO"), link.get_attr("IFLA_XDP")
    found = [ip_interface(each) for each in addresses]
    beyond = [
        each
        for each in found
        if not (each.is_link_local or each.is_loopback or each.is_multicast or each.is_unspecified)
    ]
    return Details(
        kind=(about.get_attr("IFLA_INFO_KIND") or "") if about is not None else "",
        ipv4=tuple(str(each) for each in beyond if each.version == 4),
        ipv6=tuple(str(each) for each in beyond if each.version == 6),
        ebpf=is_filtered or (xdp is not None and bool(xdp.get_attr("IFLA_XDP_ATTACHED"))),
    )


def _is_filtered(route: Any, index: int) -> bool:
    return any(
        each.get_attr("TCA_KIND") == _PROGRAM
        for hook in _HOOKS
        for each in route.get_filters(index=index, parent=hook)
    )


async def changes() -> AsyncIterator[None]:
    """Once for each time that links or addresses have changed, after they have settled. Raises OSError if it cannot be heard."""
    kind = socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    with closing(socket.socket(socket.AF_NETLINK, kind, socket.NETLINK_ROUTE)) as listening:
        listening.bind((0, _LINKS | _IPV4_ADDRESSES | _IPV6_ADDRESSES))
        while True:
            await _hear(listening)
            await asyncio.sleep(_SETTLE_S)
            _drain(listening)
            yield


async def _hear(listening: socket.socket) -> None:
    try:
        await asyncio.get_running_loop().sock_recv(listening, 65536)
    except OSError as error:
        if error.errno != errno.ENOBUFS:  # that some messages were lost says enough
            raise


def _drain(listening: socket.socket) -> None:
    while True:
        try:
            listening.recv(65536)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
