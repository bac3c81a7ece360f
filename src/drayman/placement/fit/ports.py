"""Host ports that containers use.

A port taken on one address is free on the others; one taken on all addresses is taken on each. Pods that are placed by hand may still share
a port, so ports are counted: the last to leave frees it.
"""

from __future__ import annotations

from collections.abc import Iterable

from drayman.api.core import Container, PodSpec
from drayman.api.pods import is_sidecar

HostPort = tuple[str, str, int]
"""Address, protocol and number."""

ALL_ADDRESSES = "0.0.0.0"


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """The host ports of containers that keep running, sidecars included."""
    ports = _ports(spec.containers)
    if spec.init_containers:
        ports += _ports(c for c in spec.init_containers if is_sidecar(c))
    return tuple(sorted(set(ports)))


def _ports(containers: Iterable[Container]) -> list[HostPort]:
    return [
        (port.host_ip or ALL_ADDRESSES, port.protocol or "TCP", port.host_port)
        for container in containers
        for port in container.ports
        if port.host_port > 0
    ]


class UsedPorts:
    """The host ports in use on a node."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken: dict[tuple[str, int], dict[str, int]] = {}

    def add(self, ports: Iterable[HostPort]) -> None:
        for address, protocol, number in ports:
            addresses = self._taken.setdefault((protocol, number), {})
            addresses[address] = addresses.get(address, 0) + 1

    def remove(self, ports: Iterable[HostPort]) -> None:
        for address, protocol, number in ports:
            addresses = self._taken[protocol, number]
            addresses[address] -= 1
            if not addresses[address]:
                del addresses[address]
                if not addresses:
                    del self._taken[protocol, number]

    def conflict(self, ports: Iterable[HostPort]) -> bool:
        for address, protocol, number in ports:
            addresses = self._taken.get((protocol, number))
            if addresses and (
                address == ALL_ADDRESSES or address in addresses or ALL_ADDRESSES in addresses
            ):
                return True
        return False

    def taken(self) -> frozenset[HostPort]:
        """The ports in use, by any pod."""
        return frozenset(
            (address, protocol, number)
            for (protocol, number), addresses in self._taken.items()
            for address in addresses
        )
