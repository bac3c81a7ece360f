"""Finding AMD's GPUs: PCI devices that the module amdgpu has, and the nodes of KFD, one for each GPU or partition.

A node of KFD names its render device and the PCI address of its GPU. The first partition of a GPU has the device files of the GPU, the
others those of platform devices `amdgpu_xcp_<n>`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from drayman.drivers.amd.devices import Gpu
from drayman.drivers.pci import PciDevice, pci_devices
from drayman.drivers.sysfs import entries, numbered, properties, read_text

_MODULE: Final = "sys/module/amdgpu"
_TOPOLOGY: Final = "sys/class/kfd/kfd/topology/nodes"
_FAMILIES: Final = {
    110: "SI",
    120: "CI",
    125: "KV",
    130: "VI",
    135: "CZ",
    141: "AI",
    142: "RV",
    143: "NV",
    144: "VGH",
    145: "GC_11_0_0",
    146: "YC",
    149: "GC_10_3_7",
}
_MEBIBYTE: Final = 2**20
_UNREADABLE: Final = "80Gi"
_UNREADABLE_PARTITION: Final = "20Gi"
"""What AMD's driver publishes where the kernel does not tell how much memory there is."""
_PRODUCT: Final = str.maketrans(" ", "_", "()")
"""Names as AMD's own programs write them."""


def discover(root: Path) -> list[Gpu]:
    """The GPUs and partitions of a machine, by their cards. Raises OSError."""
    gpus = {pci.address: pci for pci in pci_devices(root) if pci.driver == "amdgpu"}
    cards = dict(_cards(root, gpus))
    found = []
    for node in numbered(root / _TOPOLOGY, "").values():
        about = properties(node / "properties")
        render = int(about.get("drm_render_minor", "0"))
        pci = gpus.get(_address(about))
        if pci is not None and render in cards:
            found.append(_gpu(root, node, about, pci, cards[render], render))
    return sorted(found, key=lambda gpu: gpu.card)


def _cards(root: Path, gpus: dict[str, PciDevice]) -> Iterator[tuple[int, int]]:
    """The card that each render device goes with."""
    platform = entries(root / "sys/devices/platform", "amdgpu_xcp_")
    for home in (*(pci.path for pci in gpus.values()), *platform):
        renders, cards = numbered(home / "drm", "renderD"), numbered(home / "drm", "card")
        if renders and cards:
            yield min(renders), min(cards)


def _address(about: dict[str, str]) -> str:
    """KFD has bus, device and function in one number."""
    place, domain = int(about.get("location_id", "0")), int(about.get("domain", "0"))
    return f"{domain:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"


def _gpu(
    root: Path, node: Path, about: dict[str, str], pci: PciDevice, card: int, render: int
) -> Gpu:
    compute = (pci.text("current_compute_partition") or "SPX").lower()
    memory = (pci.text("current_memory_partition") or "NPS1").lower()
    simds = int(about["simd_count"])
    return Gpu(
        slot=pci.slot,
        card=card,
        render=render,
        unique_id=about.get("unique_id", ""),
        product=(pci.text("product_name") or "").translate(_PRODUCT),
        family=_FAMILIES.get(int(about.get("family_id", "0")), "unknown"),
        driver_version=read_text(root / _MODULE / "version") or "0.0.0",
        source_version=read_text(root / _MODULE / "srcversion") or "",
        mode=f"{compute}_{memory}",
        memory=_memory(node) or (_UNREADABLE if compute == "spx" else _UNREADABLE_PARTITION),
        compute_units=simds // int(about["simd_per_cu"]),
        simds=simds,
    )


def _memory(node: Path) -> str:
    """Of its banks together; empty where the kernel does not tell."""
    try:
        banks = [properties(bank / "properties") for bank in entries(node / "mem_banks")]
    except OSError:
        return ""
    size = sum(int(bank.get("size_in_bytes", "0")) for bank in banks)
    return f"{size // _MEBIBYTE}Mi" if size else ""
