"""Cards as `npu.furiosa.ai` publishes them. The driver and simulated hardware both describe them with this function."""

from __future__ import annotations

from typing import Final

from drayman.api.resource import Device, DeviceAttribute
from drayman.drivers.describing import Slot, place

DRIVER: Final = "npu.furiosa.ai"


def card(index: int, uuid: str, slot: Slot) -> Device:
    uuid_ = DeviceAttribute(string=uuid.upper())
    return Device(name=f"npu{index}", attributes={"uuid": uuid_, **place(slot)})
