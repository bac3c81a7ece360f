"""What a server shows, on its way to the scheduler: in order for each kind, and as late as a move says."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from drayman.cluster.cache import Cache, Indexer
from drayman.cluster.informer import Notice
from drayman.cluster.resources import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    Resource,
)
from oracle.nodes import JsonObject

KINDS = (
    NODES, DEVICE_CLASSES, RESOURCE_SLICES, DEVICE_TAINT_RULES, RESOURCE_CLAIMS, PODS, NAMESPACES,
)  # fmt: skip


class Watches:
    """Stands where informers stand: hands out what the server shows, when a move says so."""

    def __init__(self) -> None:
        self._informers = {kind.plural: Shown() for kind in KINDS}
        self._queues: dict[str, deque[tuple[Notice[Any], JsonObject]]] = {
            kind.plural: deque() for kind in KINDS
        }
        self._shown: dict[str, dict[str, Any]] = {kind.plural: {} for kind in KINDS}
        self.values: dict[str, dict[str, JsonObject]] = {kind.plural: {} for kind in KINDS}
        """What was delivered, as it was written, by kind and name."""

    def informer(
        self, resource: Resource[Any], indexers: Mapping[str, Indexer[Any]] | None = None
    ) -> Shown:
        informer = self._informers.setdefault(resource.plural, Shown())
        informer.cache.add_indexers(indexers or {})
        return informer

    def push(
        self, resource: Resource[Any], notice: Notice[Any], value: JsonObject | None = None
    ) -> None:
        self._queues[resource.plural].append((notice, value or {}))

    def deliver(self, resource: Resource[Any], most: int) -> None:
        queue, shown = self._queues[resource.plural], self._shown[resource.plural]
        values = self.values[resource.plural]
        for _ in range(min(most, len(queue))):
            notice, value = queue.popleft()
            name = notice.object.metadata.name
            known = shown.pop(name, None)
            values.pop(name, None)
            if notice.type != "DELETED":
                shown[name], values[name] = notice.object, value
                notice = Notice("ADDED" if known is None else "MODIFIED", notice.object, known)
            self._informers[resource.plural].show(notice)


class Shown:
    """The objects of one kind as far as they were delivered, and who is told of changes."""

    def __init__(self) -> None:
        self.cache: Cache[Any] = Cache({})
        self._handlers: list[Callable[[Notice[Any]], None]] = []

    def add_handler(self, handler: Callable[[Notice[Any]], None]) -> None:
        self._handlers.append(handler)

    def show(self, notice: Notice[Any]) -> None:
        metadata = notice.object.metadata
        key = (metadata.namespace, metadata.name)
        if notice.type == "DELETED":
            self.cache.remove(key)
        else:
            self.cache.put(key, notice.object)
        for handler in self._handlers:
            handler(notice)
