"""Pictures that are drawn over each other on a terminal.

A picture that does not fit on the screen is printed whole, below the one before, so that the terminal can scroll through it. A terminal
whose size has changed may have wrapped the lines of the last picture in its own way: then the screen is cleared instead.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.control import Control
from rich.live import Live
from rich.segment import ControlType, Segment

if TYPE_CHECKING:
    from rich.console import Console, ConsoleRenderable, RenderableType


class Redrawn(Live):
    """A picture that replaces the last one, also after the size of the terminal has changed."""

    def __init__(self, out: Console) -> None:
        super().__init__(console=out, auto_refresh=False)
        self._drawn_at = out.size

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Begin with an empty screen, in place of the lines of the last picture, if they may be elsewhere."""
        found = super().process_renderables(renderables)
        if self.console.size == self._drawn_at:
            return found
        self._drawn_at = self.console.size
        return [Control(ControlType.HOME, ControlType.CLEAR), *found[1:]]


class Frames:
    """Where pictures go that follow one another, until the context is left."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._live: Redrawn | None = None
        self._has_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def show(self, picture: RenderableType, *, is_news: bool = True) -> None:
        """Draw a picture over the last one, or print it below if it does not fit on the screen and `is_news`."""
        if self._fits(picture):
            if self._live is None:
                self._live = Redrawn(self._out)
                self._live.start()
            self._live.update(picture, refresh=True)
        elif is_news or not self._has_shown:
            self._end()
            if self._has_shown:
                self._out.print()
            self._out.print(picture)
        self._has_shown = True

    def _fits(self, picture: RenderableType) -> bool:
        lines = list(Segment.split_lines(self._out.render(picture)))
        widths = (sum(segment.cell_length for segment in line) for line in lines)
        return len(lines) < self._out.height and all(width <= self._out.width for width in widths)

    def _end(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
