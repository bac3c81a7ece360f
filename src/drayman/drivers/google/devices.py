"""Chips as `tpu.google.com` publishes them. The driver and simulated hardware both describe them with these functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drayman.api.resource import Device, DeviceAttribute
from drayman.drivers.describing import fingerprint, integer, string

DRIVER: Final = "tpu.google.com"


@dataclass(frozen=True, slots=True)
class Host:
    """What all chips of a machine have in common."""

    generation: str
    accelerator: str
    chips: int
    topology: str


def chip(node_name: str, host: Host, index: int, name: str) -> Device:
    """A chip, by its place and the name of its device file."""
    unique = fingerprint("tpu", node_name, index, size=16)
    return Device(
        name=name,
        attributes={
            "index": integer(index),
            "uuid": DeviceAttribute(string=f"tpu-{unique}"),
            "tpuGen": string(host.generation),
            "brand": string("Google"),
            "accelerator": string(host.accelerator),
            "chipCount": integer(host.chips),
            "topology": string(host.topology),
        },
    )
