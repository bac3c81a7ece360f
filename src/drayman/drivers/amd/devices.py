"""GPUs as `gpu.amd.com` publishes them. The driver and simulated hardware both describe them with these functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drayman.api.resource import Device, DeviceAttribute
from drayman.drivers.describing import Slot, capacity, integer, string, version

DRIVER: Final = "gpu.amd.com"


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU or a partition, with device files of its own."""

    slot: Slot
    """Of the GPU that it is, or is a part of."""
    card: int
    render: int
    unique_id: str
    """Of the GPU."""
    product: str
    family: str
    driver_version: str
    source_version: str
    mode: str
    """How the GPU is divided: `spx_nps1` if it is whole."""
    memory: str
    compute_units: int
    simds: int

    @property
    def is_partition(self) -> bool:
        return not self.mode.startswith("spx")


def device(gpu: Gpu) -> Device:
    """As the driver publishes it."""
    attributes = {
        **_identity(gpu),
        "cardIndex": integer(gpu.card),
        "renderIndex": integer(gpu.render),
        "family": string(gpu.family),
        "productName": string(gpu.product),
        "driverVersion": version(gpu.driver_version),
        "driverSrcVersion": string(gpu.source_version),
        "partitionProfile": string(gpu.mode),
    }
    if gpu.slot.pcie_root is not None:
        attributes["resource.kubernetes.io/pcieRoot"] = string(gpu.slot.pcie_root)
    return Device(
        name=f"gpu-{gpu.card}-{gpu.render}",
        attributes=attributes,
        capacity={
            "memory": capacity(gpu.memory),
            "computeUnits": capacity(str(gpu.compute_units)),
            "simdUnits": capacity(str(gpu.simds)),
        },
    )


def _identity(gpu: Gpu) -> dict[str, DeviceAttribute]:
    unique = DeviceAttribute(string=gpu.unique_id)
    if gpu.is_partition:
        return {
            "type": string("amdgpu-partition"),
            "parentPciAddr": string(gpu.slot.bus_id),
            "parentDeviceID": unique,
        }
    return {"type": string("amdgpu"), "pciAddr": string(gpu.slot.bus_id), "deviceID": unique}
