"""The state of an instance, for other processes: in the folder's record, and at `/readyz`.

The API answers long before a large cluster is complete. Ready means that the requested nodes, slices and classes exist, that the
scheduler has seen them, and that a real node beside it runs with its drivers. Who schedules may change at any time afterwards.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from drayman.apiserver.instance.control_plane import SCHEDULER
from drayman.apiserver.instance.folder import Folder, FolderError, Record, reason
from drayman.node.simulated import Report

_log: Final = logging.getLogger(__name__)

CHECK: Final = "control-plane"
SCHEDULER_CHECK: Final = "scheduler"
"""The names of the checks at `/readyz`."""
_BETWEEN_S: Final = 0.5
"""Time between two progress records: each is a file that is synced to disk."""


_LEADERS: Final = {SCHEDULER: "the embedded one", "": "none"}


class Start:
    """A start in progress, and later the instance. Raises FolderError if its record cannot be written."""

    def __init__(self, folder: Folder, record: Record, report: Report | None = None) -> None:
        """Says at once that the API answers; `record` is not ready."""
        self._folder = folder
        self._record = record
        self._report = report
        self._leaders: Mapping[str, str] = {}
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
    def leaders(self) -> Mapping[str, str]:
        """Who schedules the pods of each `schedulerName` that is served here; empty for none."""
        return self._leaders

    def scheduled_by(self, leaders: Mapping[str, str]) -> None:
        """Record who schedules the pods of each `schedulerName`."""
        self._leaders = leaders
        self._record = replace(self._record, scheduler=_in_words(leaders))
        if not self._record.ready:
            return  # soon announced with the rest
        try:
            self._announce()
        except FolderError as error:
            # Scheduling must not end because that cannot be announced.
            _log.warning("%s", error)

    def scheduler_problem(self) -> str | None:
        """What `/readyz` reports if no scheduler is at work for some pods, though one is to run here."""
        unserved = sorted(name for name, leader in self._leaders.items() if not leader)
        return f"no scheduler holds the lease of {', '.join(unserved)}" if unserved else None

    def problem(self) -> str | None:
        """What `/readyz` reports about it; None once it is complete."""
        return None if self._record.ready else self._record.progress


def _in_words(leaders: Mapping[str, str]) -> str:
    """As in `the embedded one`, or, where it differs, `default-scheduler: the embedded one; drayman: host_1`."""
    said = {name: _LEADERS.get(leader, leader) for name, leader in leaders.items()}
    different = set(said.values())
    if len(different) > 1:
        return "; ".join(f"{name}: {leader}" for name, leader in sorted(said.items()))
    leader = next(iter(different), "")
    return leader if leader in _LEADERS.values() else f"{leader} (the embedded one stands by)"
