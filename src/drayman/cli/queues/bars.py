"""Quota as a bar: what is used of it, what is only reserved, what others have borrowed, what is free, and what is used beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from drayman.cli.map.bars import cells_for
from drayman.questions.queues.answer import QuotaRow

if TYPE_CHECKING:
    from rich.text import Text

WIDTH: Final = 12
_SCALE: Final = 1_000_000
"""Amounts may be fractions; bars are divided by whole numbers."""


@dataclass(frozen=True, slots=True)
class Part:
    """What a cell of a bar stands for."""

    name: str
    glyph: str
    ascii_glyph: str
    style: str

    def drawn(self, *, ascii_only: bool) -> str:
        return self.ascii_glyph if ascii_only else self.glyph


PARTS: Final = (
    Part("used", "█", "#", "bright_blue"),
    Part("reserved", "▒", "+", "cyan"),
    Part("lent", "░", "x", "magenta"),
    Part("free", "·", ".", "green"),
    Part("borrowed", "▓", "*", "yellow"),
)


def amounts(row: QuotaRow) -> list[int]:
    """What the parts of a row's bar stand for. What is borrowed comes after the nominal quota."""
    nominal, used = row.nominal.amount, row.used.amount
    within = min(used, nominal) if row.shared is None else used
    reserved = min(row.reserved.amount, within)
    lent = min(row.lent.amount, max(0, nominal - within)) if row.shared is None else 0
    whole = nominal if row.shared is None else row.shared.amount
    free = max(0, whole - within - lent)
    beyond = row.borrowed.amount
    found = (within - reserved, reserved, lent, free, beyond)
    most = max(1, *found)
    return [int(each * _SCALE / most) for each in found]


def bar(row: QuotaRow, *, ascii_only: bool) -> str:
    """The bar of one row; blank where there is nothing to draw."""
    cells = cells_for(amounts(row), WIDTH)
    glyphs = (part.drawn(ascii_only=ascii_only) for part in PARTS)
    return "".join(glyph * number for glyph, number in zip(glyphs, cells, strict=True))


def legend(rows: list[QuotaRow], *, ascii_only: bool) -> Text:
    """What the cells stand for, as far as they occur."""
    from rich.text import Text

    found = [amounts(row) for row in rows]
    line = Text()
    for at, part in enumerate(PARTS):
        if any(each[at] for each in found):
            line.append("  " if line else "")
            line.append(part.drawn(ascii_only=ascii_only), style=part.style).append(f" {part.name}")
    return line


def coloured(text: Text, *, ascii_only: bool) -> Text:
    """The same table with its bars in colour. Where bars are made of ASCII, they would be confused with names, so they stay as they are."""
    if not ascii_only:
        for part in PARTS:
            if part.glyph != "·":
                text.highlight_regex(f"{part.glyph}+", part.style)
    return text
