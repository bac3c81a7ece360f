"""The log of an instance: a file of bounded size in its directory, and what matters on standard error."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
from logging.handlers import QueueHandler, QueueListener
from pathlib import Path
from queue import Queue
from typing import Final

from drayman.cli.cluster.log_lines import LineFormatter
from drayman.cli.output import date_log_lines, say

MOST_BYTES: Final = 16 * 1024 * 1024
MOST_WAITING: Final = 10_000
"""So many lines wait for the disk at most; further ones are lost."""
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


class _Listener(QueueListener):
    def enqueue_sentinel(self) -> None:
        """Put the end behind all lines; it waits until the queue has a place for it."""
        self.queue.put(self._sentinel)  # type: ignore[attr-defined]


class InBackground(QueueHandler):
    """Passes records to a handler in a thread, so that a slow disk, or moving a full file, keeps no request waiting."""

    def __init__(self, handler: logging.Handler) -> None:
        waiting: Queue[logging.LogRecord] = Queue(MOST_WAITING)
        super().__init__(waiting)
        self._listener = _Listener(waiting, handler)
        self._listener.start()
        atexit.register(self.close)

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """The text is made at once, for what it is about may change; the traceback, where there is one, stays."""
        record.msg, record.args = record.getMessage(), None
        return record

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """A record for which there is no room is lost; the handler itself reports why the disk does not take them."""

    def close(self) -> None:
        """Returns when everything so far is written."""
        listener = self._listener
        if listener._thread is not None:
            listener.stop()
        super().close()


def log_to(path: Path | None) -> None:
    """Log to a file, if there is one, what is worth knowing, and to standard error what needs attention. Raises OSError."""
    date_log_lines()
    if path is None:
        return
    handler = BoundedFileHandler(path)
    handler.setFormatter(LineFormatter())
    logger = logging.getLogger(ROOT)
    logger.setLevel(logging.INFO)
    logger.addHandler(InBackground(handler))
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
