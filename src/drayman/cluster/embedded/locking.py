"""One process per store: an exclusive lock on a file beside it.

The lock belongs to the process and ends with it, even after `kill -9`, so there are no stale locks to clear. The file names the holder and
stays in place: removing it would let two processes lock two files of the same name.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from drayman.cluster.embedded.errors import StoreError


class StoreLock:
    """The right to use a store, held until `release`."""

    def __init__(self, path: Path) -> None:
        """Take the lock of the store at `path`. Raises StoreError naming the process that has it."""
        file = os.open(_lock_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(file, 0)
            os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.pread(file, 32, 0).decode("ascii", "replace").strip()
            os.close(file)
            raise StoreError(f"{path} is in use by {_process(holder)}") from None
        except BaseException:
            os.close(file)
            raise
        self._file = file

    def release(self) -> None:
        os.close(self._file)


def _lock_path(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _process(holder: str) -> str:
    # The holder writes its process id just after it gets the lock, so for a moment there is none.
    return f"process {holder}" if holder else "another process"
