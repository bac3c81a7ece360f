"""The embedded store: every object of a cluster, durable, with one revision for all changes.

Objects live in memory; the disk is for recovery. A write is decided at once, in the event loop, against the objects as they will be when
all writes before it are on disk (`latest`), and gets its revisions there. Then it waits for its commit, together with all other writes
under way: one thread commits as many writes at a time as are waiting (`committing`). Only then does it become visible to readers and
watchers, in the order of revisions, so nothing that a crash could undo is ever seen.

When a commit fails, every write under way fails with it, because each may depend on the outcome of an earlier one. Their revisions are not
used again.

A store belongs to one event loop: everything but opening and closing happens there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from drayman.cluster.embedded.committing import CommitOutcome, Committer, Transaction
from drayman.cluster.embedded.errors import ConflictError, StoreError, TooOldError
from drayman.cluster.embedded.history import Dropped, History, Retention
from drayman.cluster.embedded.journal import Journal
from drayman.cluster.embedded.model import (
    DecodedValues,
    Delete,
    Event,
    EventType,
    Key,
    Operation,
    Put,
    Stored,
)
from drayman.cluster.embedded.objects import ObjectTable
from drayman.cluster.embedded.recovery import recover
from drayman.cluster.embedded.watching import Subscription, Watchers


class Follower(Protocol):
    """What is derived from the objects of a store, and is to be up to date whenever they are read."""

    def applied(self, events: Sequence[Event]) -> None:
        """Take note of changes that are on disk now."""


class Constraint(Follower, Protocol):
    """What must hold of the objects of a store together, whoever writes them."""

    def check(self, events: Sequence[Event]) -> None:
        """Judge the changes of a transaction, on top of everything decided before. Raises RefusedError. The changes may still fail."""


class Store:
    """A key-value store with revisions, transactions and watches. Made by `Store.open`."""

    def __init__(
        self,
        journal: Journal | None,
        retention: Retention,
        clock: Callable[[], float],
    ) -> None:
        self._clock = clock
        self._decoded = DecodedValues()
        self._watchers = Watchers()
        self._constraints: list[Constraint] = []
        self._followers: list[Follower] = []
        self._under_way: dict[Key, Event] = {}  # the newest of each object
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._attempt = 0
        self._closed = False
        self.problem: str | None = None
        """Why the last commit failed; None once one succeeds again, whoever writes."""
        self.transactions = 0
        """How many have been carried out since the store was opened."""
        self.commits = 0
        """How many times they were made durable, many together where many were waiting."""
        if journal is None:
            self._objects, self._history = ObjectTable(), History(retention)
            self._committer = None
        else:
            journal.check()
            self._history = History(retention, journal.oldest())
            self._objects = recover(journal, self._history, self._decoded)
            self._committer = Committer(journal, self._outcome)
            self._forget(self._history.trim(clock(), 0))
        self._assigned = self._history.newest

    @classmethod
    def open(
        cls,
        path: Path | str | None,
        *,
        retention: Retention | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Store:
        """The store in a file, which is made if there is none; with no path, one in memory only.

        Raises StoreError if the file is damaged, not a store, not writable, or open in another process.
        """
        retention = Retention() if retention is None else retention
        if path is None:
            return cls(None, retention, clock)
        journal = Journal.open(Path(path))
        try:
            return cls(journal, retention, clock)
        except BaseException:
            journal.close()
            raise

    # Reading: what is on disk.

    @property
    def revision(self) -> int:
        """The revision of the last change that is on disk."""
        return self._history.newest

    @property
    def oldest(self) -> int:
        """The earliest revision that a watch or a list can still start from."""
        return self._history.oldest

    @property
    def watchers(self) -> int:
        """How many subscriptions are open."""
        return len(self._watchers)

    def get(self, key: Key) -> Stored | None:
        """An object as it is on disk."""
        return self._objects.get(key)

    def latest(self, key: Key) -> Stored | None:
        """An object as it will be once the writes under way are on disk: what a read-modify-write starts from."""
        event = self._under_way.get(key)
        if event is None:
            return self._objects.get(key)
        return None if event.type is EventType.DELETED else event.stored

    def list(self, resource: str, namespace: str | None = None) -> tuple[Stored, ...]:
        """The objects of a resource, of one namespace or of all, sorted by namespace and name."""
        return self._objects.list(resource, namespace)

    def list_at(self, resource: str, namespace: str | None, revision: int) -> tuple[Stored, ...]:
        """`list` as of an earlier revision. Raises TooOldError; a future revision is a ValueError."""
        if revision > self._history.newest:
            raise ValueError(
                f"revision {revision} is still to come: the store is at {self._history.newest}"
            )
        return self._history.state_at(self._objects, resource, namespace, revision)

    def remember_list(self, resource: str, namespace: str | None) -> None:
        """Make `list_at` of the current revision cheap: a caller that got the first part of a list will ask for the rest."""
        self._history.remember(self._objects, resource, namespace)

    def list_all(self) -> tuple[Stored, ...]:
        """Every object, resource by resource."""
        return self._objects.list_all()

    def count(self, resource: str) -> int:
        """How many objects a resource has."""
        return self._objects.count(resource)

    def watch(self, resource: str, namespace: str | None = None, *, since: int) -> Subscription:
        """The changes of a resource after revision `since`. Raises TooOldError if some of them are gone."""
        return self._subscribe(resource, namespace, since)

    def watch_all(self, *, since: int) -> Subscription:
        """The changes of every resource, future ones included, in one order. Raises TooOldError."""
        return self._subscribe(None, None, since)

    def _subscribe(self, resource: str | None, namespace: str | None, since: int) -> Subscription:
        if self._closed:
            raise StoreError("the store is closed")
        if since < self._history.oldest:
            raise TooOldError(since, self._history.oldest)
        return Subscription(self._history, self._watchers, resource, namespace, since)

    # Writing.

    def constrain(self, constraint: Constraint) -> None:
        """Hold every later write to a constraint."""
        self._constraints.append(constraint)
        self.follow(constraint)

    def follow(self, follower: Follower) -> None:
        """Let something take note of every later change, before writers and watchers are notified of it."""
        self._followers.append(follower)

    async def write(self, operations: Sequence[Operation]) -> tuple[Stored, ...]:
        """Carry out all operations or none, and return when they are on disk and visible; one result per operation, in order.

        Raises ConflictError where an object is not at the expected revision (found: None where there is nothing to delete),
        RefusedError where a constraint is violated, and StoreError when the disk refused. Cancelling the caller does not undo its write.
        """
        if self._closed:
            raise StoreError("the store is closed")
        if not operations:
            return ()
        events = self._decide(operations)
        results = tuple(event.stored for event in events)
        self._assigned = events[-1].revision
        transaction = Transaction(events, self._clock(), self._attempt)
        if self._committer is None:
            self._apply([transaction])
            return results
        self._under_way.update((event.key, event) for event in events)
        loop = asyncio.get_running_loop()
        done = self._waiting[events[-1].revision] = loop.create_future()
        self._committer.submit(transaction, loop)
        await done
        return results

    def compact(self, revision: int) -> None:
        """Forget history up to and including a revision, whatever the retention says."""
        self._forget(self._history.drop_through(min(revision, self._history.newest)))

    def close(self) -> None:
        """Commit what is under way, end every watch and release the file."""
        if self._closed:
            return
        self._closed = True
        if self._committer is not None:
            self._committer.close()
        self._watchers.end()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _decide(self, operations: Sequence[Operation]) -> tuple[Event, ...]:
        """The changes that a transaction makes. Nothing is changed by this: it may still be refused."""
        revision = self._assigned
        decided: dict[Key, Stored | None] = {}
        events: list[Event] = []
        for operation in operations:
            key = operation.key
            found = decided[key] if key in decided else self.latest(key)
            _check(operation, found)
            revision += 1
            stored = Stored(key, revision, operation.encode(revision), self._decoded)
            if isinstance(operation, Delete):
                kind, decided[key] = EventType.DELETED, None
            else:
                kind = EventType.ADDED if found is None else EventType.MODIFIED
                decided[key] = stored
            events.append(Event(kind, stored, found))
        for constraint in self._constraints:
            constraint.check(events)
        return tuple(events)

    def _outcome(self, outcome: CommitOutcome) -> None:
        """Some transactions were committed, or failed, all together."""
        if outcome.error is None:
            self.problem = None
            self._apply(outcome.transactions)
            return
        if outcome.transactions[0].attempt == self._attempt:
            # Whatever was decided since depends on writes that never happened: the committer refuses it too.
            self._attempt += 1
            self._under_way.clear()
            self.problem = outcome.error
        for transaction in outcome.transactions:
            self._settle(transaction, outcome.error)

    def _apply(self, transactions: Sequence[Transaction]) -> None:
        """Make durable changes visible, in order; then notify writers, then watchers."""
        self.transactions += len(transactions)
        self.commits += 1
        before = self._history.newest
        events = [event for transaction in transactions for event in transaction.events]
        for transaction in transactions:
            for event in transaction.events:
                self._objects.apply(event)
                self._history.append(event, transaction.time)
                if self._under_way.get(event.key) is event:
                    del self._under_way[event.key]
        for follower in self._followers:
            follower.applied(events)
        for transaction in transactions:
            self._settle(transaction, None)
        self._forget(self._history.trim(self._clock(), len(events)))
        self._watchers.wake(events, before)

    def _settle(self, transaction: Transaction, error: str | None) -> None:
        """Notify the caller, unless it was cancelled or its loop is closed."""
        done = self._waiting.pop(transaction.events[-1].revision, None)
        if done is None or done.done() or done.get_loop().is_closed():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(StoreError(error))

    def _forget(self, dropped: Sequence[Dropped]) -> None:
        if dropped and self._committer is not None:
            self._committer.forget(dropped)


def _check(operation: Operation, found: Stored | None) -> None:
    expected = operation.expected
    if expected is None:
        as_expected = found is not None or isinstance(operation, Put)
    elif found is None:
        as_expected = expected == 0 and isinstance(operation, Put)
    else:
        as_expected = expected == found.revision
    if not as_expected:
        raise ConflictError(operation.key, expected, found)
