"""The matrix of one node: how far apart its devices are, as `nvidia-smi topo -m` prints it, with their holders."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from drayman.api.core import Node
from drayman.cli.matrix import Drawing
from drayman.cli.top.refreshing import as_text
from drayman.questions.devices.distances import distances
from drayman.questions.devices.reading import Reading

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


class DistanceDrawing:
    """The matrix of a node's GPUs and network cards."""

    def __init__(self, reading: Reading, node: Node) -> None:
        self._found = distances(reading, node)

    def data(self) -> Mapping[str, Any]:
        from drayman.api import codec

        return codec.to_dict(self._found.table())

    def plain(self, out: Console) -> str:
        return as_text(self.drawn(out), out)

    def drawn(self, out: Console) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        found = self._found
        if not found.units:
            return Text(f"{found.node} has no devices")
        numbers: dict[tuple[str, ...], int] = {}
        for holders in found.holders:
            if holders:
                numbers.setdefault(holders, len(numbers) + 1)
        marks = {at: numbers[held] for at, held in enumerate(found.holders) if held}
        lines = [*Drawing(found.matrix, found.names, marks).lines(out.width), Text()]
        lines += [Text(f"  {number}  {', '.join(held)}") for held, number in numbers.items()]
        lines += [Text()] if numbers else []
        lines += [Text(line, style="dim") for line in self._full_names(out.width)]
        return Group(*lines)

    def _full_names(self, width: int) -> list[str]:
        """Short names and the devices' own, as many to a line as fit."""
        entries = [f"{short} {unit.id.name}" for short, unit in zip(self._found.names, self._found.units, strict=True)]  # fmt: skip
        column = max(map(len, entries)) + 2
        per_line = max(1, (width - 2) // column)
        return [
            "  " + "".join(entry.ljust(column) for entry in entries[at : at + per_line]).rstrip()
            for at in range(0, len(entries), per_line)
        ]
