"""Draws the matrix of a node: how far apart its devices are, with chosen devices marked.

Marks are text and not only colour, so that they survive a pipe: the number of the claim comes before its devices, and what joins two
devices of one claim is in brackets. A matrix wider than the terminal is cut into panels; since it is symmetric, each panel leaves out the
rows that an earlier one has shown as columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from drayman.topology import Distance, Link, Matrix

if TYPE_CHECKING:
    from rich.text import Text

_CELL: Final = 7
_NUMA: Final = 6
_MOST_NUMBERS: Final = 2
"""As examples in the legend."""
_MARK_STYLES: Final = ("bold green", "bold magenta", "bold yellow", "bold bright_blue")
_DISTANCE_STYLES: Final = {
    Distance.SELF: "dim",
    Distance.NVLINK: "cyan",
    Distance.NODE: "dim",
    Distance.SYS: "dim",
}


@dataclass(frozen=True, slots=True)
class Drawing:
    """A matrix, the short name of each row, and which rows each claim was given."""

    matrix: Matrix
    names: Sequence[str]
    marks: Mapping[int, int]
    """Row to the number of the claim that holds it."""

    def lines(self, width: int) -> Iterator[Text]:
        """The matrix in panels of at most `width` columns, then the legend."""
        from rich.text import Text

        label = max((len(name) for name in self.names), default=0) + 3
        most = max(1, (width - label - _NUMA) // _CELL)
        panels = max(1, -(-len(self.names) // most))
        per_panel = max(
            1, -(-len(self.names) // panels)
        )  # even panels: GPUs in one, NICs in the other
        for start in range(0, len(self.names), per_panel):
            columns = range(start, min(start + per_panel, len(self.names)))
            if start:
                yield Text()
            yield self._header(columns, label)
            for row in range(start, len(self.names)):
                yield self._row(row, columns, label)
        yield Text()
        yield from self._legend()

    def _header(self, columns: range, label: int) -> Text:
        from rich.text import Text

        line = Text(" " * label)
        for column in columns:
            line.append(f"{self.names[column]:^{_CELL}}", style=self._style(column))
        line.append("NUMA".rjust(_NUMA), style="dim")
        return line

    def _row(self, row: int, columns: range, label: int) -> Text:
        from rich.text import Text

        claim = self.marks.get(row)
        text = f"{claim or ' '} {self.names[row]}"
        line = Text()
        line.append(f"{text:<{label}}", style=self._style(row))
        for column in columns:
            self._append_cell(line, row, column)
        numa = self.matrix.rows[row].locality.numa
        line.append(("?" if numa is None else str(numa)).rjust(_NUMA), style="dim")
        return line

    def _append_cell(self, line: Text, row: int, column: int) -> None:
        link: Link = self.matrix.rows[row].links[column]
        claim = self.marks.get(row)
        together = claim is not None and row != column and claim == self.marks.get(column)
        text = f"[{link.code}]" if together else link.code
        style = self._style(row) if together else _DISTANCE_STYLES.get(link.distance, "")
        line.append(f"{text:^{_CELL}}", style=style)

    def _style(self, row: int) -> str:
        claim = self.marks.get(row)
        return "" if claim is None else _MARK_STYLES[(claim - 1) % len(_MARK_STYLES)]

    def _legend(self) -> Iterator[Text]:
        from rich.text import Text

        for code, meaning in self.matrix.legend:
            yield Text(f"  {code:<5}{meaning}", style="dim")
        if self.marks:
            numbers = " ".join(map(str, sorted(set(self.marks.values()))[:_MOST_NUMBERS]))
            meaning = "who holds it, by number; [ ] joins devices of one holder"
            yield Text(f"  {numbers:<5}{meaning}", style="dim")
