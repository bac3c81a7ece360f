"""Setting up interfaces by netlink, and putting them back."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, Protocol

from drayman.driver_configs.network import NetworkConfig
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
_PARTS: Final = ("routes", "rules", "neighbors", "ethtool", "profile")


class Links(Protocol):
    """The interfaces of a machine."""

    def read(self, name: str) -> tuple[int, str]:
        """MTU and hardware address of an interface."""

    def change(self, name: str, mtu: int, mac: str, add: list[str], remove: list[str]) -> None:
        """Set MTU and hardware address, and add and remove addresses that are or are not there."""


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

    def read(self, name: str) -> tuple[int, str]:
        with self._library.IPRoute() as route:
            (link,) = route.get_links(self._index(route, name))
            return link.get_attr("IFLA_MTU"), link.get_attr("IFLA_ADDRESS")

    def change(self, name: str, mtu: int, mac: str, add: list[str], remove: list[str]) -> None:
        with self._library.IPRoute() as route:
            index = self._index(route, name)
            route.link("set", index=index, mtu=mtu, address=mac)
            held = {
                f"{each.get_attr('IFA_ADDRESS')}/{each['prefixlen']}"
                for each in route.get_addr(index=index)
            }
            for text in remove:
                if text in held:
                    address, _, prefix = text.partition("/")
                    route.addr("del", index=index, address=address, prefixlen=int(prefix))
            for text in add:
                if text not in held:
                    address, _, prefix = text.partition("/")
                    route.addr("add", index=index, address=address, prefixlen=int(prefix))

    def _index(self, route: Any, name: str) -> int:
        found = route.link_lookup(ifname=name)
        if not found:
            raise PrepareError(f"there is no interface {name} on the node")
        return int(found[0])


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
