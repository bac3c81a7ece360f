"""Group commit: one thread makes transactions durable, as many at a time as are waiting.

Waiting for the disk takes far longer than writing to it, and takes as long for one transaction as for a hundred. While a commit waits,
transactions queue; the next commit takes them all. There is no deliberate delay: a lone writer gets its own commit at once. What is
submitted in one iteration of the event loop is handed over together: the thread would otherwise begin with the first and leave the rest,
and each commit costs the loop as much as some writes.

Between commits the thread tidies up: it removes what history no longer needs and gives free pages back. Under constant load it also does so
once enough has piled up, so that the file stays bounded.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from queue import Empty, SimpleQueue

import msgspec

from drayman.cluster.embedded.history import Dropped
from drayman.cluster.embedded.journal import Journal, Row
from drayman.cluster.embedded.model import Event, EventType

_MOST_EVENTS = 512
"""Events in one commit, so that the first of a burst need not wait for the last."""
_MOST_BYTES = 16 * 2**20
_TIDY_STEP = 256
"""Changes forgotten on disk in one transaction: a few milliseconds that a commit might have to wait for."""
_TIDY_BACKLOG = 16 * _TIDY_STEP
"""Changes to forget that are tidied up even while commits wait."""

_logger = logging.getLogger(__name__)


class Transaction(msgspec.Struct, frozen=True):
    """Events that become durable together or not at all."""

    events: tuple[Event, ...]
    time: float
    attempt: int  # counts failures: what was decided before a failure cannot be committed after it

    @property
    def size(self) -> int:
        return sum(len(event.stored.data) for event in self.events)


class CommitOutcome(msgspec.Struct, frozen=True):
    """The outcome of some transactions, in their order."""

    transactions: Sequence[Transaction]
    error: str | None = None


class _Signal(Enum):
    TIDY = "there is something to forget"
    STOP = "finish"


class Committer:
    """The thread that writes to a journal, which it owns from here on."""

    def __init__(self, journal: Journal, report: Callable[[CommitOutcome], None]) -> None:
        """`report` is called in the event loop of the last submission, once for every transaction."""
        self._journal = journal
        self._report = report
        self._queue: SimpleQueue[Sequence[Transaction] | _Signal] = SimpleQueue()
        self._gathered: list[Transaction] = []
        self._outcomes: deque[CommitOutcome] = deque()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._to_forget: deque[Dropped] = deque()
        self._failed_attempt = -1
        self._failure = ""
        self._shrinking = False
        self._tidy_failed = False
        self._thread = threading.Thread(target=self._run, name="store-committer", daemon=True)
        self._thread.start()

    def submit(self, transaction: Transaction, loop: asyncio.AbstractEventLoop) -> None:
        """Commit this after everything that was submitted before."""
        if not self._gathered or loop is not self._loop:
            loop.call_soon(self._hand_over)
        self._loop = loop
        self._gathered.append(transaction)

    def forget(self, dropped: Sequence[Dropped]) -> None:
        """Remove from disk, when there is time, what only these changes kept alive."""
        # Not through the queue: what waits there to be written could be more than may wait to be removed.
        self._to_forget.extend(dropped)
        self._queue.put(_Signal.TIDY)

    def close(self) -> None:
        """Commit and report everything submitted, tidy up and close the journal."""
        self._hand_over()
        self._queue.put(_Signal.STOP)
        self._thread.join()
        self._deliver()
        self._journal.close()

    # In the event loop.

    def _hand_over(self) -> None:
        gathered, self._gathered = self._gathered, []
        for start in range(0, len(gathered), _MOST_EVENTS):
            self._queue.put(gathered[start : start + _MOST_EVENTS])

    def _deliver(self) -> None:
        while self._outcomes:
            self._report(self._outcomes.popleft())

    # In the thread.

    def _run(self) -> None:
        stopping = False
        while not stopping:
            batch, stopping = self._next_batch(wait=not self._has_spare_work())
            if batch:
                self._settle(batch)
            elif self._has_spare_work():
                self._tidy()
        while (self._to_forget or self._shrinking) and not self._tidy_failed:
            self._tidy()

    def _settle(self, batch: list[Transaction]) -> None:
        """Commit what can still be committed."""
        doomed = [t for t in batch if t.attempt <= self._failed_attempt]
        if doomed:
            why = f"a write that this one builds on has failed: {self._failure}"
            self._conclude(CommitOutcome(doomed, why))
        alive = batch[len(doomed) :]
        if alive:
            self._conclude(self._commit(alive))
        self._tidy_failed = False
        while len(self._to_forget) >= _TIDY_BACKLOG and not self._tidy_failed:
            self._tidy()

    def _next_batch(self, wait: bool) -> tuple[list[Transaction], bool]:
        """The waiting transactions, blocking until there is something if asked to; and whether to stop after them."""
        batch: list[Transaction] = []
        events = size = 0
        while events < _MOST_EVENTS and size < _MOST_BYTES:
            try:
                item = self._queue.get(block=wait)
            except Empty:
                break
            wait = False
            if item is _Signal.STOP:
                return batch, True
            if not isinstance(item, _Signal):
                batch += item
                events += sum(len(transaction.events) for transaction in item)
                size += sum(transaction.size for transaction in item)
        return batch, False

    def _commit(self, batch: list[Transaction]) -> CommitOutcome:
        try:
            self._journal.append([_row(event, t.time) for t in batch for event in t.events])
        except Exception as error:
            # Whatever the error: callers must be notified, and the thread must go on.
            self._failure = f"cannot write to {self._journal.path}: {error}"
            self._failed_attempt = batch[0].attempt
            _logger.error("%s", self._failure)
            return CommitOutcome(batch, self._failure)
        return CommitOutcome(batch)

    def _conclude(self, outcome: CommitOutcome) -> None:
        self._outcomes.append(outcome)
        loop = self._loop
        assert loop is not None
        try:
            loop.call_soon_threadsafe(self._deliver)
        except RuntimeError:
            # The loop is closed, so no caller waits any more. The store learns of it with the next write, or when it is closed.
            _logger.debug("the event loop closed before a commit was reported")

    def _has_spare_work(self) -> bool:
        return (len(self._to_forget) >= _TIDY_STEP or self._shrinking) and not self._tidy_failed

    def _tidy(self) -> None:
        """One bounded step of clearing up."""
        some = [self._to_forget.popleft() for _ in range(min(_TIDY_STEP, len(self._to_forget)))]
        try:
            if some:
                dead = [revision for dropped in some for revision in dropped.dead]
                self._journal.remove(dead, some[-1].revision)
            self._shrinking = self._journal.shrink()
        except sqlite3.Error as error:
            # Nothing is lost; the file is only larger than necessary. It is tried again after the next commit.
            _logger.warning("cannot compact %s: %s", self._journal.path, error)
            self._to_forget.extendleft(reversed(some))
            self._tidy_failed = True


def _row(event: Event, time: float) -> Row:
    stored = event.stored
    return Row(stored.revision, stored.key, event.type is EventType.DELETED, time, stored.data)
