"""What every verb works with: the store, the table of resources, admission, rights, time and randomness."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

from drayman.apiserver.protocol.access import AllowAll, Authorizer
from drayman.apiserver.protocol.environment import Clock, Ids, RandomIds, SystemClock
from drayman.apiserver.reaching.nodes import NodeApis
from drayman.apiserver.served.acting import Part
from drayman.apiserver.served.resources import Resources
from drayman.apiserver.served.strategy import Object
from drayman.apiserver.verbs.admission import Admission
from drayman.cluster.breaks import Turnstile
from drayman.cluster.embedded.model import Key, Operation, Put, Stored
from drayman.cluster.embedded.watching import Subscription

if TYPE_CHECKING:
    from drayman.apiserver.requests.calls import Call


class ObjectStore(Protocol):
    """What the verbs need of a store: the store itself, or a batch of writes to it."""

    @property
    def revision(self) -> int: ...

    def get(self, key: Key) -> Stored | None: ...

    def latest(self, key: Key) -> Stored | None: ...

    def list(self, resource: str, namespace: str | None = None) -> tuple[Stored, ...]: ...

    def list_at(
        self, resource: str, namespace: str | None, revision: int
    ) -> tuple[Stored, ...]: ...

    def remember_list(self, resource: str, namespace: str | None) -> None: ...

    def watch(self, resource: str, namespace: str | None = None, *, since: int) -> Subscription: ...

    async def write(self, operations: Sequence[Operation]) -> tuple[Stored, ...]: ...


async def put(call: Call, existing: Stored, encode: Callable[[int], bytes]) -> Stored:
    """Write the object of a call in place of what exists; for a dry run, only say how it would be stored."""
    if call.dry_run:
        return Stored(call.key, existing.revision, encode(existing.revision))
    (stored,) = await call.core.store.write([Put(call.key, encode, expected=existing.revision)])
    return stored


@dataclass(frozen=True, slots=True)
class StoredObjects:
    """The objects of a store, as of the latest write, for rules that look at other objects. Read-only."""

    store: ObjectStore

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        stored = self.store.latest(Key(resource, namespace, name))
        return None if stored is None else stored.value

    def list(self, resource: str, namespace: str | None = None) -> list[Object]:
        return [stored.value for stored in self.store.list(resource, namespace)]


@dataclass(slots=True)
class Core:
    """The server without its surroundings."""

    store: ObjectStore
    resources: Resources = field(default_factory=Resources)
    admission: Admission = field(default_factory=Admission)
    authorizer: Authorizer = field(default_factory=AllowAll)
    clock: Clock = field(default_factory=SystemClock)
    ids: Ids = field(default_factory=RandomIds)
    nodes: NodeApis = field(default_factory=NodeApis)
    """How logs and commands of containers are reached."""
    running: frozenset[Part] = frozenset()
    """Which parts of a cluster run in the server's process; empty if other processes run them."""
    lines: WeakValueDictionary[Key, asyncio.Lock] = field(default_factory=WeakValueDictionary)
    """Where the large writes of an object wait for each other."""
    selecting: Turnstile = field(default_factory=Turnstile)
    """Where requests wait for each other that match many objects with a selector."""
    objects: StoredObjects = field(init=False)

    def __post_init__(self) -> None:
        self.objects = StoredObjects(self.store)
