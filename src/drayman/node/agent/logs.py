"""Logs of containers, from the files that their shims write."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from drayman.node.streams.model import LogOptions

_POLL_S: Final = 0.1
"""How often a log that is followed is looked at."""
_PIECE: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a log, or a part of one."""

    moment: str
    is_whole: bool
    text: bytes

    @classmethod
    def parse(cls, line: bytes) -> Entry:
        moment, _, tag, text = line.split(b" ", 3)
        return cls(moment.decode(), tag == b"F", text)

    def shown(self, timestamps: bool) -> bytes:
        moment = f"{self.moment} ".encode() if timestamps else b""
        return moment + self.text + (b"\n" if self.is_whole else b"")


def since_of(options: LogOptions, now: datetime) -> str:
    """The first moment that is wanted, as logs have it; empty for all of them."""
    since = options.since
    if options.since_seconds is not None:
        since = now - timedelta(seconds=options.since_seconds)
    return "" if since is None else since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


class _Reader:
    """Entries of a file that grows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0
        self._rest = b""

    def entries(self) -> Iterator[Entry]:
        """Those since the last call."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._at)
            while data := file.read(_PIECE):
                self._at += len(data)
                *lines, self._rest = (self._rest + data).split(b"\n")
                yield from map(Entry.parse, lines)


async def read_log(
    path: Path, options: LogOptions, is_over: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """What is wanted of a log; with `follow` until its container is over."""
    left = options.limit_bytes
    async for entry in _entries(path, options, is_over):
        data = entry.shown(options.timestamps)
        if left is not None:
            data, left = data[:left], left - len(data)
        if data:
            yield data
        if left is not None and left <= 0:
            return


async def _entries(
    path: Path, options: LogOptions, is_over: Callable[[], bool]
) -> AsyncIterator[Entry]:
    reader = _Reader(path)
    since = since_of(options, datetime.now(UTC))
    was_over = is_over()
    first = (entry for entry in reader.entries() if entry.moment >= since)
    for entry in first if options.tail is None else deque(first, maxlen=options.tail):
        yield entry
    while options.follow:
        for entry in reader.entries():
            yield entry
        if was_over:
            return
        # Once more after the end: the last lines come before it.
        was_over = is_over()
        if not was_over:
            await asyncio.sleep(_POLL_S)
