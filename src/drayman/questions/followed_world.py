"""A cluster that is followed, to be asked questions about again and again while it changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from drayman.api.core import Pod
from drayman.api.meta import ObjectMeta
from drayman.api.resource import ResourceClaim
from drayman.cluster import Client
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Handlers, Informers
from drayman.cluster.resources import PODS, RESOURCE_CLAIMS, typed
from drayman.placement.followed import HELD
from drayman.placement.world import Objects, World
from drayman.questions.errors import QuestionError
from drayman.questions.reading import sources


class FollowedWorld:
    """The objects of a cluster as they are now."""

    def __init__(self, informers: Informers, members: Iterable[str], first: World) -> None:
        self._informers = informers
        self._kinds = [kind for kind in HELD if kind.member in set(members)]
        self._first = first
        self._changed = asyncio.Event()

    def now(self) -> World:
        """The cluster as it is now."""
        objects: dict[str, Any] = {
            kind.member: tuple(
                sorted(self._informers.informer(typed(kind.type)).cache, key=_name_of)
            )
            for kind in self._kinds
        }
        first = self._first
        return World(
            Objects(**objects),
            time.time(),
            first.unseen,
            features=first.features,
            prices=first.prices,
            queue_configuration=first.queue_configuration,
        )

    def pods(self) -> list[Pod]:
        """The pods alone."""
        return list(self._informers.informer(PODS).cache)

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        return self._informers.informer(RESOURCE_CLAIMS).cache.get(name, namespace)

    async def change(self) -> None:
        """Returns when a pod or a claim has changed since this was called last."""
        await self._changed.wait()
        self._changed.clear()

    def note(self, _: Notice[Any]) -> None:
        self._changed.set()


@asynccontextmanager
async def followed(client: Client, world: World, namespace: str) -> AsyncIterator[FollowedWorld]:
    """Follow what a world was read from. Raises QuestionError if only a part of the cluster could be read."""
    read = {resource.qualified: scope for resource, scope, _ in sources(world, namespace)}
    limited = sorted(name for name, scope in read.items() if scope is not None)
    if limited:
        raise QuestionError(
            f"this needs the permission to list {limited[0]} in the whole cluster, not only in {namespace}"
        )
    members = [kind.member for kind in HELD if typed(kind.type).qualified in read]
    informers = Informers(client)
    handlers = Handlers(informers)
    found = FollowedWorld(informers, members, world)
    for kind in HELD:
        if kind.member in members:
            informers.informer(typed(kind.type))
    handlers.add(PODS, found.note)
    handlers.add(RESOURCE_CLAIMS, found.note)
    try:
        await informers.start()
        await informers.wait_synced()
        yield found
    finally:
        handlers.remove_all()
        await informers.stop()


def _name_of(value: object) -> tuple[str, str]:
    metadata: ObjectMeta = value.metadata  # type: ignore[attr-defined]
    return metadata.namespace, metadata.name
