"""Which unit is next to get a reservation, while looking for one has to rest.

Each unit that is refused meanwhile is to be tried again, but not all of them at the end of each rest: then most would be tried again in
vain each time. So only the first of them is, and the next one after it.
"""

from __future__ import annotations

from drayman.scheduler.queue import Queue
from drayman.scheduler.unit import QueuedUnit


class ReservationLine:
    """The units for which a reservation is to be looked for, when there is time."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self._waiting: dict[str, QueuedUnit] = {}  # by key
        self._first: QueuedUnit | None = None
        self.rests_until = 0.0
        """Nothing is looked for before then."""

    def rest(self, until: float) -> None:
        self.rests_until = until
        self._choose()

    def wait(self, entry: QueuedUnit) -> None:
        """A unit is to be tried again when it is the first."""
        self._waiting[entry.key] = entry
        if self._first is None or entry.rank <= self._first.rank:
            self._have_tried(entry)

    def take(self, key: str) -> None:
        """A unit is being looked at. The next one has to wait for the next rest to end."""
        self._waiting.pop(key, None)
        if self._first is not None and self._first.key == key:
            self._first = None

    def leave(self, key: str) -> None:
        """Nothing is to be looked for."""
        self._waiting.pop(key, None)
        if self._first is not None and self._first.key == key:
            self._choose()

    def _choose(self) -> None:
        self._first = None
        first = min(self._waiting.values(), key=lambda each: each.rank, default=None)
        if first is not None:
            self._have_tried(first)

    def _have_tried(self, entry: QueuedUnit) -> None:
        self._first = entry
        self._queue.wake_at(entry, self.rests_until)
