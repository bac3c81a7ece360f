"""Finding Intel's devices in sysfs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from drayman.drivers.intel.devices import GAUDI_MODELS, Gaudi, Gpu
from drayman.drivers.pci import PciDevice, pci_devices
from drayman.drivers.sysfs import accel_numbers, entries, numbered, read_text

_INTEL: Final = "0x8086"
_HABANA: Final = "0x1da3"
_DISPLAY: Final = "0x03"
_GPU_DRIVERS: Final = ("i915", "xe")
_OPERATIONAL: Final = "operational"
_MEBIBYTE: Final = 2**20


def discover_gpus(root: Path) -> list[Gpu]:
    """The GPUs that the kernel's graphics drivers have, and their virtual functions. Raises OSError."""
    return [
        Gpu(
            slot=pci.slot,
            pci_id=pci.device,
            driver=pci.driver,
            virtual=pci.parent_function is not None,
            sriov=int(pci.text("sriov_totalvfs") or "0") > 0,
            memory=_memory(pci),
        )
        for pci in pci_devices(root)
        if pci.vendor == _INTEL and pci.class_.startswith(_DISPLAY) and pci.driver in _GPU_DRIVERS
    ]


def _memory(pci: PciDevice) -> str | None:
    """Of its tiles together; None where the kernel does not tell."""
    cards = numbered(pci.path / "drm", "card").values()
    files = [card / "lmem_total_bytes" for card in cards]
    files += [tile / "physical_vram_size_bytes" for tile in entries(pci.path, "tile")]
    found = [int(text, 0) for path in files if (text := read_text(path)) is not None]
    return f"{sum(found) // _MEBIBYTE}Mi" if found else None


def discover_gaudis(root: Path) -> list[Gaudi]:
    """The accelerators that the kernel's driver has. Raises OSError."""
    accels = accel_numbers(root)
    found = []
    for pci in pci_devices(root):
        if pci.vendor != _HABANA or pci.device not in GAUDI_MODELS or pci.address not in accels:
            continue
        home = root / f"sys/class/accel/accel{accels[pci.address]}/device"
        healthy = (read_text(home / "status") or "").lower() == _OPERATIONAL
        serial = read_text(home / "serial_number") or ""
        found.append(Gaudi(pci.slot, pci.device, serial, healthy))
    return found
