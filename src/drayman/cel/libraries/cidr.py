"""`cidr()`: an address and the length of a prefix, kept as written, so bits after the prefix survive."""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from drayman.cel.costs import (
    STRING_TRAVERSAL,
    UNIT,
    CallEstimate,
    CostNode,
    SizeEstimate,
    actual_size,
    traversal,
)
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Library, Rule, member, priced, static, succeeds
from drayman.cel.libraries.ip import IP, Address, IpValue, parse_address, parse_ip
from drayman.cel.libraries.rules import NOMINAL, TRAVERSAL, nominal_estimate
from drayman.cel.types import BOOL, INT, STRING, opaque
from drayman.cel.values import Opaque, no_such_overload

CIDR = opaque("net.CIDR")

_BITS = re.compile("0|[1-9][0-9]{0,2}")
_ADDRESS_SIZE = SizeEstimate(4, 16)


@dataclass(frozen=True, slots=True, eq=False)
class CidrValue(Opaque):
    type_name: ClassVar[str] = CIDR.name

    address: Address
    bits: int

    def equals(self, other: object) -> bool:
        if not isinstance(other, CidrValue):
            raise no_such_overload()
        return (self.address, self.bits) == (other.address, other.bits)

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    @property
    def cost_size(self) -> int:
        return math.ceil(self.bits / 8)

    def covers(self, address: Address) -> bool:
        if address.version != self.address.version:
            return False
        shift = self.address.max_prefixlen - self.bits
        return int(address) >> shift == int(self.address) >> shift


def parse_prefix(text: str) -> CidrValue:
    """Raises ValueError."""
    before, slash, bits = text.rpartition("/")
    if not slash:
        raise ValueError("no '/'")
    address = parse_address(before)
    if not _BITS.fullmatch(bits) or int(bits) > address.max_prefixlen:
        raise ValueError(f"bad bits after slash: {bits!r}")
    return CidrValue(address, int(bits))


def parse_cidr(text: str) -> CidrValue:
    try:
        return parse_prefix(text)
    except ValueError as error:
        raise EvaluationError(
            f"network address parse error during conversion from string: {error}"
        ) from None


is_cidr = succeeds(parse_prefix)


def contains_cidr(value: CidrValue, other: CidrValue) -> bool:
    return value.bits <= other.bits and value.covers(other.address)


def masked(value: CidrValue) -> CidrValue:
    network = ipaddress.ip_network((value.address, value.bits), strict=False)
    return CidrValue(network.network_address, value.bits)


def _containment(*, of_cidr: bool, of_string: bool) -> Rule:
    def estimate(args: Sequence[CostNode]) -> CallEstimate:
        cost = (_ADDRESS_SIZE + _ADDRESS_SIZE).cost(STRING_TRAVERSAL)
        if of_cidr:  # the other address is masked, and the lengths are compared
            cost += _ADDRESS_SIZE.cost(STRING_TRAVERSAL) + UNIT
        if of_string:
            cost += args[1].size.cost(STRING_TRAVERSAL)
        return CallEstimate(cost)

    def cost(args: Sequence[object], result: object) -> int:
        size = actual_size(args[0])
        cost = math.ceil((size + size) * STRING_TRAVERSAL)
        if of_cidr:
            cost += traversal(args[0]) + 1
        return cost + traversal(args[1]) if of_string else cost

    return Rule(estimate, cost)


_CONTAINS_IP = _containment(of_cidr=False, of_string=False)
_CONTAINS_IP_STRING = _containment(of_cidr=False, of_string=True)
_CONTAINS_CIDR = _containment(of_cidr=True, of_string=False)
_CONTAINS_CIDR_STRING = _containment(of_cidr=True, of_string=True)

CIDRS = Library(
    "kubernetes.net.cidr",
    functions=(
        *priced(
            Rule(cost=_CONTAINS_IP.cost),
            member(
                "containsIP",
                "cidr_contains_ip_string",
                (CIDR, STRING),
                BOOL,
                lambda value, ip: value.covers(parse_ip(ip).address),
                _CONTAINS_IP_STRING,
            ),
            member(
                "containsIP",
                "cidr_contains_ip_ip",
                (CIDR, IP),
                BOOL,
                lambda value, ip: value.covers(ip.address),
                _CONTAINS_IP,
            ),
        ),
        *priced(
            Rule(cost=_CONTAINS_CIDR.cost),
            member(
                "containsCIDR",
                "cidr_contains_cidr_string",
                (CIDR, STRING),
                BOOL,
                lambda value, other: contains_cidr(value, parse_cidr(other)),
                _CONTAINS_CIDR_STRING,
            ),
            member(
                "containsCIDR",
                "cidr_contains_cidr",
                (CIDR, CIDR),
                BOOL,
                contains_cidr,
                _CONTAINS_CIDR,
            ),
        ),
        *priced(
            TRAVERSAL,
            static("cidr", "string_to_cidr", (STRING,), CIDR, parse_cidr),
            static("isCIDR", "is_cidr", (STRING,), BOOL, is_cidr),
        ),
        *priced(
            NOMINAL,
            member("prefixLength", "cidr_prefix_length", (CIDR,), INT, lambda value: value.bits),
            member("masked", "cidr_masked", (CIDR,), CIDR, masked),
        ),
        member("ip", "cidr_ip", (CIDR,), IP, lambda value: IpValue(value.address), NOMINAL),
        static("string", "cidr_to_string", (CIDR,), STRING, str),
    ),
    types=(CIDR,),
    equality={CIDR.name: nominal_estimate},
)
