"""Making groups and removing them, with everything that is in them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from drayman.node.cgroups.layout import Group
from drayman.node.pinned import pinned

_TRIES: Final = 100
_PAUSE_S: Final = 0.001


def make(groups: Iterable[Group]) -> None:
    """Raises OSError, which names the file."""
    for group in groups:
        Path(group.path).mkdir(parents=True, exist_ok=True)
        for write in group.writes:
            path = Path(group.path, write.file)
            if not write.is_optional or path.exists():
                _write(path, write.value)


def _write(path: Path, value: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)  # not to be made: the files of a group are the kernel's
    try:
        os.write(descriptor, value.encode())
    except OSError as error:
        # The kernel refuses values when they are written, where the name of the file is not known any more.
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        os.close(descriptor)


def kill(groups: Iterable[Group]) -> None:
    """Kill everything that is in groups, whatever it has left."""
    for group in groups:
        if group.holds:
            _kill(Path(group.path))


def _kill(folder: Path) -> None:
    try:
        _write(folder / "cgroup.kill", "1")
        return
    except FileNotFoundError:
        pass  # version 1, an old kernel, or no group
    for pid in _inside(folder):
        # What cannot be killed, `remove` reports.
        with suppress(ProcessLookupError, PermissionError), pinned(pid) as process:
            if pid in _inside(folder):
                process.send(signal.SIGKILL)


def remove(groups: Sequence[Group]) -> bool:
    """Kill what is in groups and remove them. False if something does not end: it is to be tried again."""
    for _ in range(_TRIES):
        kill(groups)
        if not any(_is_there(Path(group.path)) for group in groups if group.holds):
            break
        time.sleep(_PAUSE_S)  # a process that was killed takes a moment to be gone
    else:
        return False
    for group in reversed(groups):
        if not group.holds:
            _is_there(Path(group.path))
    return True


def _is_there(folder: Path) -> bool:
    """Whether a group is there after an attempt to remove it."""
    try:
        folder.rmdir()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _inside(folder: Path) -> list[int]:
    try:
        return [int(word) for word in (folder / "cgroup.procs").read_text().split()]
    except FileNotFoundError:
        return []
