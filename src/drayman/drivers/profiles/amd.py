"""AMD Instinct MI300X machines, as `gpu.amd.com` publishes them.

A GPU is used whole or in equal partitions, which the administrator fixes; the driver has no counters. So each mode is a profile of its
own. Bus numbers of the second half, and the roots, are inferred.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from drayman.api.resource import Device, ResourceSlice
from drayman.drivers.amd.devices import DRIVER, Gpu, device
from drayman.drivers.classes import classes_of
from drayman.drivers.describing import Slot, fingerprint
from drayman.drivers.dranet.devices import DRIVER as DRANET
from drayman.drivers.profiles import dranet, processors
from drayman.drivers.profiles.hardware import pool_slices
from drayman.drivers.profiles.machines import Machine
from drayman.drivers.profiles.profile import Profile

_PRODUCT: Final = "AMD_Instinct_MI300X_OAM"
_BUSES: Final = (
    ("05", 0),
    ("2b", 0),
    ("5b", 0),
    ("65", 0),
    ("85", 1),
    ("ab", 1),
    ("db", 1),
    ("e5", 1),
)
_MEMORY_MEBIBYTES: Final = 196_288
_COMPUTE_UNITS: Final = 304
_SIMDS_PER_UNIT: Final = 4
_FIRST_RENDER: Final = 128
_NIC_OFFSET: Final = 3


@dataclass(frozen=True, slots=True)
class _Mode:
    """How every GPU of a machine is divided: compute mode, memory mode, parts."""

    compute: str
    memory: str
    parts: int

    @property
    def name(self) -> str:
        return f"{self.compute}_{self.memory}"


def _slots() -> list[Slot]:
    return [
        Slot(f"0000:{bus}:00.0", f"pci0000:{int(bus, 16) - 5:02x}", numa) for bus, numa in _BUSES
    ]


def _gpus(node_name: str, mode: _Mode) -> tuple[ResourceSlice, ...]:
    devices: list[Device] = []
    for gpu, slot in enumerate(_slots()):
        for _ in range(mode.parts):
            card = len(devices) + 1
            devices.append(_device(node_name, gpu, slot, mode, card))
    return pool_slices(node_name, DRIVER, [tuple(devices)])


def _device(node_name: str, gpu: int, slot: Slot, mode: _Mode, card: int) -> Device:
    units = _COMPUTE_UNITS // mode.parts
    return device(
        Gpu(
            slot=slot,
            card=card,
            render=_FIRST_RENDER + card - 1,
            unique_id=str(int(fingerprint("amd", node_name, gpu, size=7), 16)),
            product=_PRODUCT,
            family="AI",
            driver_version="6.12.12",
            source_version="6F5AD9B4F2CDD1B6B8D4C1F",
            mode=mode.name,
            memory=f"{_MEMORY_MEBIBYTES // mode.parts}Mi",
            compute_units=units,
            simds=units * _SIMDS_PER_UNIT,
        )
    )


def _nics() -> list[dranet.Nic]:
    return [
        dranet.Nic(
            Slot(f"0000:{int(bus, 16) + _NIC_OFFSET:02x}:00.0", slot.pcie_root, slot.numa),
            f"enp{int(bus, 16) + _NIC_OFFSET}s0",
            f"mlx5_{index}",
            dranet.CONNECTX7,
        )
        for index, ((bus, _), slot) in enumerate(zip(_BUSES, _slots(), strict=True))
    ]


def _labels(mode: _Mode) -> dict[str, str]:
    """What AMD's node labeller writes."""
    return {
        "amd.com/gpu.family": "AI",
        "amd.com/gpu.product-name": _PRODUCT,
        "amd.com/gpu.device-id": "74a1",
        "amd.com/gpu.vram": "192G",
        "amd.com/gpu.cu-count": str(_COMPUTE_UNITS),
        "amd.com/compute-memory-partition": mode.name,
    }


def _devices(node_name: str, mode: _Mode) -> tuple[ResourceSlice, ...]:
    return (*_gpus(node_name, mode), *dranet.interfaces(node_name, _nics()))


def _profile(name: str, summary: str, mode: _Mode) -> Profile:
    machine = Machine("mi300x-8", 192, "2304Gi", labels=_labels(mode))
    devices, classes = partial(_devices, mode=mode), classes_of(DRIVER, DRANET)
    return processors.profile(name, summary, machine, devices, classes)


PROFILES: Final = (
    _profile("mi300x", "8 x MI300X 192 GB (SPX), 8 x 400G RoCE, one of each per PCIe root", _Mode("spx", "nps1", 1)),
    _profile("mi300x-dpx", "mi300x with each GPU in two partitions", _Mode("dpx", "nps1", 2)),
    _profile("mi300x-qpx", "mi300x with each GPU in four partitions", _Mode("qpx", "nps1", 4)),
    _profile("mi300x-cpx", "mi300x with each GPU in eight partitions", _Mode("cpx", "nps1", 8)),
    _profile("mi300x-cpx-nps4", "mi300x-cpx with the memory in quarters, each of its own partitions", _Mode("cpx", "nps4", 8)),
)  # fmt: skip
