"""Watches: the current state if requested, then every change, in the form the client wants.

Events of objects that are sent as stored are assembled from bytes. With a selector, an object that stops matching is reported to
this watcher as deleted, and one that starts to match as added.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from drayman.apiserver.protocol.errors import expired
from drayman.apiserver.protocol.options import parse_version, version_syntax
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.requests.selectors import Selector
from drayman.apiserver.served.encoding import stored_form
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.reading import selector_of, with_name
from drayman.cluster.breaks import Breaks
from drayman.cluster.embedded.errors import TooOldError
from drayman.cluster.embedded.model import Event, EventType, Stored
from drayman.cluster.embedded.watching import Subscription

BOOKMARK_INTERVAL_S: Final = 60.0
BOOKMARK_BEFORE_END_S: Final = 2.0
SHORTEST_S: Final = 1800
"""A watch without a timeout ends after at least this long and at most twice this long."""
LARGEST_BATCH: Final = 128
LARGEST_BATCH_BYTES: Final = 32 * 1024
SMALL_EVENT: Final = 512
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
    """What there is when it begins, whether or not it is selected."""
    since: int
    asked: int
    """The version the client named, 0 for none."""
    subscription: Subscription | None = None

    async def batches(self) -> AsyncGenerator[list[WatchEvent], None]:
        """All events, until the time is up. The last batch may be an error.

        History is subscribed to here rather than before: an answer that is never read has nothing to clean up.
        """
        try:
            self.subscription = self._subscribe()
        except TooOldError as error:
            yield [_gone(self.asked, error.oldest)]
            return
        async with aclosing(self._initial()) as initial:
            async for batch in initial:
                yield batch
        async with aclosing(self._changes(self.subscription)) as changes:
            async for batch in changes:
                for part in _parts(batch):
                    yield part

    def _subscribe(self) -> Subscription:
        resource, namespace = self.call.resource.storage_name, self.call.namespace or None
        return self.call.core.store.watch(resource, namespace, since=self.since)

    async def _initial(self) -> AsyncGenerator[list[WatchEvent], None]:
        if not self.selector.is_empty:
            await self.call.core.selecting.enter()
        breaks = Breaks(turnstile=self.call.core.selecting)
        part: list[WatchEvent] = []
        size = 0
        for stored in self.initial:
            await breaks.between()
            if self.selector.is_empty or self.selector.matches(stored.value):
                part.append(WatchEvent("ADDED", stored))
                size += len(stored.data)
            if len(part) >= LARGEST_BATCH or size >= LARGEST_BATCH_BYTES:
                yield part
                part, size = [], 0
        if part:
            yield part
        self.initial = ()
        if self.call.selection.send_initial_events and self.call.selection.allow_bookmarks:
            yield [self._bookmark(self.since, ends_initial_events=True)]

    async def _changes(self, subscription: Subscription) -> AsyncGenerator[list[WatchEvent], None]:
        loop = asyncio.get_running_loop()
        end = loop.time() + _timeout(self.call)
        bookmarks = self.call.selection.allow_bookmarks
        next_bookmark = _next_bookmark(loop.time(), end)
        while (now := loop.time()) < end:
            pause = min(end, next_bookmark) if bookmarks else end
            try:
                events = await _next(subscription, pause - now)
            except TooOldError as error:
                yield [_gone(error.asked, error.oldest)]
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
        """An object as it last matched, at the revision of the change that ended the match."""
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
    """Begin a watch. Raises StatusError for what the client did wrong; missing history is reported as an event instead."""
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
    initial = with_name(selector, store.list(resource, namespace)) if wants_state else ()
    return Watch(call, selector, initial, since, version)


def _gone(asked: int, oldest: int) -> WatchEvent:
    """History that a watch needs is no longer there."""
    error = expired(f"too old resource version: {asked} ({oldest})")
    return WatchEvent(ERROR, value=error.to_json())


def _parts(events: Iterable[WatchEvent]) -> Iterator[list[WatchEvent]]:
    """Events a few at a time, to limit what waits in memory for a client that reads slowly."""
    part: list[WatchEvent] = []
    size = 0
    for event in events:
        part.append(event)
        size += SMALL_EVENT if event.stored is None else len(event.stored.data)
        if len(part) >= LARGEST_BATCH or size >= LARGEST_BATCH_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def _timeout(call: Call) -> float:
    asked = call.selection.timeout_seconds
    return float(asked) if asked else SHORTEST_S * (1 + random.random())


def _next_bookmark(now: float, end: float) -> float:
    """In a while, but in any case shortly before the end, so that a client can resume where it was."""
    before_end = end - BOOKMARK_BEFORE_END_S
    due = now + BOOKMARK_INTERVAL_S
    return before_end if now < before_end < due else due
