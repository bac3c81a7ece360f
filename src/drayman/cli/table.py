"""Tables as kubectl prints them: a line per row, columns as wide as their content.

In a pipe, lines are printed whole. A table that is too wide for a terminal gets narrower, and names that people copy stay whole: texts that
are not such names are cut in the middle, as far as those that differ look different; lists of names continue on the next line; a name
without space is printed below its row, with the title of its column; and columns that matter least are left out, as kubectl does without
`-o wide`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from drayman.placement.occupancy import State
from drayman.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text

_GAP: Final = "  "
_LEAST: Final = 6
_LEGIBLE: Final = 10
"""Texts are cut further than this only if no column is left that could be left out."""
_BELOW: Final = "    "
EXTRA: Final = 9
"""Of columns that say little."""
_NAME_OF_LIST: Final = re.compile(r"[^,;]*[,;]?")
_NOTHING: Final = frozenset(("", "-"))
"""Cells that need no line of their own."""

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
    """Whether its texts may be cut in the middle, as far as those that differ look different."""
    is_name: bool = False
    """Whether it has names that people copy, or lists of them: these are whole, in the row or below it."""
    stays: bool = False
    """Whether its names come first, as what a row is about: one that is too long has a line above the rest of its row."""
    empty: str = ""
    """A column that contains only this is left out."""
    spare: int = 0
    """On a terminal that is too narrow for all columns, those with the highest number are left out first, those with 0 never. Columns with
    `EXTRA` are left out before anything is cut."""


Cell = str | tuple[str, str]
"""A text, or a text and its style."""


class Table:
    """Rows under columns."""

    def __init__(
        self,
        columns: Sequence[Column],
        rows: Iterable[Sequence[Cell]],
        *,
        header: str = "bold",
        indent: int = 0,
    ) -> None:
        """`header` is the style of the titles; on a terminal, all lines are indented by that many columns."""
        found = [[_pair(cell) for cell in row] for row in rows]
        kept = [
            at
            for at, column in enumerate(columns)
            if not column.empty or any(row[at][0] != column.empty for row in found)
        ]
        self._columns = [columns[at] for at in kept]
        self._rows = [[row[at] for at in kept] for row in found]
        self._header = header
        self._indent = indent

    def plain(self) -> str:
        """The whole table without styles, nothing cut."""
        widths = self._widths()
        header = [(column.title, "") for column in self._columns]
        return "\n".join(
            _GAP.join(self._padded(row, widths)).rstrip() for row in (header, *self._rows)
        )

    def text(self, width: int) -> Text:
        """The table with styles, no wider than that unless a name alone is."""
        width -= self._indent
        most = max((column.spare for column in self._columns), default=0)
        needed = self._widths() if most == EXTRA else self._least_widths()
        if most and _excess(needed, width) > 0:
            return self._without_spare(most).text(width + self._indent)
        widths = self._fitting(width)
        shown = [at for at, each in enumerate(widths) if each >= 0]
        header = [
            (column.title if at in shown else "", self._header)
            for at, column in enumerate(self._columns)
        ]
        lines = [
            line
            for row in (header, *self._rows)
            for line in self._styled(row, widths, shown, width)
        ]
        for line in lines:
            line.pad_left(self._indent)
        return _lines(lines)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text(options.max_width)

    def _without_spare(self, number: int) -> Table:
        kept = [at for at, column in enumerate(self._columns) if column.spare != number]
        return Table(
            [self._columns[at] for at in kept],
            ([row[at] for at in kept] for row in self._rows),
            header=self._header,
            indent=self._indent,
        )

    def _styled(
        self,
        row: Sequence[tuple[str, str]],
        widths: Sequence[int],
        shown: Sequence[int],
        width: int,
    ) -> Iterator[Text]:
        """The lines of a row: one, except for lists that continue and names below."""
        from rich.text import Text

        parts = [[text] for text, _ in row]
        below: list[tuple[str, str]] = []
        for at, column in enumerate(self._columns):
            text, style = row[at]
            if column.stays and _longest_name(text) > widths[at]:
                parts[at] = [""]
                before = sum(widths[each] + len(_GAP) for each in shown if each < at)
                yield Text(f"{' ' * before}{text}", style=style, no_wrap=True, overflow="ignore")
            elif at not in shown or (_goes_below(column) and _longest_name(text) > widths[at]):
                parts[at] = [""]
                if text not in _NOTHING:
                    below.append((f"{column.title.lower()}: {text}".lstrip(": "), style))
            elif column.is_name:
                parts[at] = folded(text, widths[at])
        for line_number in range(max(map(len, parts))):
            line = Text(no_wrap=True, overflow="ignore")
            cells = [
                (part[line_number] if line_number < len(part) else "", style)
                for part, (_, style) in zip(parts, row, strict=True)
            ]
            padded = self._padded(cells, widths)
            for at in shown:
                line.append(_GAP if at != shown[0] else "").append(padded[at], style=row[at][1])
            line.rstrip()
            yield line
        for text, style in below:
            for number, piece in enumerate(folded(text, width - len(_BELOW) - len(_GAP))):
                margin = f"{_BELOW}{_GAP if number else ''}"
                yield Text(f"{margin}{piece}", style=style, no_wrap=True, overflow="ignore")

    def _is_all_below(self, at: int, width: int) -> bool:
        """Whether no row has space for the name in this column."""
        return (
            _goes_below(self._columns[at])
            and bool(self._rows)
            and all(_longest_name(row[at][0]) > width for row in self._rows)
        )

    def _widths(self) -> list[int]:
        return [
            max([len(column.title), *(len(row[at][0]) for row in self._rows)])
            for at, column in enumerate(self._columns)
        ]

    def _fitting(self, width: int) -> list[int]:
        """The widths of the columns: as they are, or made narrower in this order until all fit.

        Texts that may be cut become shorter, the widest first. Names leave their rows, those of the last column first. Texts are cut
        further. Names that stay get a line of their own above the rest of their rows. What that leaves unused goes to texts that are
        cut.
        """
        widths = self._widths()
        self._shrink(widths, width, self._cut_widths(_LEGIBLE))
        for at in reversed(range(len(widths))):
            excess = _excess(widths, width)
            if excess <= 0:
                break
            if not _goes_below(self._columns[at]):
                continue
            widths[at] = self._width_of_names(at, widths[at] - excess)
        self._shrink(widths, width, self._cut_widths(_LEAST))
        for at in reversed(range(len(widths))):
            if _excess(widths, width) > 0 and _goes_below(self._columns[at]):
                widths[at] = -len(_GAP)
        for at, column in enumerate(self._columns):
            if (excess := _excess(widths, width)) > 0 and column.stays:
                widths[at] = max(widths[at] - excess, len(column.title))
        for at, natural in enumerate(self._widths()):
            most = min(natural, widths[at] - _excess(widths, width))
            if self._columns[at].may_be_cut and most > widths[at]:
                widths[at] = self._distinct_width(at, widths[at], most)
        return widths

    def _width_of_names(self, at: int, most: int) -> int:
        """How wide a column is for the names that are no longer than that; without any, neither it nor the gap before it is there."""
        title = len(self._columns[at].title)
        most = max(most, title)
        if self._is_all_below(at, most):
            return -len(_GAP)
        texts = (row[at][0] for row in self._rows)
        return max(
            [title, *(min(len(each), most) for each in texts if _longest_name(each) <= most)]
        )

    def _shrink(self, widths: list[int], width: int, least: Sequence[int]) -> None:
        while _excess(widths, width) > 0:
            candidates = [at for at in range(len(widths)) if widths[at] > least[at]]
            if not candidates:
                return
            widest = max(candidates, key=lambda at: widths[at])
            widths[widest] = self._distinct_width(widest, least[widest], widths[widest] - 1)

    def _cut_widths(self, legible: int) -> list[int]:
        """The least widths at which texts that differ still do, and none is narrower than that."""
        return [
            self._narrowest(at, max(legible, len(column.title)), natural)
            if column.may_be_cut
            else natural
            for at, (natural, column) in enumerate(zip(self._widths(), self._columns, strict=True))
        ]

    def _narrowest(self, at: int, least: int, natural: int) -> int:
        """The least of these widths at which texts that differ still do."""
        return next((w for w in range(least, natural) if self._is_distinct(at, w)), natural)

    def _distinct_width(self, at: int, least: int, most: int) -> int:
        """The largest of these widths at which texts that differ still do; they do at the least one."""
        return next((w for w in range(most, least, -1) if self._is_distinct(at, w)), least)

    def _is_distinct(self, at: int, width: int) -> bool:
        texts = {row[at][0] for row in self._rows}
        return len({cut(text, width) for text in texts}) == len(texts)

    def _least_widths(self) -> list[int]:
        """The least widths before a column is left out: texts are legible, and names of the last column that has some may be below."""
        widths = self._cut_widths(_LEGIBLE)
        names = [at for at, column in enumerate(self._columns) if _goes_below(column)]
        for at in names[-1:]:
            widths[at] = len(self._columns[at].title)
        return widths

    def _padded(self, row: Sequence[tuple[str, str]], widths: Sequence[int]) -> list[str]:
        shown = [
            cut(text, width) if column.may_be_cut else text
            for (text, _), width, column in zip(row, widths, self._columns, strict=True)
        ]
        return [
            text.rjust(width) if column.is_number else text.ljust(width)
            for text, width, column in zip(shown, widths, self._columns, strict=True)
        ]


def _goes_below(column: Column) -> bool:
    return column.is_name and not column.stays


def _excess(widths: Sequence[int], width: int) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1) - width


def _lines(lines: Sequence[Text]) -> Text:
    from rich.text import Text

    return Text("\n", no_wrap=True, overflow="ignore").join(lines)


def _pair(cell: Cell) -> tuple[str, str]:
    text, style = (cell, "") if isinstance(cell, str) else cell
    return printable(text), style


def cut(text: str, width: int) -> str:
    """The text, with its middle left out if it is too long: names differ at either end."""
    if len(text) <= width:
        return text
    front = (width - 1) // 2
    return f"{text[:front]}~{text[len(text) - (width - 1 - front) :]}"


def _longest_name(text: str) -> int:
    """The length of the longest name of a list."""
    return max(map(len, text.split(",")))


def folded(text: str, width: int) -> list[str]:
    """The list in pieces that are not longer than that, broken between names: a name that is longer has a piece of its own."""
    pieces = [""]
    for name in filter(None, _NAME_OF_LIST.findall(text)):
        if pieces[-1] and len(pieces[-1]) + len(name.rstrip()) > width:
            pieces.append("")
        # Blanks before the first name are an indentation, others separate names.
        pieces[-1] += name if pieces[-1] or len(pieces) == 1 else name.lstrip()
    return [piece.rstrip() for piece in pieces]
