"""The store against a model of it: a list of all changes ever made.

Random transactions, many at a time, right and wrong expectations, watches from any revision read at any moment, compaction, small
retention and restarts. The model says at each step what must be there and what each watch must have seen.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from drayman.cluster.embedded import (
    ConflictError,
    Delete,
    Event,
    Key,
    Put,
    Retention,
    Store,
    Subscription,
    TooOldError,
)

RESOURCES = ("pods", "jobs.batch")
NAMESPACES = ("", "a", "a-b")
KEYS = [Key(r, ns, name) for r in RESOURCES for ns in NAMESPACES for name in ("x", "y")]

# An operation as drawn: what, on which object, and whether the expectation is none, right or wrong.
operations = st.tuples(
    st.sampled_from(["put", "put", "delete"]),
    st.sampled_from(KEYS),
    st.sampled_from(["any", "right", "wrong"]),
)
transactions = st.lists(operations, min_size=1, max_size=4)
scopes = st.tuples(st.sampled_from(RESOURCES), st.sampled_from([None, *NAMESPACES]))

Seen = tuple[str, Key, int, int | None]  # type, key, revision, revision of the form before


class Watch:
    """A subscription, and the revisions that its owner has seen."""

    def __init__(
        self, subscription: Subscription, scope: tuple[str, str | None], since: int
    ) -> None:
        self.subscription, self.scope, self.since = subscription, scope, since
        self.seen: list[Seen] = []

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            before = event.previous and event.previous.revision
            self.seen.append((str(event.type), event.key, event.revision, before))


class Machine(RuleBasedStateMachine):
    """Runs a store in memory beside the model."""

    in_file = False

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "store.db" if self.in_file else None
        self.now = 0.0
        self.current: dict[Key, int] = {}
        self.changes: list[Seen] = []
        self.watches: list[Watch] = []
        self.followers: list[tuple[Watch, asyncio.Task[None]]] = []

    @initialize(changes=st.integers(1, 12), seconds=st.integers(1, 30))
    def open(self, changes: int, seconds: int) -> None:
        self.retention = Retention(changes=changes, seconds=seconds)
        self.store = Store.open(self.path, retention=self.retention, clock=lambda: self.now)

    @rule(drawn=st.lists(transactions, min_size=1, max_size=5), pause=st.integers(0, 3))
    def write(self, drawn: list[list[tuple[str, Key, str]]], pause: int) -> None:
        """Several transactions at the same time: decided in the order in which they begin."""
        self.now += pause
        made = [self.predict(transaction) for transaction in drawn]

        async def run() -> list[object]:
            writes = (self.store.write(operations) for operations, _ in made)
            return await asyncio.gather(*writes, return_exceptions=True)

        for (_, wanted), got in zip(made, self.runner.run(run()), strict=True):
            if isinstance(wanted, Key):
                assert isinstance(got, ConflictError)
                assert got.key == wanted
            else:
                assert [stored.revision for stored in got] == wanted

    def predict(
        self, drawn: list[tuple[str, Key, str]]
    ) -> tuple[list[Put | Delete], list[int] | Key]:
        """The operations of a transaction, and its revisions or the key of its conflict."""
        operations: list[Put | Delete] = []
        state, changes, conflict = dict(self.current), list(self.changes), None
        for what, key, expectation in drawn:
            there = state.get(key, 0)
            expected = {"any": None, "right": there, "wrong": there + 1}[expectation]
            operations.append((Put if what == "put" else Delete)(key, encode, expected))
            if conflict is None and (expectation == "wrong" or (what == "delete" and not there)):
                conflict = key
            revision = len(changes) + 1
            kind = "DELETED" if what == "delete" else "MODIFIED" if there else "ADDED"
            changes.append((kind, key, revision, there or None))
            state[key] = revision
            if what == "delete":
                del state[key]
        if conflict is not None:
            return operations, conflict
        revisions = [change[2] for change in changes[len(self.changes) :]]
        self.current, self.changes = state, changes
        return operations, revisions

    @rule(scope=scopes, data=st.data())
    def watch(self, scope: tuple[str, str | None], data: st.DataObject) -> None:
        """From any revision: refused exactly where history is gone."""
        since = data.draw(st.integers(0, len(self.changes) + 2))
        if since < self.store.oldest:
            with pytest.raises(TooOldError):
                self.store.watch(*scope, since=since)
        else:
            self.watches.append(Watch(self.store.watch(*scope, since=since), scope, since))

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        """A watch has seen all that happened in its scope, once each, in order; or is told that it cannot."""
        if not self.watches:
            return
        watch = data.draw(st.sampled_from(self.watches))
        place = watch.subscription.revision
        try:
            events = self.runner.run(watch.subscription.next(timeout=0))
        except TooOldError:
            assert place < self.store.oldest
            self.watches.remove(watch)
            return
        watch.add(events)
        assert watch.seen == self.changes_of(watch)
        assert watch.subscription.revision == max(watch.since, self.store.revision)

    @rule(scope=scopes)
    def follow(self, scope: tuple[str, str | None]) -> None:
        """A watch whose owner does nothing but read."""
        since = self.store.revision
        watch = Watch(self.store.watch(*scope, since=since), scope, since)

        async def read_all() -> None:
            async for events in watch.subscription:
                watch.add(events)

        async def begin() -> asyncio.Task[None]:
            return asyncio.ensure_future(read_all())

        self.followers.append((watch, self.runner.run(begin())))

    @invariant()
    def followers_have_seen_everything(self) -> None:
        """Or have been told that they have not: when a burst was longer than history."""
        self.runner.run(turns_of_the_loop())
        for watch, task in list(self.followers):
            wanted = self.changes_of(watch)
            if task.done():
                assert isinstance(task.exception(), TooOldError)
                assert watch.seen == wanted[: len(watch.seen)]
                self.followers.remove((watch, task))
            else:
                assert watch.seen == wanted
                assert watch.subscription.revision == self.store.revision

    def changes_of(self, watch: Watch) -> list[Seen]:
        return [c for c in self.changes if c[2] > watch.since and in_scope(c[1], watch.scope)]

    @rule(scope=scopes, data=st.data())
    def list_at(self, scope: tuple[str, str | None], data: st.DataObject) -> None:
        """A list as of any retained revision is what the changes up to there made."""
        revision = data.draw(st.integers(0, len(self.changes)))
        if revision < self.store.oldest:
            with pytest.raises(TooOldError):
                self.store.list_at(*scope, revision)
            return
        state: dict[Key, int] = {}
        for kind, key, at, _ in self.changes[:revision]:
            state[key] = at
            if kind == "DELETED":
                del state[key]
        listed = [(stored.key, stored.revision) for stored in self.store.list_at(*scope, revision)]
        assert listed == sorted((k, r) for k, r in state.items() if in_scope(k, scope))

    @rule(scope=scopes)
    def remember_list(self, scope: tuple[str, str | None]) -> None:
        """Whatever is remembered, `list_at` stays right."""
        self.store.remember_list(*scope)

    @rule(data=st.data())
    def compact(self, data: st.DataObject) -> None:
        revision = data.draw(st.integers(0, len(self.changes) + 1))
        before = self.store.oldest
        self.store.compact(revision)
        assert self.store.oldest == max(before, min(revision, self.store.revision))

    @invariant()
    def objects_are_those_of_the_model(self) -> None:
        if not hasattr(self, "store"):
            return
        assert self.store.revision == len(self.changes)
        for resource in RESOURCES:
            listed = {s.key: s.revision for s in self.store.list(resource)}
            assert listed == {k: r for k, r in self.current.items() if k.resource == resource}
        for key in KEYS:
            stored = self.store.get(key)
            assert (stored and stored.revision) == self.current.get(key)
            assert self.store.latest(key) is stored
            assert stored is None or stored.data == encode(stored.revision)

    @invariant()
    def history_is_within_its_bounds(self) -> None:
        if hasattr(self, "store"):
            assert self.store.revision - self.store.oldest <= self.retention.changes

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
            self.runner.run(turns_of_the_loop())
        self.runner.close()
        self.folder.cleanup()


class FileMachine(Machine):
    """The same with a file, which is closed and opened again now and then."""

    in_file = True

    @rule()
    def reopen(self) -> None:
        """Watches end with the store; objects and history do not."""
        oldest = self.store.oldest
        self.store.close()
        for watch in self.watches:
            assert self.runner.run(watch.subscription.next()) == ()
        self.watches.clear()
        self.runner.run(turns_of_the_loop())
        assert all(task.done() and task.exception() is None for _, task in self.followers)
        self.followers.clear()
        self.store = Store.open(self.path, retention=self.retention, clock=lambda: self.now)
        assert self.store.oldest == oldest


async def turns_of_the_loop() -> None:
    """Let every reader that was woken read."""
    for _ in range(5):
        await asyncio.sleep(0)


def in_scope(key: Key, scope: tuple[str, str | None]) -> bool:
    return key.resource == scope[0] and scope[1] in (None, key.namespace)


def encode(revision: int) -> bytes:
    return b'{"metadata":{"resourceVersion":"%d"}}' % revision


TestInMemory = Machine.TestCase
TestInMemory.settings = settings(stateful_step_count=40)
TestInFile = FileMachine.TestCase
TestInFile.settings = settings(
    max_examples=settings.default.max_examples // 4, stateful_step_count=30
)
