"""Logs of containers, from the files that their shims write (`log_files`)."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import FileIO
from pathlib import Path
from typing import Final

from drayman.node.agent.processes.log_files import full_files
from drayman.node.streams.finishing import to_the_end
from drayman.node.streams.model import LogOptions

_POLL_S: Final = 0.1
"""How often a log that is followed is looked at."""
_PIECE: Final = 64 * 1024
_LONGEST_AGO_S: Final = 100 * 365 * 24 * 3600
"""Before there was anything to log, and within what a clock can hold."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a log, or a part of one."""

    moment: str
    is_whole: bool
    text: bytes

    def shown(self, timestamps: bool) -> bytes:
        moment = f"{self.moment} ".encode() if timestamps else b""
        return moment + self.text + (b"\n" if self.is_whole else b"")


def entries_of(lines: Iterable[bytes]) -> list[Entry]:
    """Those of some lines of a log. A line that was cut short, because its writer was killed or the disk was full, is left out."""
    found = []
    for line in lines:
        parts = line.split(b" ", 3)
        if len(parts) == 4:
            found.append(Entry(parts[0].decode("ascii", "replace"), parts[2] == b"F", parts[3]))
    return found


def since_of(options: LogOptions, now: datetime) -> str:
    """The first moment that is wanted, as logs have it; empty for all of them."""
    since = options.since
    if options.since_seconds is not None:
        since = now - timedelta(seconds=min(options.since_seconds, _LONGEST_AGO_S))
    return "" if since is None else since.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")


class _Reader:
    """Entries of a log, file after file. Its methods wait for the disk, and may be called in any thread.

    `tail`: how many there are to be at first; None for all.
    `follow`: whether it goes on with files that are made later.
    """

    def __init__(self, path: Path, tail: int | None = None, follow: bool = False) -> None:
        self._path = path
        self._tail = tail
        self._follow = follow
        self._files: deque[FileIO] | None = None
        """The one that is being read, and those after it; None before the first call."""
        self._rest = b""
        self._is_closed = False
        self._lock = threading.Lock()
        """Whoever waits for a thread may leave, and close this before that is done."""

    def entries(self) -> list[Entry]:
        """The next ones; none if there are no more by now."""
        with self._lock:
            if self._is_closed:
                return []
            if self._files is None:
                self._files = deque(_opened(self._path))
                if self._tail is not None:
                    _keep_last(self._files, self._tail)
            while True:
                data = self._files[0].read(_PIECE) if self._files else b""
                if data:
                    *lines, self._rest = (self._rest + data).split(b"\n")
                    if found := entries_of(lines):
                        return found
                elif not self._advance(self._files):
                    return []

    def _advance(self, files: deque[FileIO]) -> bool:
        """Whether there is something more to read."""
        if len(files) > 1:
            files.popleft().close()
            self._rest = b""
            return True
        if not self._follow:
            return False
        more = _opened_after(files[0], self._path) if files else _opened(self._path)
        # A file is not left at once: something may have been added to it before the next one was made.
        files.extend(more)
        return bool(more)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            for file in self._files or ():
                file.close()


def _opened(path: Path) -> list[FileIO]:
    """The files of a log in their order."""
    # The last one first: if it becomes full meanwhile it is found twice, and not missed.
    last = _open(path)
    found = [file for name in full_files(str(path)) if (file := _open(Path(name))) is not None]
    if last is not None:
        if any(_is_same(file, last) for file in found):
            last.close()
        else:
            found.append(last)
    return found


def _opened_after(known: FileIO, path: Path) -> list[FileIO]:
    """The files of a log that come after one that was its last."""
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(known.fileno()), path.stat()):
            return []
    found = _opened(path)
    # One that is not there any more was the oldest, so all others come after it.
    places = [place for place, file in enumerate(found) if _is_same(file, known)]
    first = places[0] + 1 if places else 0
    for file in found[:first]:
        file.close()
    return found[first:]


def _open(path: Path) -> FileIO | None:
    with suppress(FileNotFoundError):
        return path.open("rb", buffering=0)
    return None


def _is_same(one: FileIO, other: FileIO) -> bool:
    return os.path.sameopenfile(one.fileno(), other.fileno())


def _keep_last(files: deque[FileIO], lines: int) -> None:
    """Go to where the last lines begin. They are looked for from the end: all files may be much more."""
    for place in reversed(range(len(files))):
        start, lines = _start_of_last(files[place], lines)
        files[place].seek(start)
        if not lines:
            for _ in range(place):
                files.popleft().close()
            return


def _start_of_last(file: FileIO, lines: int) -> tuple[int, int]:
    """Where the last lines of a file begin, and how many are missing because it has no more."""
    at = file.seek(0, os.SEEK_END)
    while at > 0:
        size = min(_PIECE, at)
        at = file.seek(at - size)
        data = file.read(size)
        end = len(data)
        # The last line has an end, too, so the end that is looked for is one further.
        while (end := data.rfind(b"\n", 0, end)) >= 0:
            if lines == 0:
                return at + end + 1, 0
            lines -= 1
    return 0, lines


def last_entries(path: Path, most: int) -> list[Entry]:
    """The end of a log, whose container has ended. Raises OSError."""
    reader, found = _Reader(path, most), list[Entry]()
    try:
        while entries := reader.entries():
            found += entries
    finally:
        reader.close()
    return found


async def read_log(
    path: Path, options: LogOptions, is_over: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    """What is wanted of a log, in pieces; with `follow` until its container is over."""
    left = options.limit_bytes
    since = since_of(options, datetime.now(UTC))
    async with aclosing(_entries(path, options, is_over)) as pieces:
        async for entries in pieces:
            wanted = (entry for entry in entries if entry.moment >= since)
            data = b"".join(entry.shown(options.timestamps) for entry in wanted)
            if left is not None:
                data = data[:left]
                left -= len(data)
            if data:
                yield data
            if left == 0:
                return


async def _entries(
    path: Path, options: LogOptions, is_over: Callable[[], bool]
) -> AsyncGenerator[list[Entry], None]:
    reader = _Reader(path, options.tail, options.follow)
    was_over = is_over()
    try:
        while True:
            while entries := await asyncio.to_thread(reader.entries):
                yield entries
            if not options.follow or was_over:
                return
            # Once more after the end: the last lines come before it.
            was_over = is_over()
            if not was_over:
                await asyncio.sleep(_POLL_S)
    finally:
        await to_the_end(asyncio.to_thread(reader.close))
