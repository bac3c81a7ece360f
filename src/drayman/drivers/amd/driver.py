"""`gpu.amd.com`: device files for containers. Nothing is set on the hardware."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from drayman.driver_configs.decoding import Config
from drayman.driver_configs.known import CONFIGS
from drayman.drivers.amd import devices
from drayman.drivers.amd.discovery import discover
from drayman.drivers.device_files import existing_nodes
from drayman.drivers.kit.driver import Driver
from drayman.drivers.kit.model import Claim, Hardware, Prepared, PreparedDevice

_KFD: Final = "dev/kfd"


class AmdGpuDriver(Driver):
    """GPUs and partitions of one machine."""

    name = devices.DRIVER
    configs: ClassVar[tuple[type[Config], ...]] = CONFIGS[devices.DRIVER]

    def __init__(self, node: str, *, root: Path = Path("/")) -> None:
        """`root` is replaced by tests."""
        super().__init__(node)
        self._root = root

    def discover(self) -> Hardware:
        return Hardware.of(map(devices.device, discover(self._root)))

    def prepare(self, claim: Claim) -> Prepared:
        prepared = []
        for each in claim.devices:
            card = each.device.attributes["cardIndex"].int_
            render = each.device.attributes["renderIndex"].int_
            paths = (_KFD, f"dev/dri/card{card}", f"dev/dri/renderD{render}")
            nodes = existing_nodes(self._root, *paths, permissions="rwm")
            prepared.append(PreparedDevice(device=each, device_nodes=nodes))
        return Prepared(
            devices=prepared,
            env={"DRA_RESOURCE_DRIVER_NAME": self.name, "KUBERNETES_NODE_NAME": self.node},
        )
