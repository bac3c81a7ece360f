"""What a command prints, and how it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

COMMAND_NOT_FOUND: Final = 127
"""What shells answer for a program that does not exist."""


@dataclass(frozen=True, slots=True)
class Output:
    """All of it: commands that are simulated end at once."""

    text: str = ""
    error: str = ""
    code: int = 0


def not_found(program: str, why: str) -> Output:
    return Output(error=f"{program}: {why}\n", code=COMMAND_NOT_FOUND)


def unknown_option(program: str, option: str, known: str) -> Output:
    return Output(error=f"{program}: {option} is not simulated; {known} is\n", code=1)


def columns(rows: Sequence[tuple[str, ...]]) -> str:
    """Rows below each other, each column as wide as it has to be."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "".join(
        f"{'  '.join(f'{cell:<{width}}' for cell, width in zip(row, widths, strict=True)).rstrip()}\n"
        for row in rows
    )
