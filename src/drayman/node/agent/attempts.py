"""Containers as processes: each start of a container is an attempt, with a folder and a shim (`shim`) of its own.

A folder is made before its shim is started, and tells whoever finds it later what has become of the attempt. That does not depend on pids:
the shim holds a lock as long as it lives. An attempt whose lock is free and that has no exit status is settled under the lock, and a shim
that comes late finds that and starts nothing.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from drayman.node.agent import shim
from drayman.plugins.files import write_atomically

PROGRAM: Final = (sys.executable, "-I", "-S", str(Path(shim.__file__).absolute()))
KILLED: Final = 128 + signal.SIGKILL
_KEPT: Final = 2
"""Attempts of one container whose logs are kept: the current one and the one before."""
_POLL_S: Final = 0.01
_CREATE: Final = os.O_WRONLY | os.O_CREAT


class DeviceFile(Struct, frozen=True):
    """A device that a container sees."""

    path: str
    host: str
    type: str = "c"
    major: int = 0
    minor: int = 0
    mode: int = 0o666


class Launch(Struct, frozen=True, kw_only=True):
    """What a shim is told to start."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str = "/"
    own_root: bool = False
    """Whether the process gets a root with binds and devices, in a mount namespace."""
    binds: tuple[tuple[str, str, bool], ...] = ()
    """What is shown where, and whether it is read-only."""
    devices: tuple[DeviceFile, ...] = ()
    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()


class Ended(Struct, frozen=True):
    """How an attempt ended."""

    code: int
    signal: int = 0
    began: str = ""
    """Empty if the container was never started."""
    ended: str = ""
    failure: str = ""
    """Why it could not be started, or was lost."""


class Attempt:
    """One start of a container."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._shim: int | None = None
        """The pid of the shim, if it is a child of this process."""

    @property
    def number(self) -> int:
        return int(self.folder.name)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def start(self, launch: Launch) -> None:
        """Raises OSError."""
        self.folder.mkdir(parents=True)
        (self.folder / "root").mkdir()
        write_atomically(self.folder / "start.json", msgspec.json.encode(launch), 0o600)
        self._shim = os.posix_spawn(
            PROGRAM[0],
            (*PROGRAM, str(self.folder)),
            os.environ,
            file_actions=(
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, self.folder / "shim-errors", _CREATE, 0o600),
            ),
            setsid=True,
        )

    def launch(self) -> Launch:
        """What it was started with. Raises OSError."""
        return msgspec.json.decode((self.folder / "start.json").read_bytes(), type=Launch)

    def began(self) -> str:
        """When its process was started; empty if that has not happened yet."""
        found = self._child()
        return "" if found is None else found[2]

    async def wait(self) -> Ended:
        """Returns when it has ended, whoever started it."""
        if self._shim is not None:
            await _ended(self._shim)
            os.waitpid(self._shim, 0)
            self._shim = None
        while True:
            settled = self.settle()
            if settled is not None:
                return settled
            with suppress(OSError, ValueError):
                await _ended(int((self.folder / "shim").read_text()))
                continue
            await asyncio.sleep(_POLL_S)  # it has the lock, and is about to say who it is

    def settle(self) -> Ended | None:
        """How it has ended; None if it runs. Not to be asked by the one who has just started it: the shim may not have come to the lock."""
        with _lock(self.folder / "lock") as is_free:
            if not is_free:
                return None
            path = self.folder / "exit"
            if path.exists():
                return msgspec.json.decode(path.read_bytes(), type=Ended)
            self._kill_orphans()
            found = self._child()
            why = self._errors() or "the process that looked after the container was killed"
            ended = Ended(KILLED, signal.SIGKILL, found[2] if found else "", shim.now(), why)
            write_atomically(path, msgspec.json.encode(ended))
            return ended

    def _errors(self) -> str:
        with suppress(OSError):
            lines = (self.folder / "shim-errors").read_text(errors="replace").strip().splitlines()
            return lines[-1] if lines else ""
        return ""

    def signal(self, number: int) -> None:
        """Send a signal to every process of its group. One that has ended, or has not begun, gets none."""
        found = self._child()
        if found is None:
            return
        pid, started, _ = found
        with suppress(OSError):
            if shim.started_at(pid) == started:
                os.killpg(pid, number)

    @property
    def pid(self) -> int | None:
        """Of its first process, once there is one."""
        found = self._child()
        return None if found is None else found[0]

    def _child(self) -> tuple[int, int, str] | None:
        try:
            pid, started, began = (self.folder / "child").read_text().split()
        except FileNotFoundError:
            return None
        return int(pid), int(started), began

    def _kill_orphans(self) -> None:
        """A shim that was killed leaves its container behind."""
        self.signal(signal.SIGKILL)


def may_mount() -> bool:
    """Whether containers can have mounts of their own here."""
    return subprocess.run((*PROGRAM, "--check"), capture_output=True, check=False).returncode == 0


def attempts_of(folder: Path) -> list[Attempt]:
    """The attempts of a container that are still known, in order."""
    if not folder.is_dir():
        return []
    numbers = sorted(int(each.name) for each in folder.iterdir() if each.name.isdecimal())
    return [Attempt(folder / str(number)) for number in numbers]


def forget_old(folder: Path) -> None:
    """Remove the attempts of a container whose logs nobody can ask for."""
    for attempt in attempts_of(folder)[:-_KEPT]:
        shutil.rmtree(attempt.folder, ignore_errors=True)


@contextmanager
def _lock(path: Path) -> Iterator[bool]:
    """Whether the lock was to be had."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


async def _ended(pid: int) -> None:
    """Returns when a process has ended, be it ours or not."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    loop.add_reader(descriptor, done.set)
    try:
        await done.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
