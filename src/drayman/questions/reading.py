"""Reading a cluster at one moment, with the permissions that the asker has.

What has to be known for any answer (the nodes, their devices, and what is in the asker's own namespace) must be readable. The rest is
read as far as it may be: what is refused is listed as unseen, so that answers can say what they do not take into account.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from drayman.api.volume_binding import class_name_of, is_bound, waits_for_consumer
from drayman.cluster import Client, ListOptions
from drayman.cluster.client import Page
from drayman.cluster.errors import ForbiddenError, NotFoundError, UnreachableError
from drayman.cluster.resources import (
    CSI_DRIVERS,
    DAEMON_SETS,
    DEPLOYMENTS,
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    JOBS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUMES,
    POD_GROUPS,
    PODS,
    REPLICA_SETS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STATEFUL_SETS,
    STORAGE_CAPACITIES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
    Resource,
)
from drayman.questions.errors import MayNotListError

if TYPE_CHECKING:
    from drayman.api.storage import (
        CSIDriver,
        CSIStorageCapacity,
        PersistentVolumeClaim,
        StorageClass,
    )
    from drayman.simulate.world import Objects, World

T = TypeVar("T")

RESOURCES: Final[tuple[Resource[Any], ...]] = (
    NODES,
    RESOURCE_SLICES,
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIMS,
    RESOURCE_CLAIM_TEMPLATES,
    PODS,
    POD_GROUPS,
    NAMESPACES,
    PERSISTENT_VOLUMES,
    VOLUME_CLAIMS,
    STORAGE_CLASSES,
    JOBS,
)
"""What has a say in where pods go."""
_STORAGE_LEFT: Final[tuple[Resource[Any], ...]] = (CSI_DRIVERS, STORAGE_CAPACITIES)
"""What has a say for pods alone whose volumes are still to be provisioned."""
WORKLOADS: Final[tuple[Resource[Any], ...]] = (
    DEPLOYMENTS,
    REPLICA_SETS,
    STATEFUL_SETS,
    DAEMON_SETS,
)
"""What makes pods and is itself asked about at times. Jobs are read always: it matters when they end."""

_STEPS: Final = (
    "drayman.cel.device",
    "drayman.inventory",
    "drayman.allocator",
    "drayman.placement.fit",
    "drayman.simulate.world",
)
"""What every engine imports, in parts of about the same size."""
_CONNECTING_S: Final = 0.01
"""Enough for the questions to be on their way: the server has something to do then."""
_BREATH_S: Final = 0.001
IN_PAGES: Final = ListOptions(limit=10_000, omit_managed_fields=True)
"""Large pages, because somebody waits for the last one."""
_AT_ONCE: Final = 2
"""Lists that are read at the same time, each on a connection of its own: opening one is work for a server that may have other work."""


async def read_world(
    client: Client,
    *,
    namespace: str | None = None,
    engine: str = "drayman.simulate.world",
    workloads: bool = False,
) -> World:
    """The cluster as it is now, on demand with all that makes pods. A few lists are asked for at once, the long ones first.

    With a namespace, being allowed to read that one is enough. What will be asked of the world is imported meanwhile: that takes about as
    long as a large cluster needs to answer. Raises MayNotListError where a permission is missing without which there is no answer, and
    ClusterError.
    """
    reader = _Reader(client, namespace, workloads)
    objects = await reader.objects(_imported(engine, reader))
    from drayman.simulate.world import World

    return World(objects, time.time(), tuple(sorted(reader.unseen)), reader.sorted_versions())


async def _imported(engine: str, reader: _Reader) -> None:
    """Import bit by bit, and see to the answers in between: a thread would take turns with them thousands of times."""
    await asyncio.sleep(_CONNECTING_S)
    for name in (*_STEPS, engine):
        if reader.lost is not None:  # there will be no world to ask about
            return
        import_module(name)
        await asyncio.sleep(_BREATH_S)


@dataclass(slots=True)
class _Reader:
    """Lists, and what became of them."""

    client: Client
    namespace: str | None
    workloads: bool = False
    unseen: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    connections: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))
    lost: UnreachableError | None = None
    """Why there was no answer, once there was none: the lists that are left would wait for as long."""

    async def objects(self, meanwhile: Awaitable[object]) -> Objects:
        start = asyncio.create_task
        slices = start(self._needed(RESOURCE_SLICES))
        pods = start(self._of_namespaces(PODS, needed=True))
        claims = start(self._of_namespaces(RESOURCE_CLAIMS, needed=True))
        nodes = start(self._needed(NODES))
        classes = start(self._needed(DEVICE_CLASSES))
        rules = start(self._wanted(DEVICE_TAINT_RULES))
        templates = start(self._of_namespaces(RESOURCE_CLAIM_TEMPLATES))
        groups = start(self._of_namespaces(POD_GROUPS))
        namespaces = start(self._wanted(NAMESPACES))
        volumes = start(self._wanted(PERSISTENT_VOLUMES))
        volume_claims = start(self._of_namespaces(VOLUME_CLAIMS))
        storage_classes = start(self._wanted(STORAGE_CLASSES))
        jobs = start(self._of_namespaces(JOBS))
        # To the end also where one fails, so that the same cluster always gives the same error.
        lists: tuple[Awaitable[object], ...]
        lists = (nodes, slices, classes, rules, claims, templates, pods, groups, namespaces)
        lists += (volumes, volume_claims, storage_classes, jobs)
        deployments = start(self._of_workloads(DEPLOYMENTS))
        replica_sets = start(self._of_workloads(REPLICA_SETS))
        stateful_sets = start(self._of_workloads(STATEFUL_SETS))
        daemon_sets = start(self._of_workloads(DAEMON_SETS))
        lists += (deployments, replica_sets, stateful_sets, daemon_sets)
        await asyncio.gather(meanwhile, *lists, return_exceptions=True)
        drivers, capacities = await self._storage_left(
            volume_claims.result(), storage_classes.result()
        )
        from drayman.simulate.world import Objects

        return Objects(
            nodes=nodes.result(),
            slices=slices.result(),
            classes=classes.result(),
            taint_rules=rules.result(),
            claims=claims.result(),
            templates=templates.result(),
            pods=pods.result(),
            pod_groups=groups.result(),
            namespaces=namespaces.result(),
            volumes=volumes.result(),
            volume_claims=volume_claims.result(),
            storage_classes=storage_classes.result(),
            storage_drivers=drivers,
            storage_capacities=capacities,
            jobs=jobs.result(),
            deployments=deployments.result(),
            replica_sets=replica_sets.result(),
            stateful_sets=stateful_sets.result(),
            daemon_sets=daemon_sets.result(),
        )

    async def _storage_left(
        self, claims: Iterable[PersistentVolumeClaim], classes: Iterable[StorageClass]
    ) -> tuple[tuple[CSIDriver, ...], tuple[CSIStorageCapacity, ...]]:
        """What drivers of storage can still provision: asked for only if a claim is to get its volume where a pod goes."""
        lazy = {each.metadata.name for each in classes if waits_for_consumer(each)}
        if not any(not is_bound(claim) and class_name_of(claim) in lazy for claim in claims):
            return (), ()
        drivers = await self._wanted(CSI_DRIVERS)
        if not any(driver.spec.storage_capacity for driver in drivers):
            return drivers, ()
        return drivers, await self._wanted(STORAGE_CAPACITIES)

    def sorted_versions(self) -> dict[str, str]:
        """The same order each time, whichever list came first."""
        return dict(sorted(self.versions.items()))

    async def _needed(self, resource: Resource[T]) -> tuple[T, ...]:
        """All of a resource without which nothing can be said."""
        try:
            return await self._all(resource, None)
        except ForbiddenError as error:
            raise denied(resource, None, error) from error

    async def _wanted(self, resource: Resource[T]) -> tuple[T, ...]:
        """All of a resource that only makes answers better."""
        try:
            return await self._all(resource, None)
        except ForbiddenError:
            self.unseen.append(resource.qualified)
            return ()

    async def _of_workloads(self, resource: Resource[T]) -> tuple[T, ...]:
        return await self._of_namespaces(resource) if self.workloads else ()

    async def _of_namespaces(self, resource: Resource[T], *, needed: bool = False) -> tuple[T, ...]:
        """All of a resource, or what the asker's namespace has of it."""
        try:
            return await self._all(resource, None)
        except ForbiddenError as error:
            if self.namespace is None:
                if needed:
                    raise denied(resource, None, error) from error
                self.unseen.append(resource.qualified)
                return ()
        return await self._of_own_namespace(resource, self.namespace, needed)

    async def _of_own_namespace(
        self, resource: Resource[T], namespace: str, needed: bool
    ) -> tuple[T, ...]:
        try:
            found = await self._all(resource, namespace)
        except ForbiddenError as error:
            if needed:
                raise denied(resource, namespace, error) from error
            self.unseen.append(resource.qualified)
            return ()
        self.unseen.append(beyond(resource, namespace))
        return found

    async def _all(self, resource: Resource[T], namespace: str | None) -> tuple[T, ...]:
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
            return ()
        self.versions[resource.plural] = page.resource_version
        return page.items


def sources(world: World, namespace: str | None) -> Iterator[tuple[Resource[Any], str | None, str]]:
    """What a world was read from: resources, the namespace where it was only one, and the version."""
    for resource in (*RESOURCES, *_STORAGE_LEFT, *WORKLOADS):
        version = world.versions.get(resource.plural)
        if version is not None:
            is_limited = namespace is not None and beyond(resource, namespace) in world.unseen
            yield resource, namespace if is_limited else None, version


def beyond(resource: Resource[Any], namespace: str) -> str:
    """What is not seen of a resource by somebody who may read one namespace."""
    return f"{resource.qualified} outside of namespace {namespace}"


def denied(
    resource: Resource[Any], namespace: str | None, error: ForbiddenError
) -> MayNotListError:
    """The error where something may not be listed without which there is no answer."""
    return MayNotListError(resource.qualified, namespace, str(error))
