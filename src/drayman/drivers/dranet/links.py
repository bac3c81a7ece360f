"""Setting up interfaces by netlink, and putting them back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from ipaddress import ip_interface
from typing import Any, Final, Protocol

from drayman.driver_configs.network import NetworkConfig
from drayman.drivers.dranet.netlink import local_address
from drayman.drivers.kit.errors import PrepareError

_NOT_APPLIED: Final = (
    "dhcp",
    "gso_max_size",
    "gro_max_size",
    "gso_ipv4_max_size",
    "gro_ipv4_max_size",
    "disable_ebpf_programs",
    "forwarding",
    "arp_ignore",
    "arp_announce",
    "vrf",
)
_UP: Final = 0x1
_PARTS: Final = ("routes", "rules", "neighbors", "ethtool", "profile")


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of an interface. What is None or empty stays as it is."""

    name: str | None = None
    mtu: int | None = None
    mac: str | None = None
    add: tuple[str, ...] = ()
    """Addresses, each with the length of its prefix."""
    remove: tuple[str, ...] = ()
    up: bool = False


class Links(Protocol):
    """The interfaces of a machine."""

    def change(self, name: str, change: Change) -> None:
        """Write what is not as it is wanted already. Raises PrepareError."""


class NetlinkLinks:
    """The machine's own."""

    def __init__(self) -> None:
        """Raises PrepareError if the package is not there."""
        try:
            self._library = import_module("pyroute2")
        except ModuleNotFoundError:
            raise PrepareError(
                "dra.net needs the package pyroute2 to set up interfaces: pip install 'drayman[net]'"
            ) from None

    def change(self, name: str, change: Change) -> None:
        with self._library.IPRoute() as route:
            found = route.link_lookup(ifname=name)
            if not found:
                raise PrepareError(f"there is no interface {name} on the node")
            (link,) = route.get_links(found[0])
            self._set(route, name, link, change)
            self._set_addresses(route, name, link, change)

    def _set(self, route: Any, name: str, link: Any, change: Change) -> None:
        index, was_up = link["index"], bool(link["flags"] & _UP)
        if change.name not in (None, name):
            with self._doing(name, f"name {change.name}"):
                route.link("set", index=index, state="down")  # older kernels ask for that
                route.link("set", index=index, ifname=change.name)
                if was_up:
                    route.link("set", index=index, state="up")
        if change.mtu not in (None, link.get_attr("IFLA_MTU")):
            with self._doing(name, f"mtu {change.mtu}"):
                route.link("set", index=index, mtu=change.mtu)
        if change.mac is not None and change.mac.lower() != link.get_attr("IFLA_ADDRESS"):
            with self._doing(name, f"hardwareAddr {change.mac}"):
                route.link("set", index=index, address=change.mac)
        if change.up and not was_up:
            with self._doing(name, "state up"):
                route.link("set", index=index, state="up")

    def _set_addresses(self, route: Any, name: str, link: Any, change: Change) -> None:
        if not change.add and not change.remove:
            return
        held = {
            ip_interface(f"{local_address(each)}/{each['prefixlen']}")
            for each in route.get_addr(index=link["index"])
        }
        todo = [("del", ip_interface(text), True) for text in change.remove]
        todo += [("add", ip_interface(text), False) for text in change.add]
        for command, address, if_held in todo:
            if (address in held) is if_held:
                with self._doing(name, f"address {address}"):
                    route.addr(
                        command,
                        index=link["index"],
                        address=str(address.ip),
                        prefixlen=address.network.prefixlen,
                    )

    @contextmanager
    def _doing(self, name: str, what: str) -> Iterator[None]:
        try:
            yield
        except self._library.NetlinkError as error:
            raise PrepareError(f"interface {name}: {what}: {error.args[1]}") from error


def require_applicable(config: NetworkConfig) -> None:
    """Raises PrepareError for settings that this driver does not carry out, rather than pass over them."""
    unset = NetworkConfig()
    wanted = [name for name in _PARTS if getattr(config, name) != getattr(unset, name)]
    wanted += [
        f"interface.{_camel(name)}"
        for name in _NOT_APPLIED
        if getattr(config.interface, name) != getattr(unset.interface, name)
    ]
    if wanted:
        raise PrepareError(f"{wanted[0]}: this driver does not carry it out")


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)
