"""What is shown of work and of waiting that turn out to be long, on a terminal only."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeVar

import click

PATIENCE_SECONDS: Final = 2.0
"""What is over before this is not shown."""

T = TypeVar("T")


def tracked(items: Sequence[T], label: str) -> Iterator[T]:
    """The items, with a bar on standard error once they have taken a while."""
    if not sys.stderr.isatty():
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


@asynccontextmanager
async def waiting(text: str, over: asyncio.Event) -> AsyncIterator[None]:
    """A line on standard error while something is awaited that takes a while; it is gone once that is over."""
    if not sys.stderr.isatty():
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
        # A line that wraps could not be taken back.
        width = shutil.get_terminal_size().columns - 1
        click.echo(f"{text} ..."[:width], nl=False, err=True)
    try:
        await over.wait()
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)
