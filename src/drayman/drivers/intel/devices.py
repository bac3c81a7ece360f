"""GPUs and Gaudi accelerators as Intel's drivers publish them, and as simulated hardware has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from drayman.api.resource import Device, DeviceAttribute
from drayman.drivers.describing import FALSE, TRUE, Slot, capacity, dashed, string

GPU: Final = "gpu.intel.com"
GAUDI: Final = "gaudi.intel.com"
_FAMILIES: Final = {
    "Iris Xe": {
        "0x4626": "Alder Lake-P",
        "0xa7a0": "Raptor Lake-P",
    },
    "Arc A-Series": {
        "0x56a0": "A770",
        "0x56a1": "A750",
        "0x56a2": "A580",
        "0x56a5": "A380",
        "0x56a6": "A310",
    },
    "Arc Pro A-Series": {
        "0x56b0": "A30M",
        "0x56b1": "A40/A50",
        "0x56b2": "A60M",
        "0x56b3": "A60",
    },
    "Data Center Flex": {
        "0x56c0": "Flex 170",
        "0x56c1": "Flex 140",
    },
    "Intel Graphics": {
        "0x7d67": "Arrow Lake-S",
    },
    "Data Center Max": {
        "0x0b69": "Max 1550",
        "0x0bd0": "Max 1550",
        "0x0bd5": "Max 1550",
        "0x0bd6": "Max 1450",
        "0x0bd9": "Max 1100",
        "0x0bda": "Max 1100",
        "0x0bdb": "Max 1100",
    },
    "Arc B-Series": {
        "0xb080": "B390",
        "0xb081": "B370",
        "0xb082": "B390",
        "0xb083": "B370",
        "0xb084": "B390",
        "0xb085": "B370",
        "0xb086": "B390",
        "0xb087": "B370",
        "0xe20b": "B580",
        "0xe20c": "B570",
    },
    "Arc Pro B-Series": {
        "0xe211": "B60",
        "0xe212": "B50",
        "0xe222": "B65",
        "0xe223": "B70",
    },
}
GPU_MODELS: Final = {
    pci_id: (model, family)
    for family, models in _FAMILIES.items()
    for pci_id, model in models.items()
}
"""Model and family by PCI id."""
GAUDI_MODELS: Final = {
    "0x1020": "Gaudi2",
    "0x1030": "Gaudi3",
    "0x1060": "Gaudi3",
    "0x1061": "Gaudi3",
    "0x1062": "Gaudi3",
    "0x1063": "Gaudi3",
}
_UNKNOWN: Final = ("Unknown", "Unknown")


@dataclass(frozen=True, slots=True)
class Gpu:
    slot: Slot
    pci_id: str
    driver: str
    """The kernel's."""
    virtual: bool
    sriov: bool
    memory: str | None
    health: str = "Unknown"
    """It needs Intel's daemon xpumd to be known."""


@dataclass(frozen=True, slots=True)
class Gaudi:
    slot: Slot
    pci_id: str
    serial: str
    healthy: bool


def gpu(found: Gpu) -> Device:
    model, family = GPU_MODELS.get(found.pci_id, _UNKNOWN)
    amounts = {} if found.memory is None else {"memory": capacity(found.memory)}
    return Device(
        name=f"{dashed(found.slot.bus_id)}-{found.pci_id}",
        attributes={
            "model": string(model),
            "family": string(family),
            "driver": string(found.driver),
            "type": string("vf" if found.virtual else "gpu"),
            "sriov": TRUE if found.sriov else FALSE,
            "pciId": string(found.pci_id),
            "health": string(found.health),
            "pciAddress": string(found.slot.bus_id),
            "resource.kubernetes.io/pciBusID": string(found.slot.bus_id),
            **_roots(found.slot),
        },
        capacity={**amounts, "millicores": capacity("1000")},
    )


def gaudi(found: Gaudi) -> Device:
    return Device(
        name=f"{dashed(found.slot.bus_id)}-{found.pci_id}",
        attributes={
            "model": string(GAUDI_MODELS[found.pci_id]),
            "serial": DeviceAttribute(string=found.serial),
            "healthy": TRUE if found.healthy else FALSE,
            **_roots(found.slot),
        },
    )


def _roots(slot: Slot) -> dict[str, DeviceAttribute]:
    """The standard name of the root, and the one that Intel's drivers had before."""
    if slot.pcie_root is None:
        return {}
    return {
        "resource.kubernetes.io/pcieRoot": string(slot.pcie_root),
        "pciRoot": string(slot.pcie_root.rpartition(":")[2]),
    }
