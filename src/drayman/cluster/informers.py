"""The informers of one process: one for each resource, shared by all users.

A control plane whose loops each followed the pods by themselves would decode every change as often as there are loops. So each loop asks
here, reads the shared cache and adds a handler of its own. A handler that fails is reported and misses that change; the
other loops, and the informer, go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, TypeVar, cast

from drayman.cluster.cache import Indexer
from drayman.cluster.client import Client
from drayman.cluster.informer import Handler, Informer, Selection
from drayman.cluster.resources import Resource

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)


class Informers:
    """Informers over all namespaces, made when first asked for."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # The codec is part of the key: the same resource as structs and as plain values is two caches.
        self._informers: dict[tuple[Resource[Any], object, str], Informer[Any]] = {}
        self._started: set[int] = set()
        self._told_absent: set[str] = set()

    def informer(
        self,
        resource: Resource[T],
        *,
        indexers: Mapping[str, Indexer[T]] | None = None,
        label_selector: str = "",
    ) -> Informer[T]:
        """The informer of a resource, or of its objects with these labels. It follows once `start` has been called after this.

        Raises ValueError if there is a different index of the same name.
        """
        key = (resource, resource.codec, label_selector)
        found = cast("Informer[T] | None", self._informers.get(key))
        if found is None:
            report = partial(_handler_failed, resource.qualified)
            selection = Selection(resource, label_selector=label_selector)
            found = Informer(self._client, selection, on_failure=report)
            self._informers[key] = found
        found.cache.add_indexers(indexers or {})
        return found

    async def start(self) -> None:
        """Starts the informers that were asked for since the last call."""
        for informer in self._informers.values():
            if id(informer) not in self._started:
                self._started.add(id(informer))
                informer.start()

    async def wait_synced(self) -> None:
        """Returns when every informer that was started has reported its first list."""
        for informer in tuple(self._informers.values()):
            if id(informer) in self._started:
                await informer.wait_synced()
        self._tell_absent()

    def _tell_absent(self) -> None:
        """In one line: most clusters are without some of what can be installed."""
        absent = {each.resource.qualified for each in self._informers.values() if each.is_absent}
        if fresh := sorted(absent - self._told_absent):
            _log.info("the cluster has no %s; doing without", ", ".join(fresh))
        self._told_absent |= absent

    async def wait_seen(self, versions: Mapping[str, str]) -> None:
        """Returns when handlers for these resources have been notified of what was written up to these versions."""
        for informer in tuple(self._informers.values()):
            version = versions.get(informer.resource.qualified)
            if version is not None and id(informer) in self._started:
                await informer.wait_seen(version)

    async def stop(self) -> None:
        """Ends all of them. They cannot be started again. Raises what had ended one of them before, once all have ended."""
        stopping = (informer.stop() for informer in self._informers.values())
        for outcome in await asyncio.gather(*stopping, return_exceptions=True):
            if outcome is not None:
                raise outcome


class Handlers:
    """The handlers of one loop, which are removed together when it ends before the informers do."""

    def __init__(self, informers: Informers) -> None:
        self.informers = informers
        self._added: list[tuple[Informer[Any], Handler[Any]]] = []

    def add(self, resource: Resource[T], handler: Handler[T]) -> None:
        """Notify a handler of every change, and first of what exists. See `Informer.add_handler`."""
        informer = self.informers.informer(resource)
        informer.add_handler(handler)
        self._added.append((informer, handler))

    def remove_all(self) -> None:
        """Must not be called by a handler."""
        for informer, handler in self._added:
            informer.remove_handler(handler)
        self._added.clear()


def _handler_failed(resource: str, error: Exception) -> None:
    _log.error("a handler of %s failed and has missed a change", resource, exc_info=error)
