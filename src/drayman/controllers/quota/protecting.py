"""Queues and flavors that are in use stay until they are not: a ClusterQueue while workloads hold its quota, a ResourceFlavor while a
ClusterQueue has quota of it.

They have Kueue's finalizer as long as they are in use, and not otherwise, so that nothing unused ever waits for this loop. Whoever deletes
one that is in use is told so by an event. Neither is in a namespace, so that no namespace waits for them.
Where queues are not at work, `Unprotecting` lets go of what is to be deleted, unless a Kueue is there that has the same finalizer.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any, Final

from drayman.api.kueue import ClusterQueue, ResourceFlavor
from drayman.api.times import seconds_of
from drayman.cluster.client import Client
from drayman.cluster.errors import NotFoundError
from drayman.cluster.event_buffer import Reference
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.patches import json_patch
from drayman.cluster.resources import LEASES, JsonObject, Resource, typed
from drayman.controllers.quota.admitting import Admitting
from drayman.controllers.quota.loop import Key, Loop
from drayman.controllers.quota.shared import Clock, Shared
from drayman.quota.settings import KUEUE_NAMESPACE
from drayman.workloads.queued.names import IN_USE

CLUSTER_QUEUES: Final = typed(ClusterQueue)
FLAVORS: Final = typed(ResourceFlavor)
_KINDS: Final[dict[str, Resource[Any]]] = {"queue": CLUSTER_QUEUES, "flavor": FLAVORS}
"""By what stands in place of the namespace in keys."""
_GATHER_S: Final = 0.1
KUEUE_LEASE: Final = "c1f6bfd2.kueue.x-k8s.io"
"""What Kueue's own process holds while it is at work."""
_LEASE_S: Final = 60.0


class Protecting:
    """Gives finalizers to what is in use, and takes them off again."""

    def __init__(self, shared: Shared, admitting: Admitting) -> None:
        self._shared = shared
        self._admitting = admitting
        self.loop = Loop("queues and flavors in use", self.attend, workers=1)
        self._caches: dict[str, Any] = {}
        self._used_flavors: dict[str, str] = {}
        """By name, one of the queues that have it."""
        self._timer: asyncio.TimerHandle | None = None
        for kind, resource in _KINDS.items():
            informer = shared.informers.informer(resource)
            self._caches[kind] = informer.cache
            informer.add_handler(partial(self._notice, kind))
        admitting.listen_to_counts(self._changed)

    def _notice(self, kind: str, notice: Notice[Any]) -> None:
        old, new = notice.old, notice.object.metadata
        if new.deletion_timestamp and (old is None or not old.metadata.deletion_timestamp):
            self._report(kind, notice.object)
        self._changed()

    def _report(self, kind: str, value: Any) -> None:
        """Say of what is to be deleted and in use why it stays."""
        user = self._user(kind, value.metadata.name)
        if user:
            note = f"It is deleted when it is not in use any more: {user} needs it"
            reference = Reference.to(_KINDS[kind], value)
            self._shared.recorder.record(reference, "Warning", "InUse", note, "InUse")

    def _changed(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_GATHER_S, self._look)

    def _look(self) -> None:
        """Have everything be attended to that is not as it should be. What is used is found out once for all."""
        self._timer = None
        if not self._admitting.knows_all:
            return  # It says so when it does.
        self._used_flavors = {
            flavor: queue.name
            for queue in self._admitting.state.books.queues.values()
            for flavor in queue.flavors
        }
        for kind, cache in self._caches.items():
            for value in cache:
                if _is_protected(value) != bool(self._user(kind, value.metadata.name)):
                    self.loop.queue.add((kind, value.metadata.name))

    def _user(self, kind: str, name: str) -> str:
        """Who needs a queue or a flavor; empty if nobody does."""
        if kind == "flavor":
            found = self._used_flavors.get(name)
            return "" if found is None else f"ClusterQueue {found}"
        queue = self._admitting.state.books.queues.get(name)
        holders = {} if queue is None else queue.holders
        return f"Workload {next(iter(holders))}" if holders else ""

    async def attend(self, key: Key) -> None:
        kind, name = key
        value = self._caches[kind].get(name)
        user = self._user(kind, name)
        if value is None or _is_protected(value) == bool(user):
            return
        if user and value.metadata.deletion_timestamp is not None:
            return  # It is too late: somebody else's finalizer keeps it.
        await set_finalizer(self._shared.client, _KINDS[kind], value, wanted=bool(user))


class Unprotecting:
    """Where no queues are at work: lets go of what is to be deleted. `run` may be called again after it failed."""

    def __init__(self, client: Client, informers: Informers, *, clock: Clock = time.time) -> None:
        self._client = client
        self._clock = clock
        self._informers = informers
        self.loop = Loop("queues and flavors without a controller", self.attend, workers=1)
        self._caches: dict[str, Any] = {}
        for kind, resource in _KINDS.items():
            informer = informers.informer(resource)
            self._caches[kind] = informer.cache
            informer.add_handler(partial(self._notice, kind))

    async def run(self) -> None:
        """Works until cancelled."""
        await self._informers.wait_synced()
        async with asyncio.TaskGroup() as group:
            self.loop.start(group)

    def _notice(self, kind: str, notice: Notice[Any]) -> None:
        if notice.type != "DELETED" and _is_stuck(notice.object):
            self.loop.queue.add((kind, notice.object.metadata.name))

    async def attend(self, key: Key) -> None:
        kind, name = key
        value = self._caches[kind].get(name)
        if value is None or not _is_stuck(value):
            return
        if await self._has_kueue():
            self.loop.queue.add_after(key, _LEASE_S)
            return
        await set_finalizer(self._client, _KINDS[kind], value, wanted=False)

    async def _has_kueue(self) -> bool:
        """Whether a Kueue is at work, whose finalizer it is then."""
        try:
            lease = await self._client.get(LEASES, KUEUE_LEASE, KUEUE_NAMESPACE)
        except NotFoundError:
            return False
        renewed = seconds_of((lease.get("spec") or {}).get("renewTime"))
        return renewed is not None and self._clock() - renewed < _LEASE_S


async def set_finalizer(
    client: Client, resource: Resource[Any], value: Any, *, wanted: bool
) -> None:
    """Put the finalizer on an object, or take it off."""
    metadata = value.metadata
    others = [each for each in metadata.finalizers if each != IN_USE]
    operations: list[JsonObject] = [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": metadata.resource_version},
        {
            "op": "add",
            "path": "/metadata/finalizers",
            "value": [*others, IN_USE] if wanted else others,
        },
    ]
    await client.patch(resource, metadata.name, json_patch(operations))


def _is_protected(value: Any) -> bool:
    return IN_USE in value.metadata.finalizers


def _is_stuck(value: Any) -> bool:
    return _is_protected(value) and value.metadata.deletion_timestamp is not None
