"""The state of an instance, for other processes: in the folder's record, and at `/readyz`.

The API answers long before a large cluster is complete. Ready means that the requested nodes, slices and classes exist, and that the
scheduler has seen them. Who schedules may change at any time afterwards.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Final

from drayman.apiserver.instance.control_plane import SCHEDULER
from drayman.apiserver.instance.folder import Folder, FolderError, Record, reason
from drayman.node import Report

_log: Final = logging.getLogger(__name__)

CHECK: Final = "control-plane"
SCHEDULER_CHECK: Final = "scheduler"
"""The names of the checks at `/readyz`."""
_BETWEEN_S: Final = 0.5
"""Time between two progress records: each is a file that is synced to disk."""


class Start:
    """A start in progress, and later the instance. Raises FolderError if its record cannot be written."""

    def __init__(self, folder: Folder, record: Record, report: Report | None = None) -> None:
        """Says at once that the API answers; `record` is not ready."""
        self._folder = folder
        self._record = record
        self._report = report
        self._leader: str | None = None
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

    @property
    def scheduler(self) -> str:
        """Who schedules the pods that are not left to others, in words."""
        return self._record.scheduler

    @property
    def is_leading(self) -> bool:
        """Whether the scheduler of this process is at work."""
        return self._leader == SCHEDULER

    def scheduled_by(self, leader: str) -> None:
        """Record who holds the leases of the scheduler; empty for none."""
        self._leader = leader
        if self.is_leading:
            said = "the embedded one"
        else:
            said = f"{leader} (the embedded one stands by)" if leader else "none"
        self._record = replace(self._record, scheduler=said)
        if not self._record.ready:
            return  # soon announced with the rest
        try:
            self._announce()
        except FolderError as error:
            # Scheduling must not end because that cannot be announced.
            _log.warning("%s", error)

    def scheduler_problem(self) -> str | None:
        """What `/readyz` reports if no scheduler is at work, though one is to run here."""
        return "no scheduler holds the lease" if self._leader == "" else None

    def problem(self) -> str | None:
        """What `/readyz` reports about it; None once it is complete."""
        return None if self._record.ready else self._record.progress
