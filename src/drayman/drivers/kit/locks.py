"""Locks between the instances of a driver on one node, of which there are two while it is updated.

They are locks of files, by open file description: the kernel lets go of them when a process ends, however it ends, and there is nothing to
clean up. Those of the kit are single bytes of one file; within a process, asyncio's locks come first. Drivers, which work in threads, have
locks with a file each.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Final

_POLL_S: Final = 0.02
"""A blocking wait could not be given up, and two instances hardly ever meet."""
_FLOCK: Final = "hhqqi4x"
"""`struct flock` on 64-bit Linux: type, whence, start, length, process."""
_POSITIONS: Final = 2**62


@dataclass(slots=True)
class _Turn:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0


class Locks:
    """Named locks, between the tasks of this process and between processes with the same file."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._is_closed = False
        self._turns: dict[str, _Turn] = {}

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        turn = self._turns.setdefault(name, _Turn())
        turn.waiting += 1
        try:
            async with turn.lock:
                position = _position(name)
                while not self._set(fcntl.F_WRLCK, position):
                    await asyncio.sleep(_POLL_S)
                try:
                    yield
                finally:
                    if not self._is_closed:
                        self._set(fcntl.F_UNLCK, position)
        finally:
            turn.waiting -= 1
            if not turn.waiting:
                del self._turns[name]

    def _set(self, type_: int, position: int) -> bool:
        request = struct.pack(_FLOCK, type_, os.SEEK_SET, position, 1, 0)
        try:
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, request)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Whoever still holds a lock has lost it: the number of the file may be that of another one from now on."""
        self._is_closed = True
        os.close(self._file)


class ThreadLock:
    """A lock between the threads of this process, and with a file between processes, too. Waiting for it blocks."""

    def __init__(self) -> None:
        self._turn = threading.Lock()

    @contextmanager
    def hold(self, path: Path | None) -> Iterator[None]:
        """Without a path, between the threads alone. Raises OSError."""
        with self._turn:
            if path is None:
                yield
                return
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield
            finally:
                os.close(file)


def _position(name: str) -> int:
    """The byte that stands for a name: two names that meet would only wait for each other."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) % _POSITIONS
