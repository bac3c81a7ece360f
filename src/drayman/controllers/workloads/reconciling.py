"""The loop that every controller here has: keys come in, each is compared with what it should be and brought closer.

What to do is decided elsewhere, by pure functions; here is what they share: the queue, the workers, retries, events, and writing a status
only if there was no other write in between. A controller reads its objects through `find`, which knows the answers to its own writes, so
that it never acts twice on a state that it has changed itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final, Generic, TypeVar

from drayman.api import codec
from drayman.api.core import EventType
from drayman.api.struct import ApiStruct
from drayman.cluster.backoff import Backoff
from drayman.cluster.cache import Cache
from drayman.cluster.client import Client
from drayman.cluster.errors import ClusterError, ConflictError, NotFoundError, is_final
from drayman.cluster.event_buffer import Reference
from drayman.cluster.informer import Handler, Notice
from drayman.cluster.informers import Informers
from drayman.cluster.patches import json_patch
from drayman.cluster.recording import PER_OBJECT, EventRecorder
from drayman.cluster.resources import JsonObject, Resource
from drayman.cluster.workqueue import WorkQueue
from drayman.controllers.workloads.holdings import HasMetadata, version_of

T = TypeVar("T", bound=HasMetadata)
U = TypeVar("U")
Key = tuple[str, str]
"""Namespace and name."""
LabelSet = frozenset[tuple[str, str]]
"""Labels, to be looked up."""
_log: Final = logging.getLogger(__name__)

_RETRIES: Final = Backoff(initial=0.005, cap=60.0)


Clock = Callable[[], float]
"""Seconds since the epoch."""


class Reconciler(ABC, Generic[T]):
    """A controller of one kind of object."""

    resource: ClassVar[Resource[Any]]
    component: ClassVar[str]
    """Who the events are from."""
    workers: ClassVar[int] = 4

    def __init__(self, client: Client, informers: Informers, *, clock: Clock = time.time) -> None:
        self.client = client
        self.informers = informers
        self.clock = clock
        self.recorder = EventRecorder(client, self.component, per_object=PER_OBJECT)
        self.queue: WorkQueue[Key] = WorkQueue(backoff=_RETRIES)
        self._own: dict[Key, T] = {}
        """Objects as our own last write left them, while the cache may not have them yet."""
        self._by_namespace: dict[str, dict[str, T]] = {}
        self.informer = self.informers.informer(self._resource)
        self.follow_others()
        self.informer.add_handler(self._changed)

    def follow_others(self) -> None:
        """What else a controller follows, besides objects of its kind. Called once, before it hears of any object."""

    def follow(self, resource: Resource[U], changed: Handler[U]) -> Cache[U]:
        """The objects of another kind, after `changed` is registered for their changes."""
        informer = self.informers.informer(resource)
        informer.add_handler(changed)
        return informer.cache

    @property
    def _resource(self) -> Resource[T]:
        return self.resource

    @abstractmethod
    async def reconcile(self, key: Key) -> None:
        """Brings one object closer to what it should be. Called again after each change, and after each failure."""

    async def attend(self, key: Key) -> None:
        """Works on a key, which may stand for something else than an object."""
        await self.reconcile(key)

    async def run(self) -> None:
        """Works until cancelled. Informers have to be running."""
        await self.informers.wait_synced()
        async with self.recorder, asyncio.TaskGroup() as group:
            for number in range(self.workers):
                name = f"{self.resource.plural} controller {number}"
                group.create_task(self._work(), name=name)

    def find(self, key: Key) -> T | None:
        """An object as it is known to be, our own writes included."""
        cached = self.informer.cache.get(key[1], key[0])
        own = self._own.get(key)
        if own is None:
            return cached
        if cached is not None and cached.metadata.uid == own.metadata.uid:
            versions = (self.informer.resource_version, cached.metadata.resource_version)
            if max(map(version_of, versions)) < version_of(own.metadata.resource_version):
                return own
        del self._own[key]
        return cached

    def in_namespace(self, namespace: str) -> list[T]:
        """The objects of this controller's kind in a namespace."""
        return list(self._by_namespace.get(namespace, {}).values())

    def has_any(self, namespace: str) -> bool:
        """Whether there are such objects in a namespace."""
        return bool(self._by_namespace.get(namespace))

    async def write_status(
        self, value: T, status: ApiStruct, annotations: dict[str, str] | None = None
    ) -> T:
        """Replaces a status, and annotations where the kind lets them be written with it.

        Raises ConflictError where the object has changed meanwhile.
        """
        metadata = value.metadata
        version = metadata.resource_version
        changes: list[JsonObject] = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/status", "value": codec.to_dict(status)},
        ]
        if annotations is not None and annotations != metadata.annotations:
            changes.append({"op": "add", "path": "/metadata/annotations", "value": annotations})
        written = await self.client.patch(
            self._resource,
            metadata.name,
            json_patch(changes),
            metadata.namespace or None,
            subresource="status",
        )
        self.wrote(written)
        return written

    def wrote(self, value: T) -> None:
        """Remembers an object as a write of ours left it."""
        self._own[value.metadata.namespace, value.metadata.name] = value

    def record(self, value: T, type_: EventType, reason: str, note: str) -> None:
        """Records an event about an object."""
        self.recorder.record(Reference.to(self._resource, value), type_, reason, note, reason)

    def concerns(self, value: T) -> bool:
        """Whether an object is one for this controller. What is not is neither remembered nor put into the queue."""
        return True

    def object_changed(self, notice: Notice[T]) -> None:
        """Called on each change to an object of this kind, after it was put into the queue."""

    def _changed(self, notice: Notice[T]) -> None:
        if not self.concerns(notice.object):
            return
        metadata = notice.object.metadata
        if notice.type == "DELETED":
            self._drop_gone(notice.object)
        else:
            self._by_namespace.setdefault(metadata.namespace, {})[metadata.name] = notice.object
        self.queue.add((metadata.namespace, metadata.name))
        self.object_changed(notice)

    def _drop_gone(self, value: T) -> None:
        """Keep nothing of an object that is gone: there is no bound on the names of objects and namespaces that come and go."""
        metadata = value.metadata
        key = (metadata.namespace, metadata.name)
        own = self._own.get(key)
        if own is not None and own.metadata.uid == metadata.uid:
            del self._own[key]
        siblings = self._by_namespace.get(metadata.namespace, {})
        siblings.pop(metadata.name, None)
        if not siblings:
            self._by_namespace.pop(metadata.namespace, None)

    async def _work(self) -> None:
        while True:
            (key,) = await self.queue.take()
            await self._attend(key)

    async def _attend(self, key: Key) -> None:
        try:
            await self.attend(key)
        except (ConflictError, NotFoundError) as error:
            # Another writer was quicker; the cache will show what it did.
            _log.debug("%s %s/%s: %s", self.resource.plural, *key, error)
            self.queue.retry(key)
        except ClusterError as error:
            self._failed(key, error)
        except Exception:
            # A mistake about one object must not end the work on all others.
            _log.exception("%s %s/%s failed; trying again", self.resource.plural, *key)
            self.queue.retry(key)
        else:
            self.queue.forget(key)
        finally:
            self.queue.done(key)

    def _failed(self, key: Key, error: ClusterError) -> None:
        if is_final(error):
            _log.warning("%s %s/%s: %s; waiting for a change", self.resource.plural, *key, error)
            self.queue.rest(key)
        else:
            _log.warning("%s %s/%s: %s; trying again", self.resource.plural, *key, error)
            self.queue.retry(key)
