"""The matrix of one node: how far its devices are apart, as `nvidia-smi topo -m` prints it, with who has what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from drayman.api.core import Node
from drayman.cli.map.node_layout import own_and_reached
from drayman.cli.matrix import Drawing
from drayman.cli.top.reading import Reading
from drayman.cli.top.refreshing import as_text
from drayman.simulate.unit_counts import Unit, gather
from drayman.topology import Kind, matrix

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_CONNECTED: Final = (Kind.GPU, Kind.NIC)
"""What the matrix is about; it has processors and the rest only on nodes that have nothing else."""

_KINDS: Final = tuple(Kind)


class Distances:
    """The matrix of a node's GPUs and network cards, each unit one row."""

    def __init__(self, reading: Reading, node: Node) -> None:
        self._reading = reading
        self._node = node
        own, _ = own_and_reached(reading, node)
        units = gather(own)
        chosen = [unit for unit in units if unit.kind in _CONNECTED] or units
        # As published within a kind: names are not in the order of slots, and the vendor's tool numbers by slot.
        order = sorted(chosen, key=lambda unit: _KINDS.index(unit.kind))
        self._units = order
        self._matrix = matrix((unit.id.driver, unit.members[0].record.device) for unit in order)
        self._names = _short_names(order)
        self._holders = [self._holders_of(unit) for unit in order]

    def data(self) -> Mapping[str, Any]:
        rows = zip(self._names, self._units, self._holders, self._matrix.rows, strict=True)
        return {
            "node": self._node.metadata.name,
            "rows": [
                _row(name, unit, holders, [link.code for link in row.links], row.locality.numa)
                for name, unit, holders, row in rows
            ],
            "legend": dict(self._matrix.legend),
        }

    def plain(self, out: Console) -> str:
        return as_text(self.drawn(out), out)

    def drawn(self, out: Console) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        if not self._units:
            return Text(f"{self._node.metadata.name} has no devices")
        numbers: dict[tuple[str, ...], int] = {}
        for holders in self._holders:
            if holders:
                numbers.setdefault(holders, len(numbers) + 1)
        marks = {at: numbers[held] for at, held in enumerate(self._holders) if held}
        lines = [*Drawing(self._matrix, self._names, marks).lines(out.width), Text()]
        lines += [Text(f"  {number}  {', '.join(held)}") for held, number in numbers.items()]
        lines += [Text()] if numbers else []
        lines += [Text(line, style="dim") for line in self._who_is_who(out.width)]
        return Group(*lines)

    def _who_is_who(self, width: int) -> list[str]:
        """Short names and the devices' own, as many to a line as fit."""
        entries = [f"{short} {unit.id.name}" for short, unit in zip(self._names, self._units, strict=True)]  # fmt: skip
        column = max(map(len, entries)) + 2
        per_line = max(1, (width - 2) // column)
        return [
            "  " + "".join(entry.ljust(column) for entry in entries[at : at + per_line]).rstrip()
            for at in range(0, len(entries), per_line)
        ]

    def _holders_of(self, unit: Unit) -> tuple[str, ...]:
        found = [self._reading.holders(standing.id) for standing in unit.members]
        return tuple(dict.fromkeys(holder for holders in found for holder in holders))


def _short_names(units: list[Unit]) -> list[str]:
    """GPU0, GPU1, NIC0: as the vendor's tool names them."""
    counts: dict[Kind, int] = {}
    names = []
    for unit in units:
        number = counts.get(unit.kind, 0)
        counts[unit.kind] = number + 1
        names.append(f"{unit.kind.upper()}{number}")
    return names


def _row(
    name: str, unit: Unit, holders: tuple[str, ...], links: list[str], numa: int | None
) -> dict[str, Any]:
    return {
        "name": name,
        "driver": unit.id.driver,
        "pool": unit.id.pool,
        "device": unit.id.name,
        "holders": list(holders),
        "numaNode": numa,
        "links": links,
    }
