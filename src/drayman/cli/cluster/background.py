"""A cluster that runs in the background: started, and waited for until it answers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Final

from drayman.apiserver.instance.folder import Folder, Record
from drayman.cli.cluster.log_file import FOR_ITS_OWNER
from drayman.cli.errors import UserError, reason
from drayman.cli.progress import gauged

_PATIENCE_S: Final = 60.0
"""How long a background process may make no progress while starting."""
LABEL: Final = "starting"
_POLL_S: Final = 0.05


class LogSaysMoreError(UserError):
    """It did not start, and the log in the data directory may say why."""


def started_in_background(folder: Folder, arguments: list[str]) -> Record:
    """Run drayman with other arguments in a session of its own, and wait until it is ready."""
    try:
        log = open(folder.log, "ab", opener=lambda name, flags: os.open(name, flags, FOR_ITS_OWNER))  # noqa: SIM115 - closed below
    except OSError as error:
        raise UserError(f"{folder.log}: {reason(error)}") from error
    with log:
        child = subprocess.Popen(
            [sys.executable, "-m", "drayman", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # what it says there is said here, and the log has lines of components
            stderr=log,
            start_new_session=True,
        )
    try:
        return _wait_ready(folder, child)
    except (KeyboardInterrupt, UserError):
        # Not when the terminal is closed: the child is to outlive it.
        child.terminate()
        raise


def _wait_ready(folder: Folder, child: subprocess.Popen[bytes]) -> Record:
    """The record of the child once it is ready. Raises UserError if it ends before, or makes no progress."""
    seen: Record | None = None
    deadline = time.monotonic() + _PATIENCE_S
    with gauged(LABEL) as gauge:
        while time.monotonic() < deadline:
            record = folder.running()
            if record is not None and record.pid == child.pid:
                gauge.update(record.percent, 100)
                if record.ready:
                    return record
                if record != seen:
                    seen, deadline = record, time.monotonic() + _PATIENCE_S
            if child.poll() is not None:
                kind = UserError if child.returncode == UserError.exit_code else LogSaysMoreError
                raise kind(f"it did not start: {_why_it_ended(folder, child)}")
            time.sleep(_POLL_S)
    so_far = "" if seen is None else f", when {seen.progress}"
    raise LogSaysMoreError(
        f"it has made no progress for {_PATIENCE_S:.0f} s{so_far}; see {folder.log}"
    )


def _why_it_ended(folder: Folder, child: subprocess.Popen[bytes]) -> str:
    lines = folder.log.read_text(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("error: ") if lines else f"exit status {child.returncode}"
