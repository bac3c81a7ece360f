"""Intel's accelerators: Gaudi3 (`gaudi.intel.com`), Data Center GPU Max (`gpu.intel.com`) and QuickAssist (`qat.intel.com`).

Bus numbers are assumed.
"""

from __future__ import annotations

from typing import Final

from drayman.api.resource import Device, ResourceSlice
from drayman.drivers.classes import classes_of
from drayman.drivers.describing import Slot, fingerprint, string
from drayman.drivers.intel import devices
from drayman.drivers.intel.devices import GAUDI, GPU, Gaudi, Gpu
from drayman.drivers.profiles.hardware import pool_slices
from drayman.drivers.profiles.machines import Machine
from drayman.drivers.profiles.processors import profile

QAT: Final = "qat.intel.com"
_LABEL: Final = "intel.feature.node.kubernetes.io"
_GAUDI_MACHINE: Final = Machine("gaudi3-8", 224, "2Ti", labels={f"{_LABEL}/gaudi": "true"})
_GPU_MACHINE: Final = Machine("max-1550-8", 208, "1Ti", labels={f"{_LABEL}/gpu": "true"})
_QAT_MACHINE: Final = Machine(
    "qat-4", 112, "512Gi", huge_pages="16Gi", labels={f"{_LABEL}/qat": "true"}
)
_GAUDI_BUSES: Final = ("19", "2a", "3b", "4c", "9b", "ab", "bb", "cb")
_GPU_BUSES: Final = ("18", "2a", "3b", "4b", "98", "a9", "bb", "cb")
_GAUDI_ID: Final = "0x1060"
_GPU_ID: Final = "0x0bd5"
_QAT_SERVICES: Final = {"6b": "sym;asym", "70": "dc", "e8": "sym;asym", "ed": "dc"}
"""Of the physical functions, by bus: two per socket, one for ciphers and one for compression."""
_QAT_FUNCTIONS: Final = 16
"""Virtual functions of a physical one: devices 0 to 2, as 0 has seven beside the physical one."""


def _slots(buses: tuple[str, ...]) -> list[Slot]:
    """One root per device, four devices per socket."""
    half = len(buses) // 2
    return [
        Slot(f"0000:{bus}:00.0", f"pci0000:{int(bus, 16) - 3:02x}", index // half)
        for index, bus in enumerate(buses)
    ]


def _gaudis(node_name: str) -> tuple[ResourceSlice, ...]:
    found = tuple(
        devices.gaudi(
            Gaudi(
                slot,
                _GAUDI_ID,
                f"AM{fingerprint('gaudi', node_name, index, size=5).upper()}",
                healthy=True,
            )
        )
        for index, slot in enumerate(_slots(_GAUDI_BUSES))
    )
    return pool_slices(node_name, GAUDI, [found])


def _gpus(node_name: str) -> tuple[ResourceSlice, ...]:
    found = tuple(
        devices.gpu(
            Gpu(
                slot,
                _GPU_ID,
                driver="i915",
                virtual=False,
                sriov=True,
                memory="131072Mi",
                health="Healthy",
            )
        )
        for slot in _slots(_GPU_BUSES)
    )
    return pool_slices(node_name, GPU, [found])


def _virtual_functions(node_name: str) -> tuple[ResourceSlice, ...]:
    found = tuple(
        Device(
            name=f"qatvf-0000-{bus}-{number // 8:02x}-{number % 8}",
            attributes={"services": string(services)},
        )
        for bus, services in _QAT_SERVICES.items()
        for number in range(1, _QAT_FUNCTIONS + 1)
    )
    return pool_slices(node_name, QAT, [found])


PROFILES: Final = (
    profile("gaudi3", "8 x Gaudi3, four per socket", _GAUDI_MACHINE, _gaudis, classes_of(GAUDI)),
    profile("max-1550", "8 x Data Center GPU Max 1550 128 GB, four per socket", _GPU_MACHINE, _gpus, classes_of(GPU)),
    profile("qat", "4 x QuickAssist 4xxx with 16 virtual functions each", _QAT_MACHINE, _virtual_functions, classes_of(QAT)),
)  # fmt: skip
