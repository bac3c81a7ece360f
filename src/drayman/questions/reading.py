"""Reading a cluster at one moment, with the user's permissions.

What has to be known for any answer (the nodes, their devices, and what is in the user's own namespace) must be readable. The rest is
read as far as it may be: what is refused is listed as unseen, so that answers can say what they do not take into account.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import dataclass, field, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from drayman.api.custom_groups import KueueTopology
from drayman.api.volume_binding import class_name_of, is_bound, waits_for_consumer
from drayman.cluster import Client, ListOptions
from drayman.cluster.client import Page
from drayman.cluster.errors import ForbiddenError, NotFoundError, UnreachableError
from drayman.cluster.resources import CSI_DRIVERS, STORAGE_CAPACITIES, Resource, typed
from drayman.cluster.rights import subject_of
from drayman.explain.hidden import OUTSIDE
from drayman.placement.followed import HELD, Read
from drayman.questions.errors import MayNotListError, RefusedList

if TYPE_CHECKING:
    from drayman.placement.world import Objects, World

T = TypeVar("T")

_LONGEST_FIRST: Final = ("slices", "pods", "claims", "nodes")
"""Of the lists that are read concurrently, those to begin with."""
_STEPS: Final = (
    "drayman.cel.device",
    "drayman.inventory",
    "drayman.allocator",
    "drayman.placement.fit",
    "drayman.placement.world",
)
"""What every engine imports, in parts of about the same size."""
_CONNECTING_S: Final = 0.01
"""Long enough for the requests to be sent, so that the server is busy meanwhile."""
_BREATH_S: Final = 0.001
IN_PAGES: Final = ListOptions(limit=10_000, omit_managed_fields=True)
"""Large pages, because the user waits for the last one."""
_PLAIN: Final = {typed(kind.type).plural: typed(kind.type).group for kind in reversed(HELD)}
"""By plural name, the first group that has it: its kind goes by that name alone, others by their group too."""
_AT_ONCE: Final = 2
"""How many lists are read concurrently, each on its own connection: opening one is work for a server that may be busy."""


async def read_world(
    client: Client,
    *,
    namespace: str | None = None,
    engine: str = "drayman.placement.world",
    workloads: bool = False,
    moves: bool = False,
    queues: bool = False,
) -> World:
    """The cluster as it is now, on demand with everything that makes pods, with what keeps pods from being moved, or with queues.

    A few lists are requested at once, the long ones first.

    With a namespace, being allowed to read that one is enough. What will be asked of the world is imported meanwhile: that takes about as
    long as a large cluster needs to answer. Raises MayNotListError where a permission that the answer needs is missing, and ClusterError.
    """
    reader = Reader(client, namespace, workloads, moves, queues)
    objects = await reader.objects(_imported(engine, reader))
    from drayman.placement.world import World

    world = World(objects, time.time(), tuple(sorted(reader.unseen)), reader.sorted_versions())
    if not objects.cluster_queues:
        return world
    from drayman.questions.kueue_configuration import configuration_of

    return world.with_queue_configuration(await configuration_of(client))


async def _imported(engine: str, reader: Reader) -> None:
    """Import in small steps, and handle the answers in between: a thread would switch with them thousands of times."""
    await asyncio.sleep(_CONNECTING_S)
    for name in (*_STEPS, engine):
        if reader.lost is not None:  # there will be no world to ask about
            return
        import_module(name)
        await asyncio.sleep(_BREATH_S)


@dataclass(slots=True)
class Reader:
    """Reads lists, and keeps track of what was refused."""

    client: Client
    namespace: str | None
    workloads: bool = False
    moves: bool = False
    queues: bool = False
    unseen: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    connections: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    lost: UnreachableError | None = None
    """Why there was no answer, once one has failed: the remaining lists would wait for just as long."""

    async def objects(self, meanwhile: Awaitable[object]) -> Objects:
        reads = {Read.NEEDED, Read.WANTED}
        reads |= {Read.FOR_WORKLOADS} if self.workloads else set()
        reads |= {Read.FOR_MOVES} if self.moves else set()
        kinds = {kind.member: kind for kind in HELD if kind.read in reads}
        lists: dict[str, asyncio.Task[tuple[Any, ...]]] = {}
        for member in dict.fromkeys((*_LONGEST_FIRST, *kinds)):
            kind = kinds[member]
            reading = (
                self.read_in(typed(kind.type), kind.namespace)
                if kind.namespace
                else self.read(typed(kind.type), self.namespace, needed=kind.read is Read.NEEDED)
            )
            lists[member] = asyncio.create_task(reading)
        # Run to the end even if one fails, so that the same cluster always gives the same error.
        await asyncio.gather(meanwhile, *lists.values(), return_exceptions=True)
        if self.lost is not None:
            raise self.lost
        await raise_refused(self.client, (task.exception() for task in lists.values()))
        from drayman.placement.world import Objects

        found = {
            member.name: lists[member.name].result()
            for member in fields(Objects)
            if member.name in lists
        }
        objects = await self._with_queues(await self._with_groups(Objects(**found)))
        return await self._with_storage_left(objects)

    async def _with_groups(self, objects: Objects) -> Objects:
        """Groups, queues and topologies of other schedulers: requested only if there are gangs, or may be some in what is asked about."""
        from drayman.placement.gangs.dialects.kai import QUEUE
        from drayman.placement.gangs.membership import reading_of, statements_of

        if not (
            self.workloads
            or self.queues
            or any(reading_of(pod, {}) is not None for pod in objects.pods)
            or any(QUEUE in pod.metadata.labels for pod in objects.pods)
            or any(statements_of(job) is not None for job in objects.jobs)
        ):
            return objects
        return await self._with(objects, Read.FOR_GANGS)

    async def _with_queues(self, objects: Objects) -> Objects:
        """Queues and what waits in them: requested only if something does, or the question is about queues."""
        from drayman.workloads.queued.names import QUEUE

        if (
            self.queues
            or any(QUEUE in pod.metadata.labels for pod in objects.pods)
            or any(QUEUE in job.metadata.labels for job in objects.jobs)
        ):
            found = await self._with(objects, Read.FOR_QUEUES)
            if found.kueue_topologies or not found.flavors:
                return found
            return replace(found, kueue_topologies=await self.read(typed(KueueTopology)))
        return objects

    async def _with(self, objects: Objects, read: Read) -> Objects:
        """The same with the kinds that are read on this occasion."""
        kinds = [kind for kind in HELD if kind.read is read]
        lists = await asyncio.gather(
            *(self.read(typed(kind.type), self.namespace) for kind in kinds)
        )
        found: dict[str, Any] = {kind.member: each for kind, each in zip(kinds, lists, strict=True)}
        return replace(objects, **found)

    async def _with_storage_left(self, objects: Objects) -> Objects:
        """What storage drivers can still provision: requested only if a claim is to get its volume where a pod goes."""
        lazy = {each.metadata.name for each in objects.storage_classes if waits_for_consumer(each)}
        claims = objects.volume_claims
        if not any(not is_bound(claim) and class_name_of(claim) in lazy for claim in claims):
            return objects
        drivers = await self.read(CSI_DRIVERS)
        objects = replace(objects, storage_drivers=drivers)
        if not any(driver.spec.storage_capacity for driver in drivers):
            return objects
        return replace(objects, storage_capacities=await self.read(STORAGE_CAPACITIES))

    def sorted_versions(self) -> dict[str, str]:
        """The same order each time, whichever list came first."""
        return dict(sorted(self.versions.items()))

    async def read(
        self, resource: Resource[T], namespace: str | None = None, *, needed: bool = False
    ) -> tuple[T, ...]:
        """All of a resource, or what the namespace has of it if the user may not list more. Raises MayNotListError if it is needed."""
        scopes = (None, namespace) if resource.namespaced and namespace is not None else (None,)
        for scope in scopes:
            try:
                found = await self._all(resource, scope)
            except ForbiddenError as error:
                refusal = error
                continue
            if scope is not None:
                self.unseen.append(beyond(resource, scope))
            return found
        if needed:
            raise denied(resource, scopes[-1], refusal) from refusal
        self.unseen.append(resource.qualified)
        return ()

    async def read_in(self, resource: Resource[T], namespace: str) -> tuple[T, ...]:
        """What the only namespace that matters has of a resource."""
        try:
            return await self._all(resource, namespace)
        except ForbiddenError:
            self.unseen.append(f"{resource.qualified} in namespace {namespace}")
            return ()

    async def _all(
        self, resource: Resource[T], namespace: str | None, tried: int = 0
    ) -> tuple[T, ...]:
        try:
            async with self.connections:
                if self.lost is not None:
                    raise self.lost
                page: Page[T] = await self.client.list_all(resource, namespace, options=IN_PAGES)
        except UnreachableError as error:
            self.lost = error
            raise
        except NotFoundError:
            if not resource.optional:
                raise
            if tried == len(resource.other_versions):
                return ()
            return await self._all(resource.in_next_version(), namespace, tried + 1)
        self.versions[_listed_as(resource)] = page.resource_version
        return page.items


def sources(world: World, namespace: str | None) -> Iterator[tuple[Resource[Any], str | None, str]]:
    """What a world was read from: resources, the namespace if it was only one, and the version."""
    # Leases are renewed every few seconds, and what they say changes when they are not.
    for resource in (typed(kind.type) for kind in HELD if not kind.namespace):
        version = world.versions.get(_listed_as(resource))
        if version is not None:
            is_limited = namespace is not None and beyond(resource, namespace) in world.unseen
            yield resource, namespace if is_limited else None, version


def _listed_as(resource: Resource[Any]) -> str:
    """The name under which the version of a list is kept."""
    is_plain = _PLAIN.get(resource.plural) == resource.group
    return resource.plural if is_plain else resource.qualified


def beyond(resource: Resource[Any], namespace: str) -> str:
    """What a user who may read only one namespace does not see of a resource."""
    return f"{resource.qualified}{OUTSIDE}{namespace}"


def denied(
    resource: Resource[Any], namespace: str | None, error: ForbiddenError
) -> MayNotListError:
    """The error where something that the answer needs may not be listed."""
    return MayNotListError((RefusedList(resource.qualified, namespace, str(error)),))


async def raise_refused(client: Client, errors: Iterable[BaseException | None]) -> None:
    """Raises one MayNotListError with all that is missing, if that is among the errors."""
    found = [error for error in errors if isinstance(error, MayNotListError)]
    if found:
        refused = [each for error in found for each in error.refused]
        subject = await subject_of(client)
        raise MayNotListError(
            refused, subject=subject, any_namespace=all(error.any_namespace for error in found)
        ) from found[0]
