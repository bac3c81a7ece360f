"""The log of an instance: a file of bounded size in its directory, and what matters on standard error."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from pathlib import Path
from typing import Final

from drayman.cli.cluster.log_lines import LineFormatter
from drayman.cli.output import date_log_lines, say

MOST_BYTES: Final = 16 * 1024 * 1024
ROOT: Final = "drayman"
FOR_ITS_OWNER: Final = 0o600
"""What is logged names objects, and who asked for them."""


class BoundedFileHandler(logging.FileHandler):
    """Appends to a file. When it is full, its content moves to a second file, which is overwritten.

    The file itself stays: standard error of a process in the background is appended to it, too.
    """

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        """Raises OSError."""
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, FOR_ITS_OWNER))
        super().__init__(path, encoding="utf-8")
        self._most_bytes = most_bytes
        self._has_failed = self._was_failing = False

    def emit(self, record: logging.LogRecord) -> None:
        self._has_failed = False
        try:
            if os.path.getsize(self.baseFilename) > self._most_bytes:
                shutil.copy(self.baseFilename, f"{self.baseFilename}.1")
                os.truncate(self.baseFilename, 0)
        except OSError:
            self.handleError(record)
        super().emit(record)
        self._was_failing = self._has_failed

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Said once until lines can be written again: a full disk must not fill the terminal, too."""
        if not (self._has_failed or self._was_failing):
            error = sys.exc_info()[1]
            say(f"{self.baseFilename} cannot be written: {error}")
        self._has_failed = True


def log_to(path: Path | None) -> None:
    """Log to a file, if there is one, what is worth knowing, and to standard error what needs attention. Raises OSError."""
    date_log_lines()
    if path is None:
        return
    handler = BoundedFileHandler(path)
    handler.setFormatter(LineFormatter())
    logger = logging.getLogger(ROOT)
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    # With a handler of its own, the logger no longer uses the last resort. In the background both would write to the same file.
    if logging.lastResort is not None and not _is_stderr(path):
        logger.addHandler(logging.lastResort)


def _is_stderr(path: Path) -> bool:
    if sys.stderr is None:
        return False
    try:
        return os.path.samestat(os.fstat(sys.stderr.fileno()), os.stat(path))
    except (OSError, ValueError):  # not a real file, as in tests
        return False
