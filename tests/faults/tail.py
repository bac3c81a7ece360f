"""What a crash of the machine can leave at the end of files that were being written.

SQLite syncs its write-ahead log with every commit, so what was acknowledged is in the file. Behind the last commit there can be anything:
parts of what was never committed, zeros, or what was on the disk before. The shared-memory file is never synced at all, and the audit
log is not either.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

_HEADER: Final = struct.Struct(">8I")
_FRAME: Final = struct.Struct(">6I")
_BIG_ENDIAN: Final = 0x377F0683
_LITTLE_ENDIAN: Final = 0x377F0682
_MOST_FRAMES: Final = 4
_Sums = tuple[int, int]


class Log:
    """A write-ahead log as a reader after a crash finds it."""

    def __init__(self, content: bytes) -> None:
        self.end = 0
        """Where the last commit ends; 0 if the file holds none, not even a good beginning."""
        self._sums: _Sums = (0, 0)
        if len(content) < _HEADER.size:
            return
        magic, _, self._page, _, *self._salts, first, second = _HEADER.unpack_from(content)
        self._order = ">" if magic == _BIG_ENDIAN else "<"
        sums = self._sum(content[: _HEADER.size - 8], (0, 0))
        if magic not in (_BIG_ENDIAN, _LITTLE_ENDIAN) or sums != (first, second):
            return
        self.end, self._sums = _HEADER.size, sums
        at = self.end
        while at + _FRAME.size + self._page <= len(content):
            _, pages, *salts, first, second = _FRAME.unpack_from(content, at)
            body = at + _FRAME.size
            sums = self._sum(content[at : at + 8], sums)
            sums = self._sum(content[body : body + self._page], sums)
            if salts != self._salts or sums != (first, second):
                break
            at = body + self._page
            if pages:
                self.end, self._sums = at, sums

    def unfinished(self, rng: random.Random) -> bytes:
        """Frames of a transaction that was never committed, as good as they can be."""
        content, sums = b"", self._sums
        for _ in range(rng.randint(1, _MOST_FRAMES)):
            page, start = rng.randbytes(self._page), struct.pack(">2I", rng.randint(1, 50), 0)
            sums = self._sum(page, self._sum(start, sums))
            content += start + struct.pack(">4I", *self._salts, *sums) + page
        return content

    def _sum(self, data: bytes, sums: _Sums) -> _Sums:
        one, two = sums
        words = struct.unpack(f"{self._order}{len(data) // 4}I", data)
        for even, odd in zip(words[::2], words[1::2], strict=True):
            one = (one + even + two) & 0xFFFFFFFF
            two = (two + odd + one) & 0xFFFFFFFF
        return one, two


def damage(store: Path, audit_log: Path, rng: random.Random) -> str:
    """Damage what a crash can damage; what was done, in words."""
    log = store.with_name(store.name + "-wal")
    index = store.with_name(store.name + "-shm")
    kind: Callable[[Path, random.Random], str] = rng.choice(
        (_cut, _scribble, _fill_with_zeros, _leave_unfinished, _tear)
    )
    done = [kind(log, rng)]
    if index.exists():
        done.append(_damage_index(index, rng))
    if audit_log.exists():
        done.append(_tear_line(audit_log, rng))
    return ", ".join(done)


def _end_of(log: Path) -> Log:
    return Log(log.read_bytes() if log.exists() else b"")


def _replace_tail(log: Path, end: int, tail: bytes) -> None:
    with log.open("ab") as file:
        file.truncate(end)
        file.seek(end)
        file.write(tail)


def _cut(log: Path, _: random.Random) -> str:
    _replace_tail(log, _end_of(log).end, b"")
    return "cut the log behind its last commit"


def _scribble(log: Path, rng: random.Random) -> str:
    _replace_tail(log, _end_of(log).end, rng.randbytes(rng.randint(1, 20_000)))
    return "scribble behind the last commit of the log"


def _fill_with_zeros(log: Path, rng: random.Random) -> str:
    _replace_tail(log, _end_of(log).end, bytes(rng.randint(1, 20_000)))
    return "zeros behind the last commit of the log"


def _leave_unfinished(log: Path, rng: random.Random) -> str:
    found = _end_of(log)
    if not found.end:
        return _scribble(log, rng)
    _replace_tail(log, found.end, found.unfinished(rng))
    return "an unfinished transaction at the end of the log"


def _tear(log: Path, rng: random.Random) -> str:
    found = _end_of(log)
    if not found.end:
        return _scribble(log, rng)
    frames = found.unfinished(rng)
    _replace_tail(log, found.end, frames[: rng.randint(1, len(frames) - 1)])
    return "a torn transaction at the end of the log"


def _damage_index(index: Path, rng: random.Random) -> str:
    if rng.random() < 0.3:
        index.unlink()
        return "lose the index of the log"
    size = index.stat().st_size
    index.write_bytes(rng.randbytes(size) if rng.random() < 0.5 else bytes(size))
    return "overwrite the index of the log"


def _tear_line(audit_log: Path, rng: random.Random) -> str:
    """The audit log ends in the middle of a line. It begins afresh, so that a long run does not fill the disk."""
    kept = audit_log.read_bytes()[-2_000:]
    torn = kept[: rng.randint(1, len(kept))] if kept else b""
    audit_log.write_bytes(torn + bytes(rng.choice((0, 100))))
    return "tear the last line of the audit log"
