"""Where one device is, and what sort of device it is, from the attributes its driver publishes.

Kubernetes standardised `pcieRoot`, then `pciBusID`, then `numaNode`; drivers older than a name publish the same fact under
one of their own. Each fact is therefore looked up under the standard name first and the known vendor names after it. What no
name gives stays `None`: virtual machines often hide all of it, and a wrong guess would look like an alignment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

from msgspec import Struct

from drayman.api.resource import Device, DeviceAttribute

STANDARD_DOMAIN: Final = "resource.kubernetes.io"

# Names without a domain belong to the driver's own. In order of trust: the standard one comes before all of them.
_ROOT_NAMES: Final = ("pcieRoot", "pciRoot")
_BUS_NAMES: Final = ("pciBusID", "pciAddress", "pciAddr", "parentPciAddr")
_NUMA_NAMES: Final = ("numaNode", "numaNodeID")

# Informal names that drivers publish for each other's sake, whatever their own domain is.
_SHARED_NUMA_NAMES: Final = ("dra.net/numaNode", "dra.cpu/numaNodeID")

_BUS_ID: Final = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")


class DeviceKind(StrEnum):
    """What sort of device it is. A partition is of its parent's kind."""

    GPU = "gpu"
    """Any compute accelerator: a GPU, TPU, NPU or Gaudi. They pair with NICs and CPUs alike."""

    NIC = "nic"
    CPU = "cpu"
    OTHER = "other"


class Locality(Struct, frozen=True):
    """The place of a device within its node; `None` is what its driver does not say."""

    pcie_root: str | None = None
    numa: int | None = None
    bus_id: str | None = None
    nvlinks: int | None = None
    """NVLinks to every other GPU of the node, where the product has a switched fabric."""


def locality(driver: str, device: Device) -> Locality:
    """Where the device is."""
    attributes = device.attributes
    names = _names(driver)
    root, numa = root_and_numa(driver, device)
    bus = _text(attributes, names.bus)
    product = _text(attributes, names.product)
    whole = _text(attributes, names.type_) == "gpu"
    return Locality(
        pcie_root=root,
        numa=numa,
        bus_id=bus.lower() if bus is not None and _BUS_ID.fullmatch(bus) else None,
        nvlinks=_SWITCHED_NVLINKS.get(product) if whole and product is not None else None,
    )


def root_and_numa(driver: str, device: Device) -> tuple[str | None, int | None]:
    """The part of the locality that searches look at, for each device of a cluster: it must cost as little as possible."""
    attributes = device.attributes
    root, numa = _place_names(driver, tuple(attributes))
    return (_text(attributes, root) if root else None, _number(attributes, numa) if numa else None)


def kind(driver: str, device: Device) -> DeviceKind:
    """What sort of device it is, by its driver; by its `type` attribute where the driver's name says nothing."""
    by_driver = _kind_of_driver(driver)
    if by_driver is not DeviceKind.OTHER or driver in _KNOWN_DRIVERS:
        return by_driver
    return _WORDS.get(_text(device.attributes, _names(driver).type_) or "", DeviceKind.OTHER)


# --- Sorts of devices -----------------------------------------------------------------------------

_KNOWN_DRIVERS: Final = {
    "gpu.nvidia.com": DeviceKind.GPU,
    "compute-domain.nvidia.com": DeviceKind.OTHER,
    "gpu.amd.com": DeviceKind.GPU,
    "gpu.intel.com": DeviceKind.GPU,
    "gaudi.intel.com": DeviceKind.GPU,
    "qat.intel.com": DeviceKind.OTHER,
    "npu.furiosa.ai": DeviceKind.GPU,
    "tpu.google.com": DeviceKind.GPU,
    "dra.net": DeviceKind.NIC,
    "dra.cpu": DeviceKind.CPU,
}

_WORDS: Final = {
    "gpu": DeviceKind.GPU,
    "mig": DeviceKind.GPU,
    "npu": DeviceKind.GPU,
    "tpu": DeviceKind.GPU,
    "accelerator": DeviceKind.GPU,
    "nic": DeviceKind.NIC,
    "net": DeviceKind.NIC,
    "network": DeviceKind.NIC,
    "rdma": DeviceKind.NIC,
    "sriov": DeviceKind.NIC,
    "sriovnetwork": DeviceKind.NIC,
    "cpu": DeviceKind.CPU,
}

_SWITCHED_NVLINKS: Final = {
    "NVIDIA A100-SXM4-40GB": 12,
    "NVIDIA A100-SXM4-80GB": 12,
    "NVIDIA H100 80GB HBM3": 18,
    "NVIDIA H200": 18,
    "NVIDIA B200": 18,
    "NVIDIA GB200": 18,
}
"""Links per GPU of the products that sit on boards with NVLink switches, where every pair is joined by all of them.

No driver publishes NVLink as an attribute, so the product name is the only source. PCIe variants have other names."""


@lru_cache(maxsize=1024)
def _kind_of_driver(driver: str) -> DeviceKind:
    if driver in _KNOWN_DRIVERS:
        return _KNOWN_DRIVERS[driver]
    labels = driver.split(".")
    # The last label is a top-level domain: `storage.example.net` is not a network driver.
    words = [word for label in labels[:-1] for word in label.split("-")] or labels
    return next((_WORDS[word] for word in words if word in _WORDS), DeviceKind.OTHER)


# --- Attributes -----------------------------------------------------------------------------------


class _Names(Struct, frozen=True):
    """The attribute names to try for each fact, of devices of one driver."""

    root: tuple[str, ...]
    bus: tuple[str, ...]
    numa: tuple[str, ...]
    product: tuple[str, ...]
    type_: tuple[str, ...]


@lru_cache(maxsize=1024)
def _names(driver: str) -> _Names:
    def own(*names: str) -> tuple[str, ...]:
        return tuple(text for name in names for text in (name, f"{driver}/{name}"))

    return _Names(
        root=(f"{STANDARD_DOMAIN}/pcieRoot", *own(*_ROOT_NAMES)),
        bus=(f"{STANDARD_DOMAIN}/pciBusID", *own(*_BUS_NAMES)),
        numa=(f"{STANDARD_DOMAIN}/numaNode", *own(*_NUMA_NAMES), *_SHARED_NUMA_NAMES),
        product=own("productName"),
        type_=own("type"),
    )


@lru_cache(maxsize=4096)
def _place_names(driver: str, given: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names to try for root and NUMA node on a device that has attributes of these names only."""
    names = _names(driver)
    root = tuple(name for name in names.root if name in given)
    return root, tuple(name for name in names.numa if name in given)


def _text(attributes: Mapping[str, DeviceAttribute], names: tuple[str, ...]) -> str | None:
    for name in names:
        value = attributes.get(name)
        if value is None:
            continue
        if value.string is not None:
            return value.string
        # A list is a choice of places (a CPU group near several roots), unless it has a single one.
        if value.strings is not None and len(value.strings) == 1:
            return value.strings[0]
    return None


def _number(attributes: Mapping[str, DeviceAttribute], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = attributes.get(name)
        if value is None:
            continue
        # A list has the physical node first, then its neighbours.
        number = value.int_ if value.int_ is not None else next(iter(value.ints or ()), None)
        # The kernel says -1 where it does not know; drivers should leave it out, but not all do.
        if number is not None and number >= 0:
            return number
    return None
