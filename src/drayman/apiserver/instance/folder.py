"""The directory of an instance: its files, and the process that runs it now.

store.db            every object
drayman.log         what its components do
pki/                certificates
admin.token         the administrator's bearer token
accounts.key        signs the tokens of service accounts
kubeconfig          for kubectl; readable by the owner only, like everything secret here
instance.json       while it runs: process id, address, when it was started
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from drayman.apiserver.security.private_files import write_private
from drayman.cluster.embedded.errors import StoreError
from drayman.cluster.embedded.locking import StoreLock

PRIVATE: Final = 0o700


class FolderError(Exception):
    """The directory cannot be used; the message is one sentence that names the path."""


@dataclass(frozen=True, slots=True)
class Record:
    """A running instance, as it describes itself to other processes."""

    pid: int
    url: str
    kubeconfig: str
    started: str
    durable: bool
    ready: bool = False
    """Whether the requested cluster is ready, and not just the API."""
    percent: int = 0
    """How much of the simulated hardware exists."""
    found: str = ""
    """The nodes and pods that an earlier run left in the directory, in words; empty if there were none."""
    scheduler_names: str = ""
    """The `schedulerName`s of the pods that it schedules, separated by commas."""
    scheduler: str = ""
    """Who schedules those pods now, in words; empty if that is left to others."""
    prices: str = ""
    """The table of prices that its scheduler has, as text; empty if it has none."""

    @property
    def progress(self) -> str:
        """The progress of the start, in words."""
        return f"{self.percent}% of the simulated hardware is there"


@dataclass(frozen=True, slots=True)
class Folder:
    """The directory of one instance."""

    path: Path

    @property
    def store(self) -> Path:
        return self.path / "store.db"

    @property
    def certificates(self) -> Path:
        return self.path / "pki"

    @property
    def kubeconfig(self) -> Path:
        return self.path / "kubeconfig"

    @property
    def log(self) -> Path:
        return self.path / "drayman.log"

    @property
    def _record(self) -> Path:
        return self.path / "instance.json"

    def prepare(self) -> None:
        """Make the directory, for its owner only. Raises FolderError."""
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=PRIVATE)
        except FileExistsError as error:
            raise FolderError(f"{self.path} is not a directory") from error
        except OSError as error:
            raise FolderError(f"cannot make {self.path}: {reason(error)}") from error
        if not os.access(self.path, os.W_OK | os.X_OK):
            is_read_only = os.statvfs(self.path).f_flag & os.ST_RDONLY
            why = "read-only file system" if is_read_only else "permission denied"
            raise FolderError(f"cannot write in {self.path}: {why}")

    @property
    def token(self) -> Path:
        return self.path / "admin.token"

    @property
    def signing_key(self) -> Path:
        return self.path / "accounts.key"

    def announce(self, record: Record) -> None:
        write_private(self._record, json.dumps(asdict(record), indent=2).encode() + b"\n")

    def retract(self) -> None:
        self._record.unlink(missing_ok=True)

    def running(self) -> Record | None:
        """The instance that runs on this directory; None if there is none, however the last one ended."""
        try:
            record = Record(**json.loads(self._record.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None
        # Another process may have the id of one that was killed; the lock is released with its holder.
        if not is_alive(record.pid) or (record.durable and not self._is_locked()):
            return None
        return record

    def _is_locked(self) -> bool:
        try:
            StoreLock(self.store).release()
        except (StoreError, OSError):
            return True  # where one may not or cannot look, the record counts
        return False


def reason(error: OSError) -> str:
    """The system's error message, for use within a sentence."""
    return (error.strerror or str(error)).lower()


def is_alive(pid: int) -> bool:
    """Whether a process with this id exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def default_folder() -> Path:
    """The default directory of an instance: DRAYMAN_DATA_DIR, or below the user's state directory."""
    if named := os.environ.get("DRAYMAN_DATA_DIR"):
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "drayman"
