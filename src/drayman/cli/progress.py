"""A progress bar for work that turns out to be long, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

import click

PATIENCE_SECONDS: Final = 2.0
"""Work that is over before this is shown no bar."""

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
