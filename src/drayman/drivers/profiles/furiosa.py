"""Furiosa's RNGD cards, as `npu.furiosa.ai` publishes them. The driver's source is closed: of the attributes only `uuid` is documented."""

from __future__ import annotations

from typing import Final

from drayman.api.resource import ResourceSlice
from drayman.drivers.classes import classes_of
from drayman.drivers.describing import Slot, uuid
from drayman.drivers.furiosa.devices import DRIVER, card
from drayman.drivers.profiles import processors
from drayman.drivers.profiles.hardware import pool_slices
from drayman.drivers.profiles.machines import Machine

_LABELS: Final = {"feature.node.kubernetes.io/pci-1200_1ed2.present": "true"}
_BUSES: Final = ("17", "2a", "3d", "50", "97", "aa", "bd", "d0")


def _cards(node_name: str) -> tuple[ResourceSlice, ...]:
    half = len(_BUSES) // 2
    found = tuple(
        card(
            index,
            uuid("npu", node_name, index),
            Slot(f"0000:{bus}:00.0", f"pci0000:{int(bus, 16) - 1:02x}", index // half),
        )
        for index, bus in enumerate(_BUSES)
    )
    return pool_slices(node_name, DRIVER, [found])


PROFILES: Final = (
    processors.profile(
        "rngd",
        "8 x Furiosa RNGD 48 GB, four per socket",
        Machine("rngd-8", 128, "1Ti", labels=_LABELS),
        _cards,
        classes_of(DRIVER),
    ),
)
