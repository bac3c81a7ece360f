"""Watches: the present state if asked for, then every change, in the form the client wants.

Events of objects that are sent as they are stored are put together from bytes. With a selector an object that stops matching is
deleted for this watcher, and one that starts to is added.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from drayman.apiserver.calls import Call
from drayman.apiserver.encoding import stored_form
from drayman.apiserver.errors import StatusError, expired
from drayman.apiserver.options import parse_version, version_syntax
from drayman.apiserver.reading import select, selector_of
from drayman.apiserver.selectors import Selector
from drayman.apiserver.strategy import Object
from drayman.cluster.embedded.errors import TooOldError
from drayman.cluster.embedded.model import Event, EventType, Stored
from drayman.cluster.embedded.store import Subscription

BOOKMARK_INTERVAL_S: Final = 60.0
BOOKMARK_BEFORE_END_S: Final = 2.0
SHORTEST_S: Final = 1800
"""A watch without a timeout ends after this long at the least and twice this long at the most."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

BOOKMARK: Final = "BOOKMARK"
ERROR: Final = "ERROR"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """An event for one watcher: an object, or (a bookmark, an error) a value of its own."""

    type: str
    stored: Stored | None = None
    value: Object | None = None


@dataclass(slots=True)
class Watch:
    """A watch that was granted. Iterating yields batches of events; `close` ends it."""

    call: Call
    selector: Selector
    initial: Sequence[Stored]
    since: int
    subscription: Subscription | None
    error: StatusError | None = None

    async def batches(self) -> AsyncGenerator[list[WatchEvent], None]:
        """Everything there is to tell, until the time is up. The last batch may be an error."""
        if self.error is not None:
            yield [WatchEvent(ERROR, value=self.error.to_json())]
            return
        first = [WatchEvent("ADDED", stored) for stored in self.initial]
        if self.call.selection.send_initial_events and self.call.selection.allow_bookmarks:
            first.append(self._bookmark(self.since, ends_initial_events=True))
        if first:
            yield first
        self.initial = ()
        async for batch in self._changes():
            yield batch

    async def _changes(self) -> AsyncIterator[list[WatchEvent]]:
        subscription = self.subscription
        assert subscription is not None
        loop = asyncio.get_running_loop()
        end = loop.time() + _timeout(self.call)
        bookmarks = self.call.selection.allow_bookmarks
        next_bookmark = _next_bookmark(loop.time(), end)
        while (now := loop.time()) < end:
            pause = min(end, next_bookmark) if bookmarks else end
            try:
                events = await _next(subscription, pause - now)
            except TooOldError as error:
                gone = expired(f"too old resource version: {error.asked} ({error.oldest})")
                yield [WatchEvent(ERROR, value=gone.to_json())]
                return
            if events is None:
                return
            batch = [found for event in events if (found := self._seen(event)) is not None]
            if bookmarks and loop.time() >= next_bookmark:
                batch.append(self._bookmark(subscription.revision))
                next_bookmark = _next_bookmark(loop.time(), end)
            if batch:
                yield batch

    def _seen(self, event: Event) -> WatchEvent | None:
        """How an event looks to this watcher, None where it does not concern it."""
        if event.revision <= self.since:
            return None
        if self.selector.is_empty:
            return WatchEvent(event.type, event.stored)
        matched = event.previous is not None and self.selector.matches(event.previous.value)
        matches = event.type is not EventType.DELETED and self.selector.matches(event.stored.value)
        if matches:
            return WatchEvent("MODIFIED" if matched else "ADDED", event.stored)
        if not matched:
            return None
        assert event.previous is not None
        return WatchEvent("DELETED", self._last(event.previous, event.revision))

    def _last(self, previous: Stored, revision: int) -> Stored:
        """An object as it last matched, at the revision of the change that ended that."""
        encode = stored_form(previous.value, self.call.resource.hub_kind)
        return Stored(previous.key, revision, encode(revision))

    def _bookmark(self, revision: int, *, ends_initial_events: bool = False) -> WatchEvent:
        kind = self.call.resource.kind_in(self.call.version)
        metadata: Object = {"resourceVersion": str(revision)}
        if ends_initial_events:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        value = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        return WatchEvent(BOOKMARK, value=value)

    def close(self) -> None:
        if self.subscription is not None:
            self.subscription.close()


async def _next(subscription: Subscription, seconds: float) -> Sequence[Event] | None:
    """The next events; none if there were none in time; None once the store is closed."""
    try:
        async with asyncio.timeout(seconds):
            return await anext(subscription, None)
    except TimeoutError:
        return ()


def start_watch(call: Call) -> Watch:
    """Begin a watch. Raises StatusError for what the client did wrong; history that is gone is an event instead."""
    selector = selector_of(call)
    store, options = call.core.store, call.selection
    version = parse_version(options.resource_version) if options.resource_version else 0
    if version is None:
        raise version_syntax(options.resource_version)
    resource, namespace = call.resource.storage_name, call.namespace or None
    wants_state = (
        version == 0 if options.send_initial_events is None else options.send_initial_events
    )
    since = store.revision if wants_state or version == 0 else version
    initial = select(call, store.list(resource, namespace)) if wants_state else ()
    try:
        subscription = store.watch(resource, namespace, since=since)
    except TooOldError as error:
        gone = expired(f"too old resource version: {version} ({error.oldest})")
        return Watch(call, selector, (), since, None, gone)
    return Watch(call, selector, initial, since, subscription)


def _timeout(call: Call) -> float:
    asked = call.selection.timeout_seconds
    return float(asked) if asked else SHORTEST_S * (1 + random.random())


def _next_bookmark(now: float, end: float) -> float:
    """In a while, but in any case shortly before the end, so that a client can resume where it was."""
    before_end = end - BOOKMARK_BEFORE_END_S
    due = now + BOOKMARK_INTERVAL_S
    return before_end if now < before_end < due else due


Encoder = Callable[[WatchEvent], bytes]


def encode_batch(batch: Iterable[WatchEvent], encode: Encoder) -> bytes:
    return b"".join(map(encode, batch))
