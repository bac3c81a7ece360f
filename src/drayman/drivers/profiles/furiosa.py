"""Furiosa's RNGD cards, as `npu.furiosa.ai` publishes them. The driver's source is closed: of the attributes only `uuid` is documented."""

from __future__ import annotations

from typing import Final

from drayman.api.resource import Device, DeviceAttribute, ResourceSlice
from drayman.drivers.profiles import machines, processors
from drayman.drivers.profiles.hardware import (
    HardwareNode,
    Slot,
    device_class,
    fingerprint,
    place,
    pool_slices,
)
from drayman.drivers.profiles.machines import Machine, Spot
from drayman.drivers.profiles.profile import Profile

DRIVER: Final = "npu.furiosa.ai"
CLASSES: Final = (device_class(DRIVER, f"device.driver == '{DRIVER}'"),)
_MACHINE: Final = Machine("rngd-8", 128, "1Ti")
_LABELS: Final = {"feature.node.kubernetes.io/pci-1200_1ed2.present": "true"}
_BUSES: Final = ("17", "2a", "3d", "50", "97", "aa", "bd", "d0")


def _cards(node_name: str) -> tuple[ResourceSlice, ...]:
    half = len(_BUSES) // 2
    devices = tuple(
        Device(
            name=f"npu{index}",
            attributes={
                "uuid": DeviceAttribute(string=_uuid(node_name, index)),
                **place(Slot(f"0000:{bus}:00.0", f"pci0000:{int(bus, 16) - 1:02x}", index // half)),
            },
        )
        for index, bus in enumerate(_BUSES)
    )
    return pool_slices(node_name, DRIVER, [devices])


def _uuid(node_name: str, index: int) -> str:
    digits = fingerprint("npu", node_name, index, size=16).upper()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _build(spot: Spot) -> HardwareNode:
    return HardwareNode(
        machines.node(spot, _MACHINE, _LABELS),
        (*_cards(spot.name), *processors.numa_groups(spot.name, _MACHINE)),
        (*CLASSES, *processors.CLASSES),
    )


PROFILES: Final = (Profile("rngd", "8 x Furiosa RNGD 48 GB, four per socket", _build),)
