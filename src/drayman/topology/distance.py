"""How far apart two devices of one node are, in the codes of `nvidia-smi topo -m`.

Attributes name a device's host bridge (`pcieRoot`), its bus and its NUMA node, but not the bridges and switches between. So a
code is what the attributes prove, and where they leave a choice, the one that holds on the servers these drivers run on:

- the same bus: nothing but one bridge above it, `PIX`;
- the same root, either device on the root bus itself: the path goes through the host bridge, `PHB`;
- the same root otherwise: `PXB`, since a server's root has one port with switches below it;
- different roots of one NUMA node: `NODE`; different NUMA nodes: `SYS`;
- anything less known: `UNKNOWN`, printed as `?`, and farther than everything known when distances are compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from drayman.topology.locality import Locality


class Distance(IntEnum):
    """From nearest to farthest."""

    SELF = 0
    NVLINK = 1
    PIX = 2
    PXB = 3
    PHB = 4
    NODE = 5
    SYS = 6
    UNKNOWN = 7


MEANINGS: Final = {
    "X": "the device itself, or another part of it",
    "NV#": "# NVLinks",
    "PIX": "at most one PCIe bridge between",
    "PXB": "PCIe bridges between, no host bridge",
    "PHB": "through the PCIe host bridge",
    "NODE": "between host bridges of one NUMA node",
    "SYS": "between NUMA nodes",
    "?": "the drivers do not say",
}
"""The legend of a matrix, in the order of `Distance`."""


@dataclass(frozen=True, slots=True, order=True)
class Link:
    """What joins two devices: the distance, and for NVLink how many links."""

    distance: Distance
    nvlinks: int = 0

    @property
    def code(self) -> str:
        """As `nvidia-smi topo -m` prints it."""
        match self.distance:
            case Distance.SELF:
                return "X"
            case Distance.NVLINK:
                return f"NV{self.nvlinks}"
            case Distance.UNKNOWN:
                return "?"
            case _:
                return self.distance.name

    @property
    def meaning(self) -> str:
        """What the code stands for, in a few words."""
        if self.distance is Distance.NVLINK:
            return MEANINGS["NV#"].replace("#", str(self.nvlinks))
        return MEANINGS[self.code]


def link(one: Locality, other: Locality) -> Link:
    """What joins two devices of one node. Symmetric."""
    if one.bus_id is not None and one.bus_id == other.bus_id:
        return Link(Distance.SELF)
    if one.nvlinks is not None and other.nvlinks is not None and one.fabric == other.fabric:
        return Link(Distance.NVLINK, min(one.nvlinks, other.nvlinks))
    return Link(_over_pcie(one, other))


def _over_pcie(one: Locality, other: Locality) -> Distance:
    if one.pcie_root is not None and one.pcie_root == other.pcie_root:
        return _below_one_root(one.pcie_root, _bus(one), _bus(other))
    if one.numa is None or other.numa is None:
        return Distance.UNKNOWN
    return Distance.NODE if one.numa == other.numa else Distance.SYS


def _below_one_root(root: str, one: str | None, other: str | None) -> Distance:
    root_bus = root.removeprefix("pci")
    if root_bus in (one, other):
        return Distance.PHB
    return Distance.PIX if one is not None and one == other else Distance.PXB


def _bus(place: Locality) -> str | None:
    """Domain and bus of `dddd:bb:dd.f`, in the form of the number in a root's name."""
    return None if place.bus_id is None else place.bus_id.rpartition(":")[0]
