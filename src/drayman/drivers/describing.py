"""The small values that descriptions of devices are made of.

A cluster for a benchmark has hundreds of thousands of simulated devices, so everything that does not differ between nodes
(attributes, capacities, counters) is built once and shared: the structs are immutable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.resource import (
    CELDeviceSelector,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
)
from drayman.api.validation.device import ATTRIBUTE_VALUE_LENGTH


@dataclass(frozen=True, slots=True)
class Slot:
    """A place on a board where a PCI device sits. Virtual machines often hide the root, and sometimes the NUMA node."""

    bus_id: str
    pcie_root: str | None
    numa: int | None


@lru_cache(maxsize=4096)
def string(value: str) -> DeviceAttribute:
    """A string attribute."""
    return DeviceAttribute(string=value)


def fitting(text: str) -> str:
    """As much of a text as the API server accepts in an attribute, which is counted in bytes.

    For what others have written, such as names of products: one that is too long would keep all devices from being published.
    """
    return text.encode()[:ATTRIBUTE_VALUE_LENGTH].decode(errors="ignore")


@lru_cache(maxsize=4096)
def version(value: str) -> DeviceAttribute:
    """A semantic version attribute."""
    return DeviceAttribute(version=value)


@lru_cache(maxsize=4096)
def integer(value: int) -> DeviceAttribute:
    """An integer attribute."""
    return DeviceAttribute(int_=value)


TRUE = DeviceAttribute(bool_=True)
FALSE = DeviceAttribute(bool_=False)


def capacity(quantity: str) -> DeviceCapacity:
    """A capacity of that much, without a request policy."""
    return DeviceCapacity(value=Quantity.parse(quantity))


def place(slot: Slot) -> dict[str, DeviceAttribute]:
    """The standard attributes that say where a PCI device is, as far as the machine shows it."""
    return {"resource.kubernetes.io/pciBusID": string(slot.bus_id), **surroundings(slot)}


def surroundings(slot: Slot) -> dict[str, DeviceAttribute]:
    """The standard attributes that devices are aligned by."""
    found: dict[str, DeviceAttribute] = {}
    if slot.pcie_root is not None:
        found["resource.kubernetes.io/pcieRoot"] = string(slot.pcie_root)
    if slot.numa is not None:
        found["resource.kubernetes.io/numaNode"] = integer(slot.numa)
    return found


def dashed(bus_id: str) -> str:
    """A PCI address as part of a device's name."""
    return bus_id.replace(":", "-").replace(".", "-")


def device_class(
    name: str, expression: str = "", extended_resource: str | None = None
) -> DeviceClass:
    """A class with one CEL selector: by default, for all devices of the driver of that name."""
    selector = CELDeviceSelector(expression=expression or f"device.driver == '{name}'")
    return DeviceClass(
        metadata=ObjectMeta(name=name),
        spec=DeviceClassSpec(
            selectors=(DeviceSelector(cel=selector),),
            extended_resource_name=extended_resource,
        ),
    )


def fingerprint(*parts: object, size: int) -> str:
    """Hexadecimal digits of a number that is always the same for the same parts, as serial numbers and UUIDs are."""
    text = "/".join(map(str, parts)).encode()
    return blake2b(text, digest_size=size).hexdigest()


def uuid(*parts: object) -> str:
    """A UUID that is always the same for the same parts."""
    digits = fingerprint(*parts, size=16)
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
