"""Pictures that follow one another on a terminal."""

from __future__ import annotations

import sys
from pathlib import Path

from cli.terminal import Terminal, person

FRAMES = """
import sys
from rich.text import Text
from drayman.cli.frames import Frames
from drayman.cli.output import console

out = console()
with Frames(out) as frames:
    for line in sys.stdin:
        number, length, width, is_news = line.split()
        rows = [f"{number}.{row}".ljust(int(width), "x") for row in range(int(length))]
        picture = Text("\\n".join(rows), no_wrap=True, overflow="ignore")
        frames.show(picture, is_news=is_news == "new")
"""


def shown(folder: Path, *pictures: str) -> Terminal:
    """A terminal of 80 by 10 on which these pictures were shown: number, lines, width, and whether it is news."""
    words = [sys.executable, "-c", FRAMES]
    with Terminal(words, person(folder), rows=10) as terminal:
        for picture in pictures:
            terminal.press(f"{picture}\n".encode())
            if not picture.endswith("old"):
                terminal.wait_for(rf"^{picture.split()[0]}\.0")
        terminal.press(b"\x04")
        assert terminal.end() == 0
    return terminal


def drawn(folder: Path, *pictures: str) -> list[str]:
    """The lines of pictures that are left; what was typed is on the screen too."""
    return [line for line in shown(folder, *pictures).lines if "." in line]


def test_pictures_that_fit_are_drawn_over_each_other(tmp_path: Path) -> None:
    """Only the last one is left."""
    assert [line.partition("x")[0] for line in drawn(tmp_path, "1 3 5 new", "2 2 5 new")][-2:] == [
        "2.0",
        "2.1",
    ]


def test_a_picture_that_is_taller_than_the_screen_is_printed_whole(tmp_path: Path) -> None:
    """The one before stays above it, so that both can be scrolled through."""
    found = drawn(tmp_path, "1 20 5 new", "2 21 5 new")
    assert [line[:4].rstrip("x") for line in found if line.startswith(("1.", "2."))] == [
        *(f"1.{row}" for row in range(20)),
        *(f"2.{row}" for row in range(21)),
    ]


def test_a_picture_that_is_no_news_is_not_printed_again(tmp_path: Path) -> None:
    """Ages that change would otherwise fill the terminal."""
    found = drawn(tmp_path, "1 20 5 new", "2 20 5 old", "3 2 5 new")
    assert not [line for line in found if line.startswith("2.")]


def test_a_line_that_is_wider_than_the_screen_is_whole(tmp_path: Path) -> None:
    """It continues on the next line instead of being cut."""
    assert "1.0".ljust(100, "x").encode() in shown(tmp_path, "1 2 100 new").raw
