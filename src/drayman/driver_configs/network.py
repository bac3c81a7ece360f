"""What `dra.net` takes: how an interface is set up in the network of a pod. It has neither apiVersion nor kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from ipaddress import ip_address, ip_interface, ip_network
from typing import Annotated, Final

from msgspec import Meta, field

from drayman.api.resource import Device
from drayman.api.struct import ApiStruct, Int32, Int64
from drayman.driver_configs.decoding import Config

DRIVER: Final = "dra.net"
_HARDWARE_ADDRESS: Final = re.compile(r"[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5,19}")
_NAME: Final = re.compile(r"[^\s/:]{1,15}")
_LEAST_MTU: Final = 68
Scope = Annotated[int, Meta(ge=0, le=255)]


def interface_of(device: Device) -> str:
    """What an interface that the driver publishes is called on its node; empty for a device that has none, such as one for RDMA alone."""
    found = device.attributes.get(f"{DRIVER}/ifName")
    return "" if found is None else found.string or ""


class Vrf(ApiStruct):
    """A routing domain to put the interface into."""

    name: str = ""
    table: Int64 | None = None


class Interface(ApiStruct):
    name: str = ""
    """In the pod; by default the one that it has."""
    addresses: tuple[str, ...] = ()
    dhcp: bool = False
    mtu: Int32 | None = None
    hardware_addr: str | None = None
    gso_max_size: Int32 | None = None
    gro_max_size: Int32 | None = None
    gso_ipv4_max_size: Int32 | None = field(default=None, name="gsoIPv4MaxSize")
    gro_ipv4_max_size: Int32 | None = field(default=None, name="groIPv4MaxSize")
    disable_ebpf_programs: bool = False
    forwarding: bool | None = None
    arp_ignore: Int32 | None = None
    arp_announce: Int32 | None = None
    vrf: Vrf | None = None


class Route(ApiStruct):
    destination: str = ""
    gateway: str = ""
    source: str = ""
    scope: Scope = 0
    table: Int64 = 0


class Rule(ApiStruct):
    priority: Int64 = 0
    source: str = ""
    destination: str = ""
    table: Int64 = 0


class Neighbor(ApiStruct):
    destination: str = ""
    hardware_addr: str = ""


class Ethtool(ApiStruct):
    features: dict[str, bool] = field(default_factory=dict)
    private_flags: dict[str, bool] = field(default_factory=dict)


class NetworkConfig(Config):
    profile: str = ""
    interface: Interface = Interface()
    routes: tuple[Route, ...] = ()
    rules: tuple[Rule, ...] = ()
    neighbors: tuple[Neighbor, ...] = ()
    ethtool: Ethtool | None = None

    def problems(self) -> Iterable[str]:
        yield from _interface_problems(self.interface)
        for index, route in enumerate(self.routes):
            yield from _route_problems(route, f"routes[{index}]")
        for index, rule in enumerate(self.rules):
            yield from _rule_problems(rule, f"rules[{index}]")
        for index, neighbor in enumerate(self.neighbors):
            where = f"neighbors[{index}]"
            yield from _checked(neighbor.destination, f"{where}.destination", ip_address)
            yield from _address_problems(neighbor.hardware_addr, f"{where}.hardwareAddr")
        if self.interface.vrf is not None and self.rules:
            yield "rules: an interface in a VRF takes none"


def _interface_problems(interface: Interface) -> Iterator[str]:
    if interface.name and not _NAME.fullmatch(interface.name):
        yield f"interface.name: {interface.name!r} is no name of an interface, at most 15 letters"
    for index, address in enumerate(interface.addresses):
        where = f"interface.addresses[{index}]"
        yield from _checked(address, where, ip_interface)
        if "/" not in address:
            yield f"{where}: {address!r} lacks the length of its prefix, as in 10.0.0.1/24"
    if interface.dhcp and interface.addresses:
        yield "interface.dhcp: addresses are given"
    if interface.mtu is not None and interface.mtu < _LEAST_MTU:
        yield f"interface.mtu: must be at least {_LEAST_MTU}"
    if interface.hardware_addr is not None:
        yield from _address_problems(interface.hardware_addr, "interface.hardwareAddr")


def _route_problems(route: Route, where: str) -> Iterator[str]:
    yield from _checked(route.destination, f"{where}.destination", ip_network)
    if route.gateway:
        yield from _checked(route.gateway, f"{where}.gateway", ip_address)
    if route.source:
        yield from _checked(route.source, f"{where}.source", ip_address)


def _rule_problems(rule: Rule, where: str) -> Iterator[str]:
    if rule.source:
        yield from _checked(rule.source, f"{where}.source", ip_network)
    if rule.destination:
        yield from _checked(rule.destination, f"{where}.destination", ip_network)
    if not rule.table:
        yield f"{where}.table: required"


def _checked(text: str, where: str, parse: Callable[[str], object]) -> Iterator[str]:
    try:
        parse(text)
    except ValueError as error:
        yield f"{where}: {error}" if text else f"{where}: required"


def _address_problems(text: str, where: str) -> Iterator[str]:
    if not _HARDWARE_ADDRESS.fullmatch(text):
        yield f"{where}: {text!r} is no hardware address"
