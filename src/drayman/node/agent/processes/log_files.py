"""The log of a container as its shim writes it, in the format of the container runtime interface. Part of the shim: it imports nothing but
the standard library.

`log` is what is being written. When it is full it gets a number, `log.1` being the first, and of those the last few are kept. A number is
given once and the files keep theirs, so that a reader knows which comes next, whatever happens meanwhile.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

LONGEST_LINE = 16 * 1024
MOST_BYTES = 10 * 1024 * 1024
"""In a file, and a few more: a line is in one file."""
MOST_FILES = 5
"""That one included. Both are what kubelets do unless told otherwise."""


def full_files(path: str) -> list[str]:
    """The files of a log that are full, in their order."""
    folder, name = os.path.split(path)
    try:
        ends = [each.rpartition(".") for each in os.listdir(folder or ".")]
    except FileNotFoundError:
        return []
    numbers = sorted(int(end) for begin, _, end in ends if begin == name and end.isdecimal())
    return [f"{path}.{number}" for number in numbers]


class Log:
    """Lines of both streams, each with its time."""

    def __init__(
        self, path: str, most_bytes: int = MOST_BYTES, most_files: int = MOST_FILES
    ) -> None:
        self._path = path
        self._most_bytes = most_bytes
        self._most_files = most_files
        self._full = 0
        """How many files have become full."""
        self._file = self._opened(path)
        self._size = 0
        self._is_cut = False
        """Whether the last line may lack its end."""
        self._rest = {"stdout": b"", "stderr": b""}

    def add(self, stream: str, data: bytes) -> None:
        *lines, rest = (self._rest[stream] + data).split(b"\n")
        text = b"".join(self._stamped(stream, line) for line in lines)
        while len(rest) > LONGEST_LINE:
            text += self._entry(stream, "P", rest[:LONGEST_LINE])
            rest = rest[LONGEST_LINE:]
        self._rest[stream] = rest
        self._write(text)

    def finish(self) -> None:
        for stream, rest in self._rest.items():
            if rest:
                self._write(self._entry(stream, "P", rest))

    def _stamped(self, stream: str, line: bytes) -> bytes:
        parts = b""
        while len(line) > LONGEST_LINE:
            parts += self._entry(stream, "P", line[:LONGEST_LINE])
            line = line[LONGEST_LINE:]
        return parts + self._entry(stream, "F", line)

    @staticmethod
    def _entry(stream: str, tag: str, line: bytes) -> bytes:
        return f"{now()} {stream} {tag} ".encode() + line + b"\n"

    def _write(self, text: bytes) -> None:
        """What the disk has no room for is lost: a container does not end because of its log."""
        if not text:
            return
        if self._size >= self._most_bytes:
            self._change_files()
        text = b"\n" + text if self._is_cut else text
        self._size += len(text)
        try:
            while text:
                text = text[os.write(self._file, text) :]
        except OSError:
            self._size -= len(text)
        self._is_cut = bool(text)

    def _change_files(self) -> None:
        fresh = f"{self._path}.new"
        try:
            file = self._opened(fresh)
        except OSError:
            return  # the one that is full goes on growing
        self._full += 1
        with suppress(FileNotFoundError):  # somebody may have wanted the room
            os.rename(self._path, f"{self._path}.{self._full}")
        os.rename(fresh, self._path)
        os.close(self._file)
        self._file, self._size, self._is_cut = file, 0, False
        full = full_files(self._path)
        for old in full[: max(0, len(full) + 1 - self._most_files)]:
            os.unlink(old)

    @staticmethod
    def _opened(path: str) -> int:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)


def now() -> str:
    """This moment as logs have it, and whatever else the shim writes."""
    seconds, nanos = divmod(time.time_ns(), 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{nanos:09d}Z"
