"""`npu.furiosa.ai`: the device files of RNGD cards."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from drayman.drivers.device_files import existing_nodes
from drayman.drivers.furiosa import devices
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.model import Claim, Hardware, PreparedDevice
from drayman.drivers.pci import pci_devices
from drayman.drivers.sysfs import entries, read_text

_VENDOR: Final = "0x1ed2"
_ACCELERATOR: Final = "0x1200"
_MANAGEMENT: Final = "sys/class/rngd_mgmt"


class FuriosaDriver(Driver):
    """RNGD cards of one machine."""

    name = devices.DRIVER

    def __init__(self, node: str, *, root: Path = Path("/")) -> None:
        """`root` is replaced by tests."""
        super().__init__(node)
        self._root = root

    def discover(self) -> Hardware:
        found = [
            pci
            for pci in pci_devices(self._root)
            if pci.vendor == _VENDOR and pci.class_.startswith(_ACCELERATOR)
        ]
        return Hardware.of(
            devices.card(index, self._uuid(index), pci.slot) for index, pci in enumerate(found)
        )

    def _uuid(self, index: int) -> str:
        return read_text(self._root / _MANAGEMENT / f"rngd!npu{index}mgmt" / "device_uuid") or ""

    def prepare(self, claim: Claim) -> Iterable[PreparedDevice]:
        for each in claim.devices:
            own = re.compile(rf"{each.name}(?!\d)")  # npu10 is another card than npu1
            names = [path.name for path in entries(self._root / "dev/rngd") if own.match(path.name)]
            paths = [f"dev/rngd/{name}" for name in names] or [f"dev/rngd/{each.name}"]
            nodes = existing_nodes(self._root, *paths)
            yield PreparedDevice(device=each, device_nodes=nodes)
