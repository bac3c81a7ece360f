"""The progress of starting an instance, for processes that wait for it: in the folder's record, and at `/readyz`.

The API answers long before a large cluster is complete. Ready means that the requested nodes, slices and classes exist, and that the
scheduler has seen them.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

from drayman.apiserver.instance.folder import Folder, FolderError, Record, reason
from drayman.node import Report

CHECK: Final = "control-plane"
"""The name of the check at `/readyz`."""
_BETWEEN_S: Final = 0.5
"""Time between two progress records: each is a file that is synced to disk."""


class Start:
    """A start in progress. Raises FolderError if its record cannot be written."""

    def __init__(self, folder: Folder, record: Record, report: Report | None = None) -> None:
        """Says at once that the API answers; `record` is not ready."""
        self._folder = folder
        self._record = record
        self._report = report
        self._announce()

    def advance(self, done: int, total: int) -> None:
        """Record how much of the simulated hardware exists."""
        if self._report is not None:
            self._report(done, total)
        percent = 100 * done // total
        if percent == self._record.percent:
            return
        self._record = replace(self._record, percent=percent)
        if time.monotonic() - self._announced >= _BETWEEN_S:
            self._announce()

    def finish(self) -> None:
        """Record that everything is ready."""
        self._record = replace(self._record, ready=True, percent=100)
        self._announce()

    def _announce(self) -> None:
        try:
            self._folder.announce(self._record)
        except OSError as error:
            raise FolderError(f"cannot write in {self._folder.path}: {reason(error)}") from error
        self._announced = time.monotonic()

    def problem(self) -> str | None:
        """What `/readyz` reports about it; None once it is complete."""
        return None if self._record.ready else self._record.progress
