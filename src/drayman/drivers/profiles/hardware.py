"""What a profile makes, and the small values it is made of.

A cluster for a benchmark has hundreds of thousands of simulated devices, so everything that does not differ between nodes
(attributes, capacities, counters) is built once and shared: the structs are immutable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from drayman.api.core import Node
from drayman.api.meta import ObjectMeta
from drayman.api.quantity import Quantity
from drayman.api.resource import (
    CELDeviceSelector,
    CounterSet,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClass,
    DeviceClassSpec,
    DeviceSelector,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from drayman.api.struct import Json
from drayman.api.validation.resource_slice import MAX_ADVANCED_DEVICES, MAX_DEVICES


@dataclass(frozen=True, slots=True)
class HardwareNode:
    """A simulated node, what its drivers publish, and the classes and kinds that come with them."""

    node: Node
    slices: tuple[ResourceSlice, ...]
    classes: tuple[DeviceClass, ...]
    definitions: tuple[dict[str, Json], ...] = ()
    """CustomResourceDefinitions that the drivers install."""


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


def pool_slices(
    node_name: str,
    driver: str,
    devices: Sequence[tuple[Device, ...]],
    counters: tuple[CounterSet, ...] = (),
) -> tuple[ResourceSlice, ...]:
    """The slices of a driver's pool on a node, one per group of devices, after one with the counters if there are any.

    A group that is too large for a slice is split. Names end in the index because the allocator walks the slices of a pool by name: the
    order is a preference.
    """
    contents: list[tuple[tuple[Device, ...] | None, tuple[CounterSet, ...] | None]] = []
    if counters:
        contents.append((None, counters))
    contents.extend((part, None) for group in devices for part in _split(group))
    pool = ResourcePool(name=node_name, generation=1, resource_slice_count=len(contents))
    return tuple(
        ResourceSlice(
            metadata=ObjectMeta(name=f"{node_name}-{driver}-{index:02}"),
            spec=ResourceSliceSpec(
                driver=driver,
                pool=pool,
                node_name=node_name,
                devices=group,
                shared_counters=sets,
            ),
        )
        for index, (group, sets) in enumerate(contents)
    )


def _split(group: tuple[Device, ...]) -> list[tuple[Device, ...]]:
    most = MAX_ADVANCED_DEVICES if any(map(_is_advanced, group)) else MAX_DEVICES
    return [group[at : at + most] for at in range(0, len(group), most)]


def _is_advanced(device: Device) -> bool:
    """Whether a slice with this device may hold only half as many: it has taints, counters or attributes that are lists."""
    return bool(device.taints or device.consumes_counters) or any(
        values is not None
        for found in device.attributes.values()
        for values in (found.ints, found.bools, found.strings, found.versions)
    )


def fingerprint(*parts: object, size: int) -> str:
    """Hexadecimal digits of a number that is always the same for the same parts, as serial numbers and UUIDs are."""
    text = "/".join(map(str, parts)).encode()
    return blake2b(text, digest_size=size).hexdigest()


def uuid(*parts: object) -> str:
    """A UUID that is always the same for the same parts."""
    digits = fingerprint(*parts, size=16)
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
