"""Interfaces as `dra.net` publishes them. The driver and simulated hardware both describe them with this function."""

from __future__ import annotations

import re
from base64 import b32encode
from dataclasses import dataclass
from typing import Final

from drayman.api.resource import Device, DeviceAttribute
from drayman.drivers.describing import FALSE, TRUE, Slot, dashed, integer, string, surroundings

DRIVER: Final = "dra.net"
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface, or a port without one that is only used by RDMA."""

    slot: Slot | None
    """None for a virtual one."""
    name: str = ""
    mac: str = ""
    mtu: int | None = None
    encapsulation: str = ""
    state: str = ""
    type: str = ""
    alias: str = ""
    vendor: str = ""
    device: str = ""
    rdma_device: str | None = None
    sriov: bool = False
    functions: int | None = None
    """Virtual functions that there may be."""
    is_function: bool | None = None
    """Whether it is a virtual function; None where that is not told."""
    ebpf: bool | None = None
    """Whether programs are attached to it; None where that is not told."""


def device(found: Interface) -> Device:
    """As the driver publishes it."""
    texts = {
        "ifName": found.name,
        "alias": found.alias,
        "pciAddress": found.slot.bus_id if found.slot else "",
        "pciVendor": found.vendor,
        "pciDevice": found.device,
        "encapsulation": found.encapsulation,
        "state": found.state,
        "type": found.type,
        "rdmaDevice": found.rdma_device or "",
    }
    flags = {
        "ebpf": found.ebpf,
        "sriov": found.sriov,
        "isSriovVf": found.is_function,
        "virtual": found.slot is None,
        "rdma": found.rdma_device is not None,
    }
    numbers = {
        "mtu": found.mtu,
        "sriovVfs": found.functions,
        "numaNode": found.slot.numa if found.slot else None,
    }
    attributes = {
        **{name: string(value) for name, value in texts.items() if value},
        **{name: TRUE if value else FALSE for name, value in flags.items() if value is not None},
        **{name: integer(value) for name, value in numbers.items() if value is not None},
        **({"mac": DeviceAttribute(string=found.mac)} if found.mac else {}),
    }
    return Device(
        name=_name(found),
        attributes={
            **{f"{DRIVER}/{name}": value for name, value in attributes.items()},
            **(surroundings(found.slot) if found.slot else {}),
        },
    )


def _name(found: Interface) -> str:
    if found.slot is not None:
        return f"pci-{dashed(found.slot.bus_id)}"
    if _LABEL.fullmatch(found.name):
        return found.name
    return f"net-{b32encode(found.name.encode()).decode().lower().rstrip('=')}"
