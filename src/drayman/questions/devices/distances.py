"""How far apart the devices of one node are, as `nvidia-smi topo -m` shows it, with their holders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from drayman.api.core import Node
from drayman.api.struct import ApiStruct
from drayman.questions.devices.node_layout import own_and_reached
from drayman.questions.devices.reading import Reading
from drayman.simulate.unit_counts import Unit, gather
from drayman.topology import DeviceKind, Matrix, matrix

_CONNECTED: Final = (DeviceKind.GPU, DeviceKind.NIC)
"""What the matrix is about; it includes processors and the rest only on nodes that have nothing else."""
_KINDS: Final = tuple(DeviceKind)


class DistanceRow(ApiStruct):
    """A device and its links to all of them."""

    name: str
    """As the vendor's tool names it."""
    driver: str
    pool: str
    device: str
    holders: tuple[str, ...]
    numa_node: int | None
    links: tuple[str, ...]


class DistanceTable(ApiStruct):
    """The matrix as plain values."""

    node: str
    rows: tuple[DistanceRow, ...]
    legend: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Distances:
    """The matrix of a node's GPUs and network cards, each unit one row."""

    node: str
    units: Sequence[Unit]
    names: Sequence[str]
    """GPU0, GPU1, NIC0: as the vendor's tool names them."""
    holders: Sequence[tuple[str, ...]]
    matrix: Matrix

    def table(self) -> DistanceTable:
        rows = zip(self.names, self.units, self.holders, self.matrix.rows, strict=True)
        return DistanceTable(
            node=self.node,
            rows=tuple(
                DistanceRow(
                    name=name,
                    driver=unit.id.driver,
                    pool=unit.id.pool,
                    device=unit.id.name,
                    holders=holders,
                    numa_node=row.locality.numa,
                    links=tuple(link.code for link in row.links),
                )
                for name, unit, holders, row in rows
            ),
            legend=dict(self.matrix.legend),
        )


def distances(reading: Reading, node: Node) -> Distances:
    """How far apart the devices of a node are."""
    own, _ = own_and_reached(reading, node)
    units = gather(own)
    chosen = [unit for unit in units if unit.kind in _CONNECTED] or units
    # As published within a kind: names are not in the order of slots, and the vendor's tool numbers by slot.
    order = sorted(chosen, key=lambda unit: _KINDS.index(unit.kind))
    return Distances(
        node=node.metadata.name,
        units=order,
        names=_short_names(order),
        holders=[_holders(reading, unit) for unit in order],
        matrix=matrix((unit.id.driver, unit.members[0].record.device) for unit in order),
    )


def _holders(reading: Reading, unit: Unit) -> tuple[str, ...]:
    found = [reading.holders(standing.id) for standing in unit.members]
    return tuple(dict.fromkeys(holder for holders in found for holder in holders))


def _short_names(units: Sequence[Unit]) -> list[str]:
    counts: dict[DeviceKind, int] = {}
    names = []
    for unit in units:
        number = counts.get(unit.kind, 0)
        counts[unit.kind] = number + 1
        names.append(f"{unit.kind.upper()}{number}")
    return names
