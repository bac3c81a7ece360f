"""Tables as kubectl prints them: a line per row, columns as wide as their content.

In a pipe, lines are printed whole. On a terminal, a line that is too long would wrap. So if the table is too wide there, the longest
names are cut as far as they stay legible, or continue on the next line. If that is not enough, columns are left out, those that matter
least first, and only then are names cut further.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from drayman.placement.occupancy import State
from drayman.printable import printable

if TYPE_CHECKING:
    from rich.text import Text

_GAP: Final = "  "
_LEAST: Final = 6
_LEGIBLE: Final = 10
"""Columns are made narrower than this only if no column is left that could be left out."""
_BELOW: Final = "    "
EXTRA: Final = 9
"""Of columns that say little."""
_MORE: Final = re.compile(r"\+[0-9]+")
_NAME_OF_LIST: Final = re.compile(r"[^,]*,?")
_FOLDS: Final = re.compile(r"[^,/:=.-]*[,/:=.-]?")
"""A piece of a name, up to where it may be broken: after a character that ends a part."""

STYLES: Final = {
    State.USED: "bright_blue",
    State.SHARED: "cyan",
    State.PARTITIONED: "magenta",
    State.TAINTED: "red",
    State.UNAVAILABLE: "dim",
    State.FREE: "green",
    State.UNKNOWN: "yellow",
}
"""How states look. Only colours that terminals choose themselves, so that they suit dark and light ones."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    title: str
    is_number: bool = False
    may_be_cut: bool = False
    is_list: bool = False
    """Whether it has lists of names. One that is cut has its first name, and the number of the others."""
    folds: bool = False
    """Whether a list that is too long continues on the next line, for names that people want whole. A name that does not fit into the
    column is printed below the row."""
    matters: bool = False
    """Whether other columns are made narrower before it, for names that people type."""
    empty: str = ""
    """A column that contains only this is left out."""
    spare: int = 0
    """On a terminal that is too narrow for all columns, those with the highest number are left out first, those with 0 never. Columns with
    `EXTRA` are left out before anything is cut."""


Cell = str | tuple[str, str]
"""A text, or a text and its style."""


class Table:
    """Rows under columns."""

    def __init__(self, columns: Sequence[Column], rows: Iterable[Sequence[Cell]]) -> None:
        found = [[_pair(cell) for cell in row] for row in rows]
        kept = [
            at
            for at, column in enumerate(columns)
            if not column.empty or any(row[at][0] != column.empty for row in found)
        ]
        self._columns = [columns[at] for at in kept]
        self._rows = [[row[at] for at in kept] for row in found]

    def plain(self) -> str:
        """The whole table without styles, nothing cut."""
        widths = self._widths()
        header = [(column.title, "") for column in self._columns]
        return "\n".join(
            _GAP.join(self._padded(row, widths)).rstrip() for row in (header, *self._rows)
        )

    def text(self, width: int) -> Text:
        """The table with styles, no wider than that if possible."""
        most = max(column.spare for column in self._columns)
        needed = self._widths() if most == EXTRA else self._legible_widths(width)
        if most and self._excess(needed, width) > 0:
            return self._without_spare(most).text(width)
        widths = self._fitting(width)
        header = [(column.title, "bold") for column in self._columns]
        return _lines(
            [line for row in (header, *self._rows) for line in self._styled(row, widths, width)]
        )

    def _without_spare(self, number: int) -> Table:
        kept = [at for at, column in enumerate(self._columns) if column.spare != number]
        return Table(
            [self._columns[at] for at in kept], ([row[at] for at in kept] for row in self._rows)
        )

    def _styled(
        self, row: Sequence[tuple[str, str]], widths: Sequence[int], width: int
    ) -> Iterator[Text]:
        """The lines of a row: one, except for columns that fold."""
        from rich.text import Text

        parts = [[text] for text, _ in row]
        below: list[str] = []
        for at, column in enumerate(self._columns):
            if column.folds and _longest_name(row[at][0]) > widths[at]:
                below += folded(f"{column.title.lower()}: {row[at][0]}", width - len(_BELOW))
                parts[at] = [""]
            elif column.folds:
                parts[at] = folded(row[at][0], widths[at])
        for at in range(max(map(len, parts))):
            cells = [(part[at] if at < len(part) else "", "") for part in parts]
            line = Text(no_wrap=True)
            for text, (_, style) in zip(self._padded(cells, widths), row, strict=True):
                line.append(_GAP if line else "").append(text, style=style)
            line.rstrip()
            yield line
        for text in below:
            yield Text(f"{_BELOW}{text}", no_wrap=True)

    def _widths(self) -> list[int]:
        return [
            max([len(column.title), *(len(row[at][0]) for row in self._rows)])
            for at, column in enumerate(self._columns)
        ]

    def _fitting(self, width: int) -> list[int]:
        """The widths of the columns, with the widest that may shrink made narrower until all fit."""
        widths, legible = self._widths(), self._legible_widths(width)
        too_narrow = [
            at
            for at, column in enumerate(self._columns)
            if column.folds and legible[at] < self._longest(at)
        ]
        for at in too_narrow:
            widths[at] = legible[at]
        while self._excess(widths, width) > 0:
            flexible = [
                at
                for at, column in enumerate(self._columns)
                if (column.may_be_cut or column.folds) and widths[at] > _LEAST
            ]
            candidates = [at for at in flexible if widths[at] > legible[at]] or flexible
            if not candidates:
                break
            widest = max(candidates, key=lambda at: widths[at])
            widths[widest] -= 1
        for at in too_narrow[:1]:  # shorter names may still fit
            widths[at] += max(0, -self._excess(widths, width))
        return widths

    def _legible_widths(self, width: int) -> list[int]:
        """The least widths at which no name that matters is cut, and names that fold are whole if there is room."""
        least = [
            min(natural, _LEGIBLE) if column.may_be_cut and not column.matters else natural
            for natural, column in zip(self._widths(), self._columns, strict=True)
        ]
        folding = [at for at, column in enumerate(self._columns) if column.folds]
        for at in folding:
            least[at] = len(self._columns[at].title)
        for at in folding:
            if self._excess(least, width) + self._longest(at) <= least[at]:
                least[at] = self._longest(at)
        return least

    def _longest(self, at: int) -> int:
        """How wide a column that folds has to be for its longest name."""
        title = len(self._columns[at].title)
        return max([title, *(_longest_name(row[at][0]) for row in self._rows)])

    def _excess(self, widths: Sequence[int], width: int) -> int:
        return sum(widths) + len(_GAP) * (len(widths) - 1) - width

    def _padded(self, row: Sequence[tuple[str, str]], widths: Sequence[int]) -> list[str]:
        shown = [
            cut_list(text, width) if column.is_list else cut(text, width)
            for (text, _), width, column in zip(row, widths, self._columns, strict=True)
        ]
        return [
            text.rjust(width) if column.is_number else text.ljust(width)
            for text, width, column in zip(shown, widths, self._columns, strict=True)
        ]


def _lines(lines: Sequence[Text]) -> Text:
    from rich.text import Text

    return Text("\n", no_wrap=True, overflow="crop").join(lines)


def _pair(cell: Cell) -> tuple[str, str]:
    text, style = (cell, "") if isinstance(cell, str) else cell
    return printable(text), style


def cut(text: str, width: int) -> str:
    """The text, with its middle left out if it is too long: names differ at either end."""
    if len(text) <= width:
        return text
    front = (width - 1) // 2
    return f"{text[:front]}~{text[len(text) - (width - 1 - front) :]}"


def cut_list(text: str, width: int) -> str:
    """The list, or its first name and how many more there are if it is too long: ends of two names would read as one."""
    first, *others = text.split(",")
    if len(text) <= width or not others:
        return cut(text, width)
    # A list may say itself at its end how many are left out.
    number = sum(int(each[1:]) if _MORE.fullmatch(each) else 1 for each in others)
    more = f",+{number}"
    room = width - len(more)
    return cut(first, room) + more if room > 0 else cut(text, width)


def _longest_name(text: str) -> int:
    """The length of the longest name of a list."""
    return max(map(len, text.split(",")))


def folded(text: str, width: int) -> list[str]:
    """The list in pieces that are not longer than that, broken between names if possible, or else where parts of a name end."""
    pieces = [""]
    for name in filter(None, _NAME_OF_LIST.findall(text)):
        for part in [name] if len(name) <= width else filter(None, _FOLDS.findall(name)):
            if pieces[-1] and len(pieces[-1]) + len(part) > width:
                pieces.append("")
            pieces[-1] += part
            while len(pieces[-1]) > width:
                pieces[-1:] = [pieces[-1][:width], pieces[-1][width:]]
    return pieces
