"""The changes of the recent past, for watches that resume and for lists as of an earlier revision.

Every watch reads from here, at its own position; nothing is copied to a watcher. So a thousand watchers cost no more memory than one, and a
slow one cannot make the store grow: when history moves on past its position, it has to list again, as in Kubernetes.

History is bounded three ways: by the number of changes, by the bytes that only history keeps alive, and by age. Old changes are dropped a
few at a time as new ones arrive, so that no write pays for all of them; a store without writes keeps what it has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from operator import attrgetter

import msgspec

from drayman.bounded import Bounded
from drayman.cluster.embedded.errors import TooOldError
from drayman.cluster.embedded.model import Event, EventType, Key, Stored
from drayman.cluster.embedded.objects import ObjectTable

_VIEWS = 8
"""Earlier states kept for paging: a client that pages through a long list asks for the same revision repeatedly."""
_TRIM_STEP = 64
"""Changes dropped for age at one time, in addition to as many as were added."""
_View = tuple[str, str | None, int]
"""A resource, a namespace or all of them, and a revision."""
_key_of = attrgetter("key")


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """How much history a store keeps. A change is dropped as soon as any bound is exceeded."""

    changes: int = 100_000
    bytes: int = 256 * 2**20
    seconds: float = 15 * 60.0


class Dropped(msgspec.Struct, frozen=True, gc=False):
    """A change that is no longer in history, and the forms of its object that can no longer be requested."""

    revision: int
    dead: tuple[int, ...]


class _Change(msgspec.Struct, frozen=True, gc=False):
    event: Event
    time: float
    size: int


class History:
    """The retained changes, in order, as a whole and by resource."""

    def __init__(self, retention: Retention, oldest: int = 0) -> None:
        """History that begins after revision `oldest`."""
        self.oldest = oldest
        self.newest = oldest
        self._retention = retention
        self._changes: deque[_Change] = deque()
        self._by_resource: dict[str, deque[Event]] = {}
        self._bytes = 0
        self._views: Bounded[_View, tuple[Stored, ...]] = Bounded(_VIEWS)
        self._latest_slice: (
            tuple[tuple[str | None, str | None, int, int], tuple[Event, ...]] | None
        ) = None

    def append(self, event: Event, time: float) -> None:
        """Add the next change, made at `time`."""
        self.newest = event.revision
        size = _bytes_of(event)
        self._changes.append(_Change(event, time, size))
        self._bytes += size
        resource = event.key.resource
        events = self._by_resource.get(resource)
        if events is None:
            events = self._by_resource[resource] = deque()
        events.append(event)

    def trim(self, now: float, added: int) -> list[Dropped]:
        """Drop what is beyond the bounds, after `added` changes came in."""
        kept = self._retention
        dropped: list[Dropped] = []
        for_age = added + _TRIM_STEP
        while self._changes:
            first = self._changes[0]
            over = len(self._changes) > kept.changes or self._bytes > kept.bytes
            aged = now - first.time > kept.seconds and len(dropped) < for_age
            if not (over or aged):
                break
            dropped.append(self._drop_first())
        self._moved_on(dropped)
        return dropped

    def drop_through(self, revision: int) -> list[Dropped]:
        """Drop every change up to and including a revision."""
        dropped: list[Dropped] = []
        while self._changes and self._changes[0].event.revision <= revision:
            dropped.append(self._drop_first())
        self._moved_on(dropped)
        return dropped

    def since(self, resource: str | None, namespace: str | None, after: int) -> tuple[Event, ...]:
        """The changes of a resource, or of all, after a revision. Raises TooOldError."""
        if after < self.oldest:
            raise TooOldError(after, self.oldest)
        # Watchers that are woken together ask for the same slice: they share one tuple.
        wanted = (resource, namespace, after, self.newest)
        if self._latest_slice is not None and self._latest_slice[0] == wanted:
            return self._latest_slice[1]
        found: list[Event] = []
        for event in self._newest_first(resource):
            if event.revision <= after:
                break
            if namespace is None or event.key.namespace == namespace:
                found.append(event)
        found.reverse()
        events = tuple(found)
        self._latest_slice = (wanted, events)
        return events

    def state_at(
        self, objects: ObjectTable, resource: str, namespace: str | None, revision: int
    ) -> tuple[Stored, ...]:
        """The objects as of an earlier revision, sorted. Raises TooOldError."""
        if revision < self.oldest:
            raise TooOldError(revision, self.oldest)
        wanted = (resource, namespace, revision)
        view = self._views.get(wanted)
        if view is not None:
            self._views.renew(wanted)
            return view
        undo = self._undo(resource, namespace, revision)
        now = objects.list(resource, namespace)
        if not undo:
            return now
        view = _with_undone(now, undo, revision)
        self._views[wanted] = view
        return view

    def remember(self, objects: ObjectTable, resource: str, namespace: str | None) -> None:
        """Keep the objects as they are now, for later requests as of this revision."""
        wanted = (resource, namespace, self.newest)
        if wanted not in self._views:
            self._views[wanted] = objects.list(resource, namespace)

    def _undo(
        self, resource: str, namespace: str | None, revision: int
    ) -> dict[Key, Stored | None]:
        """The state, at a revision, of each object that has changed since."""
        undo: dict[Key, Stored | None] = {}
        for event in self._newest_first(resource):
            if event.revision <= revision:
                break
            if namespace is None or event.key.namespace == namespace:
                undo[event.key] = event.previous
        return undo

    def _newest_first(self, resource: str | None) -> Iterator[Event]:
        if resource is not None:
            return reversed(self._by_resource.get(resource, ()))
        return (change.event for change in reversed(self._changes))

    def _drop_first(self) -> Dropped:
        change = self._changes.popleft()
        self._bytes -= change.size
        event = change.event
        resource = event.key.resource
        events = self._by_resource[resource]
        events.popleft()
        if not events:
            del self._by_resource[resource]
        return Dropped(event.revision, _dead_forms(event))

    def _moved_on(self, dropped: list[Dropped]) -> None:
        if not dropped:
            return
        self.oldest = dropped[-1].revision
        self._latest_slice = None
        for wanted in [w for w in self._views if w[2] < self.oldest]:
            del self._views[wanted]


def _dead_forms(event: Event) -> tuple[int, ...]:
    """The revisions of the forms that cannot be seen once this change is no longer in history."""
    dead = () if event.previous is None else (event.previous.revision,)
    return (*dead, event.revision) if event.type is EventType.DELETED else dead


def _bytes_of(event: Event) -> int:
    """The data that history alone keeps alive for this change."""
    size = 0 if event.previous is None else len(event.previous.data)
    return size + (len(event.stored.data) if event.type is EventType.DELETED else 0)


def _with_undone(
    current: tuple[Stored, ...], undo: dict[Key, Stored | None], revision: int
) -> tuple[Stored, ...]:
    """Objects older than the revision are unchanged; all others are in `undo`. Both are in order, which makes sorting fast."""
    then = [stored for stored in current if stored.revision <= revision]
    then += sorted([stored for stored in undo.values() if stored is not None], key=_key_of)
    return tuple(sorted(then, key=_key_of))
