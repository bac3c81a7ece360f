"""Use as bars: a row of cells that shows at a glance what is used, used in part, tainted and free, even without colour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from drayman.cli.table import STYLES
from drayman.placement.occupancy import State

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True, slots=True)
class Segment:
    """States that look the same in a bar."""

    name: str
    states: tuple[State, ...]
    glyph: str
    ascii_glyph: str

    @property
    def style(self) -> str:
        return STYLES[self.states[0]]

    def number(self, counts: Mapping[State, int]) -> int:
        return sum(counts.get(state, 0) for state in self.states)


SEGMENTS: Final = (
    Segment("used", (State.USED,), "█", "#"),
    Segment("in part", (State.SHARED, State.PARTITIONED), "▒", "+"),
    Segment("tainted", (State.TAINTED,), "x", "x"),
    Segment("unavailable", (State.UNAVAILABLE,), "-", "-"),
    Segment("unknown", (State.UNKNOWN,), "?", "?"),
    Segment("free", (State.FREE,), "·", "."),
)


def bar(counts: Mapping[State, int], width: int, *, ascii_only: bool) -> Text:
    """The counts in proportion. Every nonzero count gets at least one cell, as far as there are cells."""
    from rich.text import Text

    numbers = [segment.number(counts) for segment in SEGMENTS]
    drawn = Text()
    for segment, cells in zip(SEGMENTS, cells_for(numbers, width), strict=True):
        glyph = segment.ascii_glyph if ascii_only else segment.glyph
        drawn.append(glyph * cells, style=segment.style)
    return drawn


def cells_for(numbers: list[int], width: int) -> list[int]:
    """The share of `width` cells for each number: cells left over by rounding go to where most was cut off."""
    total = sum(numbers)
    if not total:
        return [0] * len(numbers)
    cells = [max(1, number * width // total) if number else 0 for number in numbers]
    while sum(cells) > width and max(cells) > 1:
        cells[cells.index(max(cells))] -= 1
    while sum(cells) < width:
        lost = [number * width - cell * total for number, cell in zip(numbers, cells, strict=True)]
        cells[lost.index(max(lost))] += 1
    return cells


def legend(counts: Mapping[State, int], *, ascii_only: bool) -> Text:
    """What the cells of bars stand for, as far as they occur."""
    from rich.text import Text

    line = Text()
    for segment in SEGMENTS:
        if segment.number(counts):
            line.append("  " if line else "")
            glyph = segment.ascii_glyph if ascii_only else segment.glyph
            line.append(glyph, style=segment.style).append(f" {segment.name}")
    return line


def words(counts: Mapping[State, int]) -> str:
    """As in `3 used, 1 in part, 4 free`."""
    found = [(segment.number(counts), segment.name) for segment in SEGMENTS]
    return ", ".join(f"{number:,} {name}" for number, name in found if number)
