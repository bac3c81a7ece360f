"""What PCI devices are called: the list of names by number that most machines have."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from drayman.drivers.pci import PciDevice

_LISTS: Final = ("usr/share/hwdata/pci.ids", "usr/share/misc/pci.ids")


class PciNames:
    """Names of vendors and devices."""

    def __init__(self, lines: list[str]) -> None:
        self._vendors: dict[str, str] = {}
        self._devices: dict[tuple[str, str], str] = {}
        vendor = ""
        for line in lines:
            number, _, name = line.strip().partition("  ")
            if line.startswith("C "):
                break  # classes come last
            if not line or line.startswith(("#", "\t\t")):
                continue
            if line.startswith("\t"):
                self._devices[vendor, number] = name
            else:
                vendor = number
                self._vendors[vendor] = name

    @classmethod
    def read(cls, root: Path) -> PciNames:
        """Raises OSError."""
        for path in _LISTS:
            if (root / path).exists():
                return cls((root / path).read_text(errors="replace").splitlines())
        return cls([])

    def of(self, pci: PciDevice) -> tuple[str, str]:
        """Vendor and device; empty where they are not known."""
        vendor, device = pci.vendor.removeprefix("0x"), pci.device.removeprefix("0x")
        return self._vendors.get(vendor, ""), self._devices.get((vendor, device), "")
