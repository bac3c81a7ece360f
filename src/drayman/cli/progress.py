"""Progress of work and waiting that turn out to be long, shown on a terminal only."""

from __future__ import annotations

import asyncio
import shutil
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

import click

from drayman.printable import printable

PATIENCE_SECONDS: Final = 2.0
"""What takes less time than this is not shown."""

_BETWEEN_SECONDS: Final = 0.2
"""Between two checks of how far the work has come."""

T = TypeVar("T")


def is_watched() -> bool:
    """Whether standard error, which may be closed, is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def tracked(items: Sequence[T], label: str) -> Iterator[T]:
    """The items, with a bar on standard error once they have taken a while."""
    if not is_watched():
        yield from items
        return
    started = time.monotonic()
    done = 0
    for item in items:
        if time.monotonic() - started > PATIENCE_SECONDS:
            break
        yield item
        done += 1
    if done == len(items):
        return
    with click.progressbar(length=len(items), label=label, file=sys.stderr) as bar:
        bar.update(done)
        for item in items[done:]:
            yield item
            bar.update(1)


@dataclass(slots=True)
class Gauge:
    """How far some work has come, as reported by the worker."""

    done: int = 0
    total: int = 0

    def update(self, done: int, total: int) -> None:
        self.done, self.total = done, total


@contextmanager
def gauged(label: str) -> Iterator[Gauge]:
    """A gauge with a bar on standard error, once the work has taken a while.

    A thread draws it, because the work may be a server: a terminal that blocks, or is gone, must not block it.
    """
    gauge = Gauge()
    if not is_watched():
        yield gauge
        return
    over = threading.Event()
    drawing = threading.Thread(target=_draw, args=(gauge, label, over), daemon=True)
    drawing.start()
    try:
        yield gauge
    finally:
        over.set()
        drawing.join(PATIENCE_SECONDS)


def _draw(gauge: Gauge, label: str, over: threading.Event) -> None:
    if over.wait(PATIENCE_SECONDS):
        return
    try:
        with click.progressbar(
            length=1, label=label, show_eta=False, width=0, file=sys.stderr
        ) as bar:
            is_over = False
            while not is_over:
                is_over = over.wait(_BETWEEN_SECONDS)
                bar.length = gauge.total or 1
                bar.update(gauge.done - bar.pos)
        if gauge.done < (gauge.total or 1):  # the work was ended early, and why follows
            click.echo("\x1b[A\x1b[K", nl=False, err=True)
    except OSError:
        return  # the terminal is gone, so nothing can be reported


@asynccontextmanager
async def waiting(text: str, over: asyncio.Event) -> AsyncIterator[None]:
    """A line on standard error while something is awaited that takes a while; it disappears afterwards."""
    if not is_watched():
        yield
        return
    shown = asyncio.create_task(_shown(text, over))
    try:
        yield
    finally:
        shown.cancel()
        await asyncio.wait((shown,))


async def _shown(text: str, over: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await over.wait()
        return
    except TimeoutError:
        # A line that wraps could not be erased.
        width = shutil.get_terminal_size().columns - 1
        click.echo(f"{printable(text)} ..."[:width], nl=False, err=True)
    try:
        await over.wait()
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)
