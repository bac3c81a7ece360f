"""IPAddresses and ServiceCIDRs: which addresses services may have, and which service has which."""

from __future__ import annotations

import ipaddress
from typing import Final

from drayman.api import formats
from drayman.api.validation.field_errors import invalid, invalid_each, required
from drayman.api.validation.metadata import IMMUTABLE
from drayman.api.validation.names import dns_subdomain
from drayman.apiserver.kinds.checks import NOT_A_CIDR, immutable, ip_address
from drayman.apiserver.kinds.reading import at, items_at, map_at, text_at
from drayman.apiserver.kinds.rules import BareStatusRules, Errors, Rules
from drayman.apiserver.served.strategy import Context, Object

_CIDRS: Final = "spec.cidrs"
_PARENT: Final = "spec.parentRef"
_BEYOND: Final = "must not have bits set beyond the prefix length"
_ONE_OF_EACH: Final = (
    "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
)


def _address_problems(name: str) -> formats.Problems:
    """An IPAddress is named after its address, in canonical form."""
    if problems := tuple(error.detail for error in ip_address(name, "")):
        return problems
    canonical = ipaddress.ip_address(name).compressed
    return () if name == canonical else (f'must be in canonical form ("{canonical}")',)


def _check_address(obj: Object, _context: Context) -> Errors:
    parent = at(obj, "spec", "parentRef")
    if parent is None:
        yield required(_PARENT)
        return
    if group := text_at(parent, "group"):
        yield from dns_subdomain(group, f"{_PARENT}.group")
    for name in ("resource", "name", "namespace"):
        if value := text_at(parent, name):
            problems = formats.path_segment_problems(value)
            yield from invalid_each(f"{_PARENT}.{name}", value, problems)
        elif name != "namespace":
            yield required(f"{_PARENT}.{name}")


def parent_of(obj: Object) -> str:
    """The owner of an address, as in `services/default/web`."""
    parent = map_at(obj, "spec", "parentRef")
    if not parent:
        return "<none>"
    resource = ".".join(filter(None, (text_at(parent, "resource"), text_at(parent, "group"))))
    place = (resource.lower(), text_at(parent, "namespace"), text_at(parent, "name"))
    return "/".join(filter(None, place))


def _check_ranges(obj: Object, _context: Context) -> Errors:
    ranges = items_at(obj, "spec", "cidrs")
    if not ranges:
        yield required(_CIDRS, "at least one CIDR required")
    elif len(ranges) > 2:
        yield invalid(_CIDRS, {"CIDRs": ranges}, "may only hold up to 2 values")
    else:
        for index, value in enumerate(ranges):
            yield from _range(value, f"{_CIDRS}[{index}]")
        families = [_family(value) for value in ranges]
        if len(ranges) == 2 and families[0] == families[1] is not None:
            yield invalid(_CIDRS, ranges, _ONE_OF_EACH)


def _range(value: str, path: str) -> Errors:
    try:
        interface = ipaddress.ip_interface(value) if "/" in value else None
    except ValueError:
        interface = None
    if interface is None:
        yield invalid(path, value, NOT_A_CIDR)
    elif isinstance(interface, ipaddress.IPv6Interface) and interface.ip.ipv4_mapped is not None:
        yield invalid(path, value, "must not have an IPv4-mapped IPv6 address")
    elif interface.ip != interface.network.network_address:
        yield invalid(path, value, _BEYOND)
    elif value != interface.network.compressed:
        yield invalid(path, value, f'must be in canonical form ("{interface.network.compressed}")')


def _family(value: str) -> int | None:
    try:
        return ipaddress.ip_interface(value).version
    except ValueError:
        return None


def _check_ranges_update(new: Object, old: Object, context: Context) -> Errors:
    """A range never changes, but a second one, of the other family, may be added."""
    before, after = items_at(old, "spec", "cidrs"), items_at(new, "spec", "cidrs")
    if len(before) == len(after) or (len(before), len(after)) == (1, 2):
        for index, (was, now) in enumerate(zip(before, after, strict=False)):
            if was != now:
                yield invalid(f"{_CIDRS}[{index}]", now, IMMUTABLE)
        if len(before) < len(after):
            yield from _check_ranges(new, context)
    else:
        yield invalid(_CIDRS, after, IMMUTABLE)


IP_ADDRESS: Final = Rules(
    namespaced=False,
    name_problems=_address_problems,
    checks=_check_address,
    update_checks=immutable("spec", "parentRef"),
)
SERVICE_CIDR: Final = Rules(
    namespaced=False,
    checks=_check_ranges,
    update_checks=_check_ranges_update,
    rechecks=False,
)
SERVICE_CIDR_STATUS: Final = BareStatusRules()
