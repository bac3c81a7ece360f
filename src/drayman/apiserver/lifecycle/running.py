"""Keeps garbage collection and namespaces going while the server runs.

One task for each resource follows its changes and notes who owns whom; others attend to what has become due, several at a time so that
their writes share commits. What fails is tried again, later each time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Final

from drayman.apiserver.core import Core
from drayman.apiserver.deleting import FOREGROUND, ORPHAN
from drayman.apiserver.errors import StatusError
from drayman.apiserver.lifecycle.collecting import Collector
from drayman.apiserver.lifecycle.ending_namespaces import NamespaceEnder
from drayman.apiserver.lifecycle.graph import Graph, Node, node_of
from drayman.cluster.embedded import Event, StoreError, TooOldError

log = logging.getLogger(__name__)

RETRY_S: Final = 0.2
LONGEST_RETRY_S: Final = 30.0
WORKERS: Final = 8
NEW_RESOURCES_S: Final = 0.5
NAMESPACES: Final = "namespaces"


class Lifecycle:
    """Runs beside a server, until it is stopped."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._graph = Graph()
        self._collector = Collector(core, self._graph)
        self._namespaces = NamespaceEnder(core)
        self._due: asyncio.Queue[tuple[str, str]] = asyncio.Queue()  # what sort, and which
        self._waiting: set[tuple[str, str]] = set()
        self._failures: dict[tuple[str, str], int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._followed: dict[str, asyncio.Task[None]] = {}

    def start(self) -> None:
        self._spawn(self._follow_resources())
        for _ in range(WORKERS):
            self._spawn(self._attend())

    async def stop(self) -> None:
        tasks = [*self._tasks, *self._followed.values()]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow_resources(self) -> None:
        """Follow each resource that is served, those that come later too."""
        generation = -1
        while True:
            if self._core.resources.generation != generation:
                generation = self._core.resources.generation
                names = {resource.storage_name for resource in self._core.resources}
                for name in names - self._followed.keys():
                    self._followed[name] = asyncio.create_task(self._follow(name))
                for name in self._followed.keys() - names:
                    self._followed.pop(name).cancel()
            await asyncio.sleep(NEW_RESOURCES_S)

    async def _follow(self, resource: str) -> None:
        store = self._core.store
        while True:
            since = store.revision
            for stored in store.list(resource):
                self._note(node_of(stored.key, stored.value))
            subscription = store.watch(resource, since=since)
            try:
                async for events in subscription:
                    for event in events:
                        self._changed(event)
            except TooOldError:
                continue
            finally:
                subscription.close()

    def _changed(self, event: Event) -> None:
        node = node_of(event.stored.key, event.stored.value)
        if event.type != "DELETED":
            self._note(node)
            return
        for dependent in self._graph.dependents(node.uid):
            self._ask("object", dependent.uid)
        for owner in node.owners:
            self._ask("object", owner.uid)
        self._graph.drop(node.uid)
        if node.key.namespace:
            self._ask("namespace", node.key.namespace)

    def _note(self, node: Node) -> None:
        self._graph.put(node)
        if node.owners or (node.deleting and {ORPHAN, FOREGROUND} & set(node.finalizers)):
            self._ask("object", node.uid)
        if node.deleting and node.key.resource == NAMESPACES:
            self._ask("namespace", node.key.name)

    def _ask(self, sort: str, which: str) -> None:
        if (sort, which) not in self._waiting:
            self._waiting.add((sort, which))
            self._due.put_nowait((sort, which))

    async def _attend(self) -> None:
        while True:
            due = await self._due.get()
            self._waiting.discard(due)
            try:
                await self._attend_to(*due)
            except (StatusError, StoreError) as error:
                log.info("%s %s: %s; trying again", *due, error)
                self._spawn(self._ask_later(*due))
            except Exception:
                # A bug must not end the collection of everything else.
                log.exception("%s %s failed; trying again", *due)
                self._spawn(self._ask_later(*due))
            else:
                self._failures.pop(due, None)

    async def _attend_to(self, sort: str, which: str) -> None:
        if sort == "object":
            await self._collector.attend(which)
        else:
            # What still has to go asks again when it is gone.
            await self._namespaces.attend(which)

    async def _ask_later(self, sort: str, which: str) -> None:
        failures = self._failures.get((sort, which), 0)
        self._failures[sort, which] = failures + 1
        await asyncio.sleep(min(RETRY_S * 2.0 ** min(failures, 10), LONGEST_RETRY_S))
        self._ask(sort, which)
