"""Runs garbage collection, the deletion of namespaces and the expiry of events alongside the server.

One task reads every existing object, and from then on follows every change in order. So the graph of owners is complete before any
decision is based on it, and includes objects of custom resources as soon as there are any. Before each decision it catches up with
the store.

Many due items are decided at a time, each on top of the one before, and written as one transaction: a thousand pods deleted at
once cost the disk a few writes for their dependents, not a thousand. Failures are retried with growing delays.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Final

from drayman.apiserver.lifecycle.collecting import Collector, StoredResources, UnknownOwnerError
from drayman.apiserver.lifecycle.due import Due, DueItems
from drayman.apiserver.lifecycle.ending_namespaces import NAMESPACES, NamespaceEnder
from drayman.apiserver.lifecycle.expiring_events import NOTED_EVERY_S, EventExpiry
from drayman.apiserver.lifecycle.graph import DependentObject, Graph, node_of
from drayman.apiserver.lifecycle.released_claims import (
    LEFT_TO_CONTROLLER_S,
    is_released_with,
    may_be_left,
)
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.verbs.batch import Batch
from drayman.apiserver.verbs.core import Core
from drayman.cluster.breaks import Breaks
from drayman.cluster.embedded import Event, EventType, Store, StoreError, Subscription, TooOldError
from drayman.cluster.together import LARGEST

log = logging.getLogger(__name__)

STOCK_STEP: Final = 1_000
"""Objects read at a time during the initial read."""
AFTER_A_BUG_S: Final = 5.0
OBJECT: Final = "object"
NAMESPACE: Final = "namespace"
EXPIRY: Final = Due("events", "")


class Lifecycle:
    """Runs alongside a server, until it is stopped."""

    def __init__(self, core: Core, *, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` determines when postponed items are due."""
        assert isinstance(core.store, Store), "it follows a store, not a batch"
        self._core = core
        self._store = core.store
        self._graph = Graph()
        self._collector = Collector(self._graph, StoredResources(core.resources))
        self._namespaces = NamespaceEnder()
        self._ending: set[str] = set()
        self._events = EventExpiry()
        self._clock = clock
        self._due = DueItems(clock)
        self._breaks = Breaks()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="lifecycle")

    async def stop(self) -> None:
        """Stop before the next decision. A decision being written is completed."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        while True:
            try:
                with closing(self._store.watch_all(since=self._store.revision)) as changes:
                    await self._take_stock()
                    await self._keep_up(changes)
                return  # the store is closed
            except TooOldError as error:
                log.warning("%s; taking stock of all objects again", error)
            except Exception:
                # A bug. Without this loop nothing would ever be collected again, so it starts over.
                log.exception("owners cannot be followed; taking stock of all objects again")
                await asyncio.sleep(AFTER_A_BUG_S)

    async def _take_stock(self) -> None:
        """Record every existing object. Nothing is decided before that is complete."""
        objects = self._store.list_all()
        nodes: list[DependentObject] = []
        for begin in range(0, len(objects), STOCK_STEP):
            nodes += map(node_of, objects[begin : begin + STOCK_STEP])
            await asyncio.sleep(0)
        # Without a pause: old knowledge of objects whose removal was missed must not be mixed with this.
        self._graph.clear()
        self._ending.clear()
        for node in nodes:
            self._note(node)

    async def _keep_up(self, changes: Subscription) -> None:
        """Follow changes and do what is due. Returns when the store is closed; raises TooOldError."""
        while not changes.closed:
            while events := changes.pending():
                for event in events:
                    self._changed(event)
                    await self._breaks.between()
            if self._events.is_due(self._clock()):
                self._due.ask(EXPIRY)
            due = self._due.take(LARGEST)
            if due:
                await self._attend(due)
                await asyncio.sleep(0)  # a store in memory writes without a pause
                self._breaks.begin()
                continue
            idle_s = self._due.idle_s()
            for event in await changes.next(
                NOTED_EVERY_S if idle_s is None else min(idle_s, NOTED_EVERY_S)
            ):
                self._changed(event)
                await self._breaks.between()

    def _changed(self, event: Event) -> None:
        node = node_of(event.stored)
        if event.type is EventType.DELETED:
            self._note_gone(node)
        else:
            self._note(node)

    def _note(self, node: DependentObject) -> None:
        """An object exists, and may have changed."""
        before = self._graph.get(node.uid)
        self._graph.put(node)
        if before is not None and before.owners != node.owners:
            self._ask_owners(before)
        if node.owners and (before is None or before.owners != node.owners):
            self._ask(OBJECT, node.uid)
        if node.waits or node.frees:
            self._ask(OBJECT, node.uid)
            if before is None or (before.waits, before.frees) != (node.waits, node.frees):
                self._ask_dependents(node)
        if node.is_deleted and node.key.resource == NAMESPACES:
            self._ending.add(node.key.name)
            self._ask(NAMESPACE, node.key.name)

    def _note_gone(self, node: DependentObject) -> None:
        self._ask_orphans(node)
        self._graph.note_gone(node)
        self._ask_owners(node)
        if node.key.resource == NAMESPACES:
            self._ending.discard(node.key.name)
            self._ask(NAMESPACE, node.key.name)  # so that its data is forgotten
        elif node.key.namespace in self._ending:
            self._ask(NAMESPACE, node.key.namespace)

    def _ask_dependents(self, node: DependentObject) -> None:
        for dependent in self._graph.dependents(node.uid):
            self._ask(OBJECT, dependent.uid)

    def _ask_orphans(self, node: DependentObject) -> None:
        """Schedule a look at objects that lose their owner."""
        for dependent in self._graph.dependents(node.uid):
            due = Due(OBJECT, dependent.uid)
            if self._is_left(dependent, node):
                self._due.ask_after(due, LEFT_TO_CONTROLLER_S)
            else:
                self._due.ask(due)

    def _is_left(self, dependent: DependentObject, owner: DependentObject) -> bool:
        if not may_be_left(dependent, owner):
            return False
        stored = self._store.latest(dependent.key)
        return stored is not None and is_released_with(stored, owner)

    def _ask_owners(self, node: DependentObject) -> None:
        """Schedule a look at owners that stay for their dependents: they may have one less to wait for."""
        for owner in node.owners:
            if self._graph.holds_on(owner.uid):
                self._ask(OBJECT, owner.uid)

    def _ask(self, sort: str, which: str) -> None:
        self._due.ask(Due(sort, which))

    async def _attend(self, due: list[Due]) -> None:
        """Decide about each of these, and write all decisions together."""
        batch = Batch(self._store)
        core = replace(self._core, store=batch)
        done: list[Due] = []
        self._breaks.begin()
        for number, item in enumerate(due, 1):
            if await self._attend_to(core, item):
                done.append(item)
            if self._breaks.is_due:
                # Nothing may wait between these decisions and their transaction, so the others come later.
                for other in due[number:]:
                    self._due.ask(other)
                break
        try:
            await batch.commit()
        except (StatusError, StoreError) as error:
            log.warning("%d decisions could not be written: %s; trying again", len(done), error)
            for item in done:
                self._due.failed(item)
        else:
            for item in done:
                self._due.succeeded(item)

    async def _attend_to(self, core: Core, item: Due) -> bool:
        """Decide about one of them. False if that failed and will be tried again."""
        try:
            if item.sort == OBJECT:
                await self._collector.attend(core, item.which)
            elif item == EXPIRY:
                if not await self._events.attend(core, self._clock()):
                    self._due.ask(item)
            elif not await self._namespaces.attend(core, item.which):
                self._due.ask(item)
        except (StatusError, StoreError) as error:
            log.info("%s %s: %s; trying again", *item, error)
        except UnknownOwnerError as error:
            log.debug("%s, which is not served; looking again", error)
        except Exception:
            # A bug must not end the collection of everything else.
            log.exception("%s %s failed; trying again", *item)
        else:
            return True
        self._due.failed(item)
        return False
