"""PCI devices as sysfs shows them: where they sit, which driver has them, and the standard attributes that follow.

Everything is read below a root, which tests replace by a tree of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from drayman.drivers.describing import Slot
from drayman.drivers.sysfs import read_text

_DEVICES: Final = "sys/bus/pci/devices"
_ADDRESS: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
_ROOT: Final = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}")
_NO_NUMA_NODE: Final = -1


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One function of a PCI device."""

    path: Path
    """Its folder in sysfs."""
    slot: Slot
    vendor: str
    """As sysfs writes it, such as `0x10de`."""
    device: str
    class_: str
    """Six digits, such as `0x030200`."""
    driver: str
    """The kernel's driver that has it; empty if none has."""

    @property
    def address(self) -> str:
        return self.slot.bus_id

    def text(self, name: str) -> str | None:
        """The content of one of its files; None if there is no such file. Raises OSError."""
        return read_text(self.path / name)

    @property
    def iommu_group(self) -> str | None:
        link = self.path / "iommu_group"
        return link.resolve().name if link.exists() else None

    @property
    def parent_function(self) -> str | None:
        """The address of the physical function whose virtual function it is."""
        link = self.path / "physfn"
        return link.resolve().name if link.exists() else None


def pci_devices(root: Path) -> Iterator[PciDevice]:
    """All PCI devices of a machine, by address. Raises OSError."""
    folder = root / _DEVICES
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if _ADDRESS.fullmatch(path.name):
            yield _read(path)


def pci_device(root: Path, address: str) -> PciDevice | None:
    """A PCI device by its address, in any case of letters; None if there is none. Raises OSError."""
    path = root / _DEVICES / address.lower()
    return _read(path) if path.exists() else None


def slot_at(path: Path) -> Slot:
    """Where the device sits to which a folder of sysfs belongs, or links. Raises OSError."""
    found = path.resolve()
    roots = [part for part in found.parts if _ROOT.fullmatch(part)]
    numa = read_text(found / "numa_node")
    node = _NO_NUMA_NODE if numa is None else int(numa)
    return Slot(
        bus_id=found.name,
        pcie_root=roots[0] if roots else None,
        # Virtual machines say -1, which is no place to align by.
        numa=node if node > _NO_NUMA_NODE else None,
    )


def _read(path: Path) -> PciDevice:
    driver = path / "driver"
    return PciDevice(
        path=path.resolve(),
        slot=slot_at(path),
        vendor=read_text(path / "vendor") or "",
        device=read_text(path / "device") or "",
        class_=read_text(path / "class") or "",
        driver=driver.resolve().name if driver.exists() else "",
    )
