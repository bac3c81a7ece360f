"""Watches: each is a position in the history of a resource, and a way to sleep until history goes on.

A watch that has seen everything sleeps under its resource and namespace and is woken by the next change there; until then, changes
elsewhere advance its position without waking it. While its owner is busy, its position stays and history goes on. If history no longer
reaches back that far when the owner returns, that is a TooOldError. If very many watches are to be woken, a few are in each iteration of
the event loop, so that everything else goes on in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

from drayman.cluster.embedded.errors import TooOldError
from drayman.cluster.embedded.history import History
from drayman.cluster.embedded.model import Event

_Scope = tuple[str | None, str | None]
"""A resource and a namespace; None for all of them."""
WOKEN_AT_ONCE: Final = 100
"""How many owners get to work in one iteration of the event loop: sending an event to a client takes less than a tenth of a millisecond."""


class Watchers:
    """The subscriptions that sleep, by what would wake them."""

    def __init__(self) -> None:
        self._asleep: dict[_Scope, set[Subscription]] = {}
        self._open: set[Subscription] = set()

    def __len__(self) -> int:
        """How many subscriptions are open."""
        return len(self._open)

    def wake(self, events: Iterable[Event], before: int) -> None:
        """Wake the subscriptions that wait for one of these events. The store was at revision `before` until now."""
        scopes: set[_Scope] = {(None, None)}
        for event in events:
            key = event.key
            scopes.add((key.resource, key.namespace))
            scopes.add((key.resource, None))
        woken: deque[Subscription] = deque()
        for scope in scopes:
            for subscription in self._asleep.pop(scope, ()):
                subscription.wake(before)
                woken.append(subscription)
        self._stir(woken)

    def _stir(self, woken: deque[Subscription]) -> None:
        for _ in range(min(len(woken), WOKEN_AT_ONCE)):
            woken.popleft().stir()
        if woken:
            asyncio.get_running_loop().call_soon(self._stir, woken)

    def end(self) -> None:
        """End every subscription: the store closes."""
        for subscription in tuple(self._open):
            subscription.close()

    def add(self, subscription: Subscription) -> None:
        self._open.add(subscription)

    def remove(self, subscription: Subscription) -> None:
        self._open.discard(subscription)
        self.take_from_sleep(subscription)

    def put_to_sleep(self, subscription: Subscription) -> None:
        """Nothing is delivered to it until something in its scope changes."""
        self._asleep.setdefault(subscription.scope, set()).add(subscription)

    def take_from_sleep(self, subscription: Subscription) -> None:
        """It need not be woken any more."""
        asleep = self._asleep.get(subscription.scope)
        if asleep is not None:
            asleep.discard(subscription)
            if not asleep:
                del self._asleep[subscription.scope]


class Subscription:
    """An iterator over batches of events, in order, without loss and without repetition.

    It ends when it or the store is closed, and with TooOldError once its owner has fallen behind further than history reaches.
    A subscription has one reader. Cancelling a read loses nothing.
    """

    def __init__(
        self,
        history: History,
        watchers: Watchers,
        resource: str | None,
        namespace: str | None,
        since: int,
    ) -> None:
        self.scope: _Scope = (resource, namespace)
        self._history = history
        self._watchers = watchers
        self._place = since
        self._waiter: asyncio.Future[None] | None = None
        self._asleep = False
        self._closed = False
        watchers.add(self)

    @property
    def revision(self) -> int:
        """Every event up to this revision has been handed out, so a bookmark may name it."""
        if self._asleep:
            return max(self._place, self._history.newest)
        return self._place

    @property
    def closed(self) -> bool:
        """Whether it has ended, with the store or before."""
        return self._closed

    def pending(self) -> tuple[Event, ...]:
        """What has happened since the last batch, possibly nothing, without waiting. Raises TooOldError."""
        revision = self._history.newest
        if self._asleep or revision <= self._place or self._closed:
            return ()
        resource, namespace = self.scope
        try:
            events = self._history.since(resource, namespace, self._place)
        except TooOldError:
            self.close()
            raise
        self._place = revision
        return events

    async def next(self, timeout: float | None = None) -> tuple[Event, ...]:
        """The next batch; empty if there was none within `timeout` seconds, or the subscription is closed."""
        events = self.pending()
        if events or self._closed:
            return events
        await self._sleep(timeout)
        return self.pending()

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> tuple[Event, ...]:
        while not self._closed:
            events = await self.next()
            if events:
                return events
        raise StopAsyncIteration

    def close(self) -> None:
        """End the subscription, and wake its reader if it waits."""
        self._closed = True
        self._watchers.remove(self)
        self._stir()

    def wake(self, before: int) -> None:
        """Something happened in this scope; nothing had up to revision `before`. The reader has yet to be stirred."""
        self._asleep = False
        self._place = max(self._place, before)

    def stir(self) -> None:
        """Let the reader go on, unless it already has and is asleep again."""
        if not self._asleep:
            self._stir()

    async def _sleep(self, timeout: float | None) -> None:
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()
        timer = None if timeout is None else loop.call_later(timeout, self._stir)
        self._asleep = True
        self._watchers.put_to_sleep(self)
        try:
            await waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()
            if self._asleep:  # a timeout or a cancellation: nothing happened up to now
                self._asleep = False
                self._place = max(self._place, self._history.newest)
                self._watchers.take_from_sleep(self)

    def _stir(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
