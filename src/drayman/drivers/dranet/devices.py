"""Interfaces as `dra.net` publishes them. The driver and simulated hardware both describe them with this function."""

from __future__ import annotations

import re
from base64 import b32encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from drayman.api.resource import Device, DeviceAttribute
from drayman.driver_configs import network
from drayman.drivers.describing import (
    FALSE,
    TRUE,
    Slot,
    dashed,
    fitting,
    integer,
    string,
    surroundings,
)

DRIVER: Final = network.DRIVER
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
    subsystem: str = ""
    """The number of the board on which the device is."""
    rdma_device: str | None = None
    functions: int | None = None
    """Virtual functions that it has now; None if it cannot have any."""
    is_function: bool | None = None
    """Whether it is a virtual function; None where that is not told."""
    ebpf: bool | None = None
    """Whether programs are attached to it; None where that is not told."""
    ipv4: tuple[str, ...] = ()
    """Addresses, each with the length of its prefix."""
    ipv6: tuple[str, ...] = ()


def device(found: Interface) -> Device:
    """As the driver publishes it."""
    texts = {
        "ifName": found.name,
        "alias": found.alias,
        "pciAddress": found.slot.bus_id if found.slot else "",
        "pciVendor": found.vendor,
        "pciDevice": found.device,
        "pciSubsystem": found.subsystem,
        "encapsulation": found.encapsulation,
        "state": found.state,
        "type": found.type,
        "rdmaDevice": found.rdma_device or "",
        "ipv4": _listed(found.ipv4),
        "ipv6": _listed(found.ipv6),
    }
    flags = {
        "ebpf": found.ebpf,
        "sriov": found.functions is not None,
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
        **{name: string(fitting(value)) for name, value in texts.items() if value},
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


def _listed(addresses: Iterable[str]) -> str:
    """As many of them as an attribute holds, always the same ones."""
    found = ""
    for each in sorted(set(addresses)):
        longer = f"{found},{each}" if found else each
        if fitting(longer) != longer:
            break
        found = longer
    return found


def _name(found: Interface) -> str:
    if found.slot is not None:
        return f"pci-{dashed(found.slot.bus_id)}"
    if _LABEL.fullmatch(found.name):
        return found.name
    return f"net-{b32encode(found.name.encode()).decode().lower().rstrip('=')}"
