"""The parameters that v1alpha2 itself had: ResourceClaimParameters and ResourceClassParameters.

They hold one selector for each device. Its CEL accessed attributes by type, `attributes.string["product-name"]`; today an attribute
belongs to its driver and has a name that is an identifier, `device.attributes["gpu.nvidia.com"].productName`.
"""

from __future__ import annotations

import re
from typing import Final

from drayman.migrate.gpu_selectors import Complain
from drayman.migrate.parameters import Asked, exact_request
from drayman.migrate.shapes import Object, numbered, text
from drayman.migrate.vendors import RENAMED_DRIVERS, attribute, capacity

CLAIM_PARAMETERS: Final = "ResourceClaimParameters"
CLASS_PARAMETERS: Final = "ResourceClassParameters"

_READ: Final = re.compile(
    r"""\battributes\.(?:string|bool|int|version|(?P<quantity>quantity))\[(["'])(?P<name>[^"']+)\2\]"""
)
_LEFT_OVER: Final = re.compile(r"(?<!device\.)\battributes\b")


def asked_by(value: Object, class_name: str, complain: Complain) -> Asked | None:
    """What ResourceClaimParameters ask for: one device for each request in them."""
    asked = Asked()
    for place, driver_requests in numbered(value, "driverRequests"):
        driver = _driver(driver_requests)
        path = f"driverRequests[{place}]"
        if "vendorParameters" in driver_requests:
            complain(f"{path}.vendorParameters", _VENDOR)
        for number, request in numbered(driver_requests, "requests"):
            own = f"{path}.requests[{number}]"
            if "vendorParameters" in request:
                complain(f"{own}.vendorParameters", _VENDOR)
            selector = _selector(request, driver, own, complain)
            if selector is None:
                return None
            name = f"device-{len(asked.requests)}"
            asked.requests.append(exact_request(name, class_name, selectors=(selector,)))
    return asked if asked.requests else None


def filters_of(value: Object, driver: str, complain: Complain) -> list[str]:
    """The selectors that ResourceClassParameters add to a class."""
    if value.get("vendorParameters"):
        complain("vendorParameters", _VENDOR)
    found = []
    for place, each in numbered(value, "filters"):
        selector = _selector(each, _driver(each) or driver, f"filters[{place}]", complain)
        if selector:
            found.append(selector)
    return found


_VENDOR: Final = "the current driver has another format; write it as opaque configuration"


def _driver(value: Object) -> str:
    name = text(value, "driverName")
    return RENAMED_DRIVERS.get(name, name)


def _selector(value: Object, driver: str, path: str, complain: Complain) -> str | None:
    """The selector in current terms; None where some of it cannot be expressed."""
    old = text(value, "namedResources", "selector")
    if old in ("", "true"):
        return ""

    def today(match: re.Match[str]) -> str:
        name = _camel_case(match["name"])
        return capacity(driver, name) if match["quantity"] else attribute(driver, name)

    new = _READ.sub(today, old)
    if _LEFT_OVER.search(new):
        complain(
            f"{path}.namedResources.selector", "reads attributes in a way that has no counterpart"
        )
        return None
    return new


def _camel_case(name: str) -> str:
    """Attribute names must be identifiers now: product-name became productName."""
    head, *rest = re.split(r"[-.]", name)
    return head + "".join(part[:1].upper() + part[1:] for part in rest)
