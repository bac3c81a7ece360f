"""The machine as the processes under test see it: a disk that gets full or read-only, and clocks that jump.

Where the test may mount, the data folder is a file system of its own, which really is full when it is made as small as what it holds. A
file system with open files cannot be made read-only from outside, so a library that is loaded into the processes answers their
writes with EROFS, as the kernel does once a file system has gone read-only by itself. The same library shifts the time of day.

Where that is not possible, limits on the size of files stand in: writes fail with another error, but they fail. `how` says what is done.
"""

from __future__ import annotations

import mmap
import os
import resource
import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_SOURCE: Final = Path(__file__).with_name("pretence.c")
_FORM: Final = struct.Struct("=qq")
_ROOMY: Final = "1g"
_PAGE: Final = 4096
_TIGHTEN_TRIES: Final = 50


def compiled(folder: Path) -> Path | None:
    """The library that makes processes believe things; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "pretence.so"
    words = [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(_SOURCE), "-ldl"]
    subprocess.run(words, check=True, capture_output=True)
    return library


class Pretence:
    """What one process, and those started after it in its place, believe."""

    def __init__(self, path: Path, library: Path | None, folder: Path) -> None:
        self._library = library
        self._environment = {"FAULTS_PRETENCE": str(path), "FAULTS_FOLDER": str(folder)}
        path.write_bytes(_FORM.pack(0, 0))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), _FORM.size)
        self._seconds_ahead = 0
        self._read_only = False

    @property
    def environment(self) -> Mapping[str, str]:
        if self._library is None:
            return {}
        return {**self._environment, "LD_PRELOAD": str(self._library)}

    @property
    def seconds_ahead(self) -> int:
        return self._seconds_ahead

    @seconds_ahead.setter
    def seconds_ahead(self, seconds: int) -> None:
        self._seconds_ahead = seconds
        self._share()

    @property
    def read_only(self) -> bool:
        return self._read_only

    @read_only.setter
    def read_only(self, wanted: bool) -> None:
        self._read_only = wanted
        self._share()

    def _share(self) -> None:
        self._shared[:] = _FORM.pack(self._seconds_ahead, self._read_only)


class Disk:
    """The file system of a folder."""

    def __init__(self, folder: Path, library: Path | None) -> None:
        folder.mkdir(mode=0o700)
        self.folder = folder
        self.problem = ""
        """What is wrong with it now."""
        self.breakdowns = 0
        """How often it was broken and mended: odd while it is broken."""
        self._last_problem = ""
        self._can_pretend = library is not None
        self._is_mounted = _mount(
            "-t", "tmpfs", "-o", f"size={_ROOMY},mode=700", "tmpfs", str(folder)
        )

    @property
    def how(self) -> str:
        """How faults of the disk, and of the clock, are brought about here."""
        full = (
            "a small tmpfs"
            if self._is_mounted
            else "a limit on the size of files (no right to mount)"
        )
        read_only = (
            "EROFS from a preloaded library, and a remount between two processes"
            if self._has_device
            else "a limit on the size of files"
        )
        clock = "a preloaded library" if self._can_pretend else "NOT TESTED (no C compiler)"
        return f"full disk: {full}; read-only disk: {read_only}; clock: {clock}"

    @property
    def _has_device(self) -> bool:
        return self._is_mounted and self._can_pretend

    def fill(self, process: int) -> None:
        """Leave no room, not even for a page. Called again, take away what has become free."""
        self._break("full")
        if not self._is_mounted:
            _limit(process, 0)
            return
        for _ in range(
            _TIGHTEN_TRIES
        ):  # what is written meanwhile makes it larger than what was asked for
            state = os.statvfs(self.folder)
            used = (state.f_blocks - state.f_bfree) * state.f_frsize
            if _mount("-o", f"remount,size={max(used, _PAGE)}", str(self.folder)):
                return
        raise AssertionError(f"{self.folder} does not stay as it is")

    def make_read_only(self, process: int, pretence: Pretence) -> None:
        self._break("read-only")
        if self._has_device:
            pretence.read_only = True
        else:
            _limit(process, 0)

    def turn_read_only(self) -> None:
        """The same for the next process, while none has files open: then it can really be done."""
        if self._is_mounted:
            assert _mount("-o", "remount,ro", str(self.folder))

    def mend(self, process: int | None, pretence: Pretence) -> None:
        """Everything can be written again. `process` is the one that runs."""
        pretence.read_only = False
        if self._is_mounted:
            assert _mount("-o", f"remount,rw,size={_ROOMY}", str(self.folder))
        if process is not None and not self._has_device:
            _limit(process, resource.RLIM_INFINITY)
        self.breakdowns += bool(self.problem)
        self.problem = ""

    def problem_since(self, breakdowns: int) -> str:
        """What was wrong with it at any moment since there were so many breakdowns; empty if it was well all the time."""
        return self._last_problem if breakdowns % 2 or breakdowns != self.breakdowns else ""

    def _break(self, problem: str) -> None:
        if not self.problem:
            self.breakdowns += 1
        self.problem = self._last_problem = problem

    def end(self) -> None:
        if self._is_mounted:
            subprocess.run(["umount", str(self.folder)], check=True)
            self._is_mounted = False


def _mount(*words: str) -> bool:
    if shutil.which("mount") is None:
        return False
    return subprocess.run(["mount", *words], check=False, capture_output=True).returncode == 0


def _limit(process: int, size: int) -> None:
    """Let no file of a process grow beyond a size."""
    _, most = resource.prlimit(process, resource.RLIMIT_FSIZE)
    wanted = most if size == resource.RLIM_INFINITY else size
    resource.prlimit(process, resource.RLIMIT_FSIZE, (wanted, most))
