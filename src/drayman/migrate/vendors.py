"""What vendors call their devices: DRA classes and drivers, and earlier names.

Facts are from the drivers' own charts and sources. A name that is missing here is not guessed at.
"""

from __future__ import annotations

import json
from typing import Final

NVIDIA: Final = "gpu.nvidia.com"
NVIDIA_MIG: Final = "mig.nvidia.com"
INTEL: Final = "gpu.intel.com"
AMD: Final = "gpu.amd.com"
TPU: Final = "tpu.google.com"
GAUDI: Final = "gaudi.intel.com"
FURIOSA: Final = "npu.furiosa.ai"
QAT: Final = "qat.intel.com"

RENAMED_DRIVERS: Final = {
    "gpu.resource.nvidia.com": NVIDIA,
    "gpu.resource.intel.com": INTEL,
    "gpu.resource.example.com": "gpu.example.com",
}
"""Drivers of v1alpha2 that have another name today."""


def quoted(text: str) -> str:
    """A text as a CEL string literal."""
    return json.dumps(text, ensure_ascii=False)


def attribute(driver: str, name: str) -> str:
    """An attribute of a device in CEL."""
    return f"device.attributes[{quoted(driver)}].{name}"


def capacity(driver: str, name: str) -> str:
    """A capacity of a device in CEL."""
    return f"device.capacity[{quoted(driver)}].{name}"


def of_driver(driver: str) -> str:
    """The selector that every device of a driver passes."""
    return f"device.driver == {quoted(driver)}"


def of_type(driver: str, type_: str) -> str:
    """The selector for one type among the devices of a driver."""
    return f"{attribute(driver, 'type')} == {quoted(type_)}"


SHIPPED_CLASSES: Final = {
    NVIDIA: f"{of_driver(NVIDIA)} && {of_type(NVIDIA, 'gpu')}",
    NVIDIA_MIG: f"{of_driver(NVIDIA)} && {of_type(NVIDIA, 'mig')}",
    "vfio.gpu.nvidia.com": f"{of_driver(NVIDIA)} && {of_type(NVIDIA, 'vfio')}",
    AMD: of_driver(AMD),
    INTEL: of_driver(INTEL),
    GAUDI: of_driver(GAUDI),
    QAT: of_driver(QAT),
    TPU: of_driver(TPU),
    FURIOSA: of_driver(FURIOSA),
}
"""Classes that come with a driver, and what they select."""
