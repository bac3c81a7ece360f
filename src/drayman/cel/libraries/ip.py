"""`ip()`: addresses as Go's `netip` reads them, without zones and IPv4 in IPv6, which Kubernetes refuses."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Library, member, priced, static, succeeds
from drayman.cel.libraries.rules import NOMINAL, TRAVERSAL, nominal_estimate, traversal_rule
from drayman.cel.types import BOOL, INT, STRING, opaque
from drayman.cel.values import Opaque, no_such_overload

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

IP = opaque("net.IP")

_BROADCAST = ipaddress.IPv4Address("255.255.255.255")
_LOCAL_MULTICAST_V4 = ipaddress.IPv4Network("224.0.0.0/24")
# ff02::/16 and its siblings with other flags: the second of the four digits does not count.
_LOCAL_MULTICAST_V6_MASK, _LOCAL_MULTICAST_V6 = 0xFF0F << 112, 0xFF02 << 112


@dataclass(frozen=True, slots=True, eq=False)
class IpValue(Opaque):
    type_name: ClassVar[str] = IP.name

    address: Address

    def equals(self, other: object) -> bool:
        if not isinstance(other, IpValue):
            raise no_such_overload()
        return self.address == other.address

    @property
    def cost_size(self) -> int:
        return len(self.address.packed)


def parse_address(text: str) -> Address:
    """Raises ValueError."""
    if "%" in text:
        raise ValueError(f"IP address {text!r} with zone value is not allowed")
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"IP Address {text!r} parse error during conversion from string") from None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise ValueError(f"IPv4-mapped IPv6 address {text!r} is not allowed")
    return address


def parse_ip(text: str) -> IpValue:
    try:
        return IpValue(parse_address(text))
    except ValueError as error:
        raise EvaluationError(str(error)) from None


is_ip = succeeds(parse_address)


def is_canonical(text: str) -> bool:
    return str(parse_ip(text).address) == text


def is_link_local_multicast(value: IpValue) -> bool:
    address = value.address
    if isinstance(address, ipaddress.IPv4Address):
        return address in _LOCAL_MULTICAST_V4
    return int(address) & _LOCAL_MULTICAST_V6_MASK == _LOCAL_MULTICAST_V6


def is_global_unicast(value: IpValue) -> bool:
    """Private addresses are global in this sense: the term only excludes addresses that do not denote a single host."""
    address = value.address
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or address == _BROADCAST
    )


_PROPERTIES: tuple[tuple[str, str, Callable[[IpValue], bool]], ...] = (
    ("isUnspecified", "ip_is_unspecified", lambda ip: ip.address.is_unspecified),
    ("isLoopback", "ip_is_loopback", lambda ip: ip.address.is_loopback),
    ("isLinkLocalMulticast", "ip_is_link_local_multicast", is_link_local_multicast),
    ("isLinkLocalUnicast", "ip_is_link_local_unicast", lambda ip: ip.address.is_link_local),
    ("isGlobalUnicast", "ip_is_global_unicast", is_global_unicast),
)

IPS = Library(
    "kubernetes.net.ip",
    functions=(
        static("ip", "string_to_ip", (STRING,), IP, parse_ip, TRAVERSAL),
        static("string", "ip_to_string", (IP,), STRING, lambda ip: str(ip.address)),
        *priced(TRAVERSAL, static("isIP", "is_ip", (STRING,), BOOL, is_ip)),
        *priced(
            traversal_rule(passes=2),
            static("ip.isCanonical", "ip_is_canonical", (STRING,), BOOL, is_canonical),
        ),
        *priced(
            NOMINAL,
            member("family", "ip_family", (IP,), INT, lambda ip: ip.address.version),
            *(member(name, id, (IP,), BOOL, test) for name, id, test in _PROPERTIES),
        ),
    ),
    types=(IP,),
    equality={IP.name: nominal_estimate},
)
