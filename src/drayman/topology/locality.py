"""Where one device is, and what sort of device it is, from the attributes its driver publishes.

Drivers name the same fact differently; `attribute_names` has the table. What no name gives stays `None`: virtual machines often hide all
of it, and a wrong guess would look like an alignment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from drayman.api.resource import Device, DeviceAttribute
from drayman.topology.attribute_names import Fact, names_of

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
    """NVLinks to every other GPU of its fabric."""
    socket: int | None = None
    fabric: str | None = None
    """Which GPUs of the node it is joined to by NVLink, or by the equivalent of another vendor: those with the same value."""


def locality(driver: str, device: Device) -> Locality:
    """Where the device is."""
    attributes = device.attributes
    found = place_of(driver, device)
    bus = _text(attributes, names_of(driver, Fact.BUS_ID))
    product = _text(attributes, names_of(driver, Fact.PRODUCT))
    stated = _number(attributes, names_of(driver, Fact.NVLINKS))
    whole = _text(attributes, names_of(driver, Fact.TYPE)) == "gpu"
    return Locality(
        pcie_root=found.root,
        numa=found.numa,
        bus_id=bus.lower() if bus is not None and _BUS_ID.fullmatch(bus) else None,
        nvlinks=_nvlinks(stated, product) if whole else None,
        socket=found.socket,
        fabric=found.fabric,
    )


class Place(NamedTuple):
    """The part of the locality that searches look at."""

    root: str | None
    numa: int | None
    socket: int | None
    fabric: str | None


def place_of(driver: str, device: Device) -> Place:
    """Where the device is, as far as searches look at it. Worked out for each device of a cluster: it must cost as little as possible."""
    attributes = device.attributes
    names = _place_names(driver, tuple(attributes))
    return Place(
        _text(attributes, names.root) if names.root else None,
        _number(attributes, names.numa) if names.numa else None,
        _number(attributes, names.socket) if names.socket else None,
        _fabric(attributes, names) if names.fabric or names.product else None,
    )


def product_nvlinks(product: str) -> int | None:
    """The NVLinks between any two GPUs of a machine, if they are of a product that is known to be joined by switches."""
    return _SWITCHED_NVLINKS.get(product)


def _nvlinks(stated: int | None, product: str | None) -> int | None:
    if stated is not None:
        return stated or None
    return None if product is None else product_nvlinks(product)


def kind(driver: str, device: Device) -> DeviceKind:
    """What sort of device it is, by its driver; by its `type` attribute where the driver's name says nothing."""
    by_driver = _kind_of_driver(driver)
    if by_driver is not DeviceKind.OTHER or driver in _KNOWN_DRIVERS:
        return by_driver
    return _WORDS.get(_text(device.attributes, names_of(driver, Fact.TYPE)) or "", DeviceKind.OTHER)


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

Where no attribute says otherwise, the product name is the only source. PCIe variants have other names."""

_MESHES: Final = frozenset({"AMD_Instinct_MI300X_OAM"})
"""Products of which every pair on a board is joined directly, by XGMI."""

_WHOLE: Final = frozenset({"gpu", "amdgpu"})
"""Types of GPUs that are not partitions: these do not use the fabric."""


@lru_cache(maxsize=1024)
def _kind_of_driver(driver: str) -> DeviceKind:
    if driver in _KNOWN_DRIVERS:
        return _KNOWN_DRIVERS[driver]
    labels = driver.split(".")
    # The last label is a top-level domain: `storage.example.net` is not a network driver.
    words = [word for label in labels[:-1] for word in label.split("-")] or labels
    return next((_WORDS[word] for word in words if word in _WORDS), DeviceKind.OTHER)


# --- Attributes -----------------------------------------------------------------------------------


class _PlaceNames(NamedTuple):
    """The attribute names to look at for each fact, on devices that have attributes of certain names only."""

    root: tuple[str, ...]
    numa: tuple[str, ...]
    socket: tuple[str, ...]
    fabric: tuple[str, ...]
    links: tuple[str, ...]
    product: tuple[str, ...]
    type_: tuple[str, ...]


@lru_cache(maxsize=4096)
def _place_names(driver: str, given: tuple[str, ...]) -> _PlaceNames:
    def present(fact: Fact) -> tuple[str, ...]:
        return tuple(name for name in names_of(driver, fact) if name in given)

    is_gpu = _kind_of_driver(driver) is DeviceKind.GPU
    return _PlaceNames(
        present(Fact.PCIE_ROOT),
        present(Fact.NUMA_NODE),
        present(Fact.SOCKET),
        present(Fact.NVLINK_GROUP),
        present(Fact.NVLINKS),
        present(Fact.PRODUCT) if is_gpu else (),
        present(Fact.TYPE),
    )


def _fabric(attributes: Mapping[str, DeviceAttribute], names: _PlaceNames) -> str | None:
    stated = _text(attributes, names.fabric)
    if stated is not None:
        return stated
    number = _number(attributes, names.fabric)
    if number is not None:
        return str(number)
    if names.links and _number(attributes, names.links) == 0:
        return None
    product = _text(attributes, names.product)
    joins_all = product in _SWITCHED_NVLINKS or product in _MESHES
    return product if joins_all and _text(attributes, names.type_) in _WHOLE else None


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
