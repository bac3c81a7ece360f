"""Under which attribute names drivers publish the same fact: the one table of aliases.

Kubernetes standardised `pcieRoot`, then `pciBusID`, then `numaNode`; drivers older than a name publish the same fact under one of their
own. Each fact is looked up under the standard name first and the known vendor names after it.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import lru_cache
from typing import Final

STANDARD_DOMAIN: Final = "resource.kubernetes.io"


class Fact(Enum):
    """Something that is read from attributes."""

    PCIE_ROOT = auto()
    BUS_ID = auto()
    NUMA_NODE = auto()
    SOCKET = auto()
    NVLINK_GROUP = auto()
    NVLINKS = auto()
    PRODUCT = auto()
    TYPE = auto()


_STANDARD: Final = {
    Fact.PCIE_ROOT: ("pcieRoot",),
    Fact.BUS_ID: ("pciBusID",),
    Fact.NUMA_NODE: ("numaNode",),
}
"""In the standard domain. They are trusted before all others."""

_OWN: Final = {
    Fact.PCIE_ROOT: ("pcieRoot", "pciRoot"),
    Fact.BUS_ID: ("pciBusID", "pciAddress", "pciAddr", "parentPciAddr"),
    Fact.NUMA_NODE: ("numaNode", "numaNodeID"),
    Fact.SOCKET: ("socketID",),
    Fact.NVLINK_GROUP: ("nvlinkDomain", "nvlinkGroup"),
    Fact.NVLINKS: ("nvlinks",),
    Fact.PRODUCT: ("productName",),
    Fact.TYPE: ("type",),
}
"""In the domain of the driver, which need not be written. In order of trust."""

_SHARED: Final = {
    Fact.NUMA_NODE: ("dra.net/numaNode", "dra.cpu/numaNodeID"),
    Fact.SOCKET: ("dra.cpu/socketID",),
    # Our driver for NVIDIA publishes them where the product says something else; others that want to be understood here can.
    Fact.NVLINK_GROUP: ("drayman.dev/nvlinkGroup",),
    Fact.NVLINKS: ("drayman.dev/nvlinks",),
}
"""Informal names that drivers publish for each other's sake, whatever their own domain is."""


@lru_cache(maxsize=4096)
def names_of(driver: str, fact: Fact) -> tuple[str, ...]:
    """The names to try for a fact on devices of a driver, in order."""
    own = [text for name in _OWN[fact] for text in (name, f"{driver}/{name}")]
    standard = [f"{STANDARD_DOMAIN}/{name}" for name in _STANDARD.get(fact, ())]
    return (*standard, *own, *_SHARED.get(fact, ()))
