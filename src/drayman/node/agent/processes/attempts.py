"""Containers as processes: each start of a container is an attempt, with a folder and a shim (`shim`) of its own.

A folder is made before its shim is started, and tells whoever finds it later what has become of the attempt. That does not depend on pids:
the shim holds a lock as long as it lives. An attempt whose lock is free and that has no exit status is settled under the lock, and a shim
that comes late finds that and starts nothing.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from drayman.node.agent.folders import make_private
from drayman.node.agent.processes import shim
from drayman.node.agent.processes.log_files import now
from drayman.node.cgroups import groups as cgroups
from drayman.node.cgroups.layout import Group
from drayman.node.pinned import pinned
from drayman.plugins.files import write_atomically

PROGRAM: Final = (sys.executable, "-I", "-S", str(Path(shim.__file__).absolute()))
KILLED: Final = 128 + signal.SIGKILL
_KEPT: Final = 2
"""Attempts of one container whose logs are kept: the current one and the one before."""
_POLL_S: Final = 0.01
_LOOK_AGAIN_S: Final = 1.0
_CREATE: Final = os.O_WRONLY | os.O_CREAT
_log: Final = logging.getLogger(__name__)


class DeviceFile(Struct, frozen=True):
    """A device that a container sees."""

    path: str
    host: str
    type: str = "c"
    major: int = 0
    minor: int = 0
    mode: int = 0o666
    uid: int | None = None
    gid: int | None = None
    """Whose it is in the container; with neither it is as on the host."""


class Bind(Struct, frozen=True, array_like=True):
    """Something of the host that a container sees."""

    source: str
    target: str
    read_only: bool = False
    sub_path: str = ""
    """What of the source is meant. It is looked for when the container starts, below the source only."""


class Launch(Struct, frozen=True, kw_only=True):
    """What a shim is told to start."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str = "/"
    own_root: bool = False
    """Whether the process gets a root with binds and devices, in a mount namespace."""
    image_root: str = ""
    """The directory that it sees as its root; empty for the host's."""
    is_writable: bool = True
    """Whether it may change that, which is kept in the folder of the attempt."""
    hidden: tuple[str, ...] = ()
    """Real paths of the host that it does not see."""
    is_sealed: bool = False
    """Whether it gives up what could reveal what is hidden."""
    binds: tuple[Bind, ...] = ()
    devices: tuple[DeviceFile, ...] = ()
    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()
    no_new_privileges: bool = False
    """Whether programs that belong to somebody else are run without that one's rights."""
    cgroups: tuple[Group, ...] = ()
    """The control groups of the process, and those above them, in the order in which they are made."""
    oom_file: str = ""
    """Counts how often the kernel killed for memory; empty where nobody counts."""
    cpus: tuple[int, ...] = ()
    """The CPUs that it is asked to stay on where no control group keeps it there."""
    stdin: bool = False
    """Whether it has an input, for those who attach to it."""
    stdin_once: bool = False
    """Whether the input ends with the first who does."""
    tty: bool = False


class Ended(Struct, frozen=True):
    """How an attempt ended."""

    code: int
    signal: int = 0
    began: str = ""
    """Empty if the container was never started."""
    ended: str = ""
    failure: str = ""
    """Why it could not be started, or was lost."""
    message: str = ""
    """What the container left to say; not part of what its shim writes."""
    out_of_memory: bool = False
    """Whether the kernel killed something in it for memory."""
    is_lost: bool = False
    """Whether its shim was gone before it was started, as an agent has found that did not make it. Nobody has been told of it."""

    @property
    def is_start_error(self) -> bool:
        """Whether its program could not be run."""
        return bool(self.failure) and self.signal == 0


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
        """What it wrote last; `logs` also reads what came before."""
        return self.folder / "log"

    @property
    def message_file(self) -> Path:
        """What the container leaves to say, where it has a root of its own."""
        return self.folder / "termination-log"

    def start(self, launch: Launch, message_path: str = "") -> None:
        """`message_path`: where the container expects a file for its last words. Raises OSError, and leaves nothing behind then."""
        make_private(self.folder.parent)
        self.folder.mkdir(mode=0o700)
        try:
            (self.folder / "root").mkdir()
            if message_path and launch.own_root:
                self.message_file.touch()
                self.message_file.chmod(0o666)  # whoever the container runs as
                bind = Bind(str(self.message_file), message_path)
                launch = msgspec.structs.replace(launch, binds=(*launch.binds, bind))
            # Before the control groups, so that whoever finds the folder knows what to remove.
            write_atomically(self.folder / "start.json", msgspec.json.encode(launch), 0o600)
            cgroups.make(launch.cgroups)
            self._shim = self._spawn()
        except OSError:
            cgroups.remove(launch.cgroups)
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def _spawn(self) -> int:
        return os.posix_spawn(
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

    def is_program(self) -> bool:
        """Whether its process has become its program. Not known of those that earlier versions have started."""
        return (self.folder / "running").exists()

    async def wait(self) -> Ended:
        """Returns when it has ended, whoever started it. What keeps that from being seen passes, such as a lack of descriptors."""
        is_told = False
        while True:
            try:
                return await self._wait()
            except FileNotFoundError:  # without its folder nobody can tell
                why = f"{self.folder} is gone"
                return Ended(KILLED, signal.SIGKILL, "", now(), why)
            except OSError as error:
                if not is_told:
                    _log.warning("%s cannot be followed for a moment: %s", self.folder, error)
                is_told = True
                await asyncio.sleep(_LOOK_AGAIN_S)

    async def _wait(self) -> Ended:
        """Raises OSError."""
        if self._shim is not None:
            await _ended(self._shim)
            os.waitpid(self._shim, 0)
            self._shim = None
        # In a thread: what a container has left in its control groups may take a moment to end.
        while (settled := await asyncio.to_thread(self.settle)) is None:
            # Who holds the lock is about to say who it is, or has ended and is about to let it go.
            await asyncio.sleep(_POLL_S)
            with suppress(FileNotFoundError, ValueError):
                await _ended(int((self.folder / "shim").read_text()))
        return settled

    def settle(self, *, is_inherited: bool = False) -> Ended | None:
        """How it has ended; None if it runs. Not to be asked by the one who has just started it: the shim may not have come to the lock.

        `is_inherited`: whoever made it is gone, and may have gone before its shim was there.
        """
        with _lock(self.folder / "lock") as is_free:
            if not is_free:
                return None
            path = self.folder / "exit"
            if path.exists():
                self.remove_cgroups()
                return msgspec.json.decode(path.read_bytes(), type=Ended)
            self._kill_orphans()
            found = self._child()
            why = self._errors() or "the process that looked after the container was killed"
            began = found[2] if found else ""
            is_lost = is_inherited and not began
            ended = Ended(KILLED, signal.SIGKILL, began, now(), why, is_lost=is_lost)
            try:
                write_atomically(path, msgspec.json.encode(ended))
            except OSError as error:
                # A pod must be able to end on a full disk, for its files may be what fills it. Whoever asks again finds out anew.
                _log.warning("%s: cannot be written: %s", path, error.strerror)
            self.remove_cgroups()
            return ended

    def remove_cgroups(self) -> bool:
        """Remove the control groups of an attempt that has ended, with everything that is still in them. Whether that is done."""
        is_done = cgroups.remove(self._cgroups())
        if not is_done:
            _log.warning("something in the control groups of %s does not end", self.folder)
        return is_done

    def _cgroups(self) -> tuple[Group, ...]:
        try:
            return self.launch().cgroups
        except FileNotFoundError:
            return ()  # given up before anything was made

    def _errors(self) -> str:
        with suppress(OSError):
            lines = (self.folder / "shim-errors").read_text(errors="replace").strip().splitlines()
            return lines[-1] if lines else ""
        return ""

    def signal(self, number: int) -> None:
        """Send a signal to its first process, as container runtimes do. One that has ended, or has not begun, gets none.

        SIGKILL goes to everything: the whole process group, and what has left that but not its control groups, which nothing can.
        """
        is_end = number == signal.SIGKILL
        if is_end:
            cgroups.kill(self._cgroups())
        found = self._child()
        if found is None:
            return
        pid, started, _ = found
        with suppress(OSError), pinned(pid) as process:
            # Only now: the descriptor stands for one process, and its pid may be used again.
            if shim.started_at(pid) == started:
                process.send(number, to_group=is_end)

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


class Isolation(Struct, frozen=True):
    """What the machine permits to keep containers apart."""

    mounts: bool
    """Whether they can have mounts of their own."""
    hides: bool
    """Whether something can be hidden from them that they cannot bring to light again."""

    @classmethod
    def here(cls) -> Isolation:
        done = subprocess.run((*PROGRAM, "--check"), capture_output=True, text=True, check=False)
        return cls(done.returncode == 0, done.returncode == 0 and done.stdout.strip() == "hides")

    @property
    def exposed(self) -> str:
        """What containers can see that they should not, in words, and why; empty if nothing."""
        if self.hides:
            return ""
        if not self.mounts:
            why = "mount namespaces are not permitted here"
        elif os.geteuid() == 0:
            why = "the kernel has no Landlock of version 2, or its root is an initial file system"
        else:
            why = "the root of this machine is an initial file system"
        return (
            f"containers can read the credentials of the cluster and the files of other pods: {why}"
        )


def may_mount() -> bool:
    """Whether containers can have mounts of their own here."""
    return Isolation.here().mounts


def may_overlay(folder: Path) -> bool:
    """Whether changes to the root of an image can be kept in folders below this one."""
    with tempfile.TemporaryDirectory(dir=folder) as trial:
        command = (*PROGRAM, "--check-overlay", trial)
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


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
