"""Signals by the names that a container's `lifecycle.stopSignal` has for them."""

from __future__ import annotations

from collections.abc import Mapping
from signal import SIGRTMAX, SIGRTMIN, Signals
from types import MappingProxyType
from typing import Final

SIGNALS: Final[Mapping[str, int]] = MappingProxyType(
    {
        **{name: each.value for name, each in Signals.__members__.items()},
        **{f"SIGRTMIN+{distance}": SIGRTMIN + distance for distance in range(1, 16)},
        **{f"SIGRTMAX-{distance}": SIGRTMAX - distance for distance in range(1, 15)},
    }
)
"""Those of Linux, and their numbers."""
