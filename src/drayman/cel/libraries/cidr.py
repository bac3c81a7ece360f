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
    EstimateRule,
    SizeEstimate,
    actual_size,
)
from drayman.cel.errors import EvaluationError
from drayman.cel.functions import Function, Library, Overload
from drayman.cel.libraries.ip import IP, Address, IpValue, parse_address, parse_ip
from drayman.cel.libraries.rules import (
    nominal_cost,
    nominal_estimate,
    traversal_cost,
    traversal_estimate,
)
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


def is_cidr(text: str) -> bool:
    try:
        parse_prefix(text)
    except ValueError:
        return False
    return True


def cidr_to_string(value: CidrValue) -> str:
    return f"{value.address}/{value.bits}"


def contains_ip(value: CidrValue, ip: IpValue) -> bool:
    return value.covers(ip.address)


def contains_ip_string(value: CidrValue, ip: str) -> bool:
    return value.covers(parse_ip(ip).address)


def contains_cidr(value: CidrValue, other: CidrValue) -> bool:
    return value.bits <= other.bits and value.covers(other.address)


def contains_cidr_string(value: CidrValue, other: str) -> bool:
    return contains_cidr(value, parse_cidr(other))


def address_of(value: CidrValue) -> IpValue:
    return IpValue(value.address)


def prefix_length(value: CidrValue) -> int:
    return value.bits


def masked(value: CidrValue) -> CidrValue:
    network = ipaddress.ip_network((value.address, value.bits), strict=False)
    return CidrValue(network.network_address, value.bits)


def _containment_estimate(*, of_cidr: bool, of_string: bool) -> EstimateRule:
    def estimate(args: Sequence[CostNode]) -> CallEstimate:
        cost = (_ADDRESS_SIZE + _ADDRESS_SIZE).cost(STRING_TRAVERSAL)
        if of_cidr:  # the other address is masked, and the lengths are compared
            cost += _ADDRESS_SIZE.cost(STRING_TRAVERSAL) + UNIT
        if of_string:
            cost += args[1].size.cost(STRING_TRAVERSAL)
        return CallEstimate(cost)

    return estimate


def _contains_ip_cost(args: Sequence[object], result: object) -> int:
    size = actual_size(args[0])
    return math.ceil((size + size) * STRING_TRAVERSAL)


def _contains_ip_string_cost(args: Sequence[object], result: object) -> int:
    return _contains_ip_cost(args, result) + math.ceil(actual_size(args[1]) * STRING_TRAVERSAL)


def _contains_cidr_cost(args: Sequence[object], result: object) -> int:
    return _contains_ip_cost(args, result) + math.ceil(actual_size(args[0]) * STRING_TRAVERSAL) + 1


def _contains_cidr_string_cost(args: Sequence[object], result: object) -> int:
    return _contains_cidr_cost(args, result) + math.ceil(actual_size(args[1]) * STRING_TRAVERSAL)


CIDRS = Library(
    "kubernetes.net.cidr",
    functions=(
        Function(
            "cidr",
            (Overload("string_to_cidr", (STRING,), CIDR, parse_cidr),),
            traversal_estimate(),
            traversal_cost(),
        ),
        Function(
            "containsIP",
            (
                Overload(
                    "cidr_contains_ip_string",
                    (CIDR, STRING),
                    BOOL,
                    contains_ip_string,
                    member=True,
                    estimate=_containment_estimate(of_cidr=False, of_string=True),
                    cost=_contains_ip_string_cost,
                ),
                Overload(
                    "cidr_contains_ip_ip",
                    (CIDR, IP),
                    BOOL,
                    contains_ip,
                    member=True,
                    estimate=_containment_estimate(of_cidr=False, of_string=False),
                ),
            ),
            cost=_contains_ip_cost,
        ),
        Function(
            "containsCIDR",
            (
                Overload(
                    "cidr_contains_cidr_string",
                    (CIDR, STRING),
                    BOOL,
                    contains_cidr_string,
                    member=True,
                    estimate=_containment_estimate(of_cidr=True, of_string=True),
                    cost=_contains_cidr_string_cost,
                ),
                Overload(
                    "cidr_contains_cidr",
                    (CIDR, CIDR),
                    BOOL,
                    contains_cidr,
                    member=True,
                    estimate=_containment_estimate(of_cidr=True, of_string=False),
                ),
            ),
            cost=_contains_cidr_cost,
        ),
        Function(
            "ip",
            (
                Overload(
                    "cidr_ip",
                    (CIDR,),
                    IP,
                    address_of,
                    member=True,
                    estimate=nominal_estimate,
                    cost=nominal_cost,
                ),
            ),
        ),
        Function(
            "prefixLength",
            (Overload("cidr_prefix_length", (CIDR,), INT, prefix_length, member=True),),
            nominal_estimate,
            nominal_cost,
        ),
        Function(
            "masked",
            (Overload("cidr_masked", (CIDR,), CIDR, masked, member=True),),
            nominal_estimate,
            nominal_cost,
        ),
        Function(
            "isCIDR",
            (Overload("is_cidr", (STRING,), BOOL, is_cidr),),
            traversal_estimate(),
            traversal_cost(),
        ),
        Function("string", (Overload("cidr_to_string", (CIDR,), STRING, cidr_to_string),)),
    ),
    types=(CIDR,),
    equality={CIDR.name: nominal_estimate},
)
