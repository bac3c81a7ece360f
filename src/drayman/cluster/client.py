"""The one way to talk to a cluster.

Everything above this package talks to a `Client` and does not know which: `HttpClient` speaks to any Kubernetes API server, the embedded
one included, and `InProcessClient` to the embedded one in its own process. This class holds what is the same for both: the verbs as callers
use them, typed by `Resource`, and the subresources in terms of the verbs. An implementation supplies the methods that begin with an
underscore.

Every method raises a `StatusError` of `drayman.cluster.errors` when the server refuses, `UnreachableError` when there is no
answer, and ValueError when the request itself makes no sense, such as a pod without a namespace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import ClassVar, Final, Generic, Self, TypeVar

import msgspec
from msgspec import Struct

from drayman.api import codec
from drayman.api.struct import Json
from drayman.cluster.backend import Target
from drayman.cluster.errors import ExpiredError
from drayman.cluster.options import (
    AT_ONCE,
    EVERYTHING,
    LATEST,
    PLAINLY,
    DeleteOptions,
    GetOptions,
    ListOptions,
    WatchOptions,
    WriteOptions,
)
from drayman.cluster.patches import Patch
from drayman.cluster.resources import PODS, SERVICE_ACCOUNTS, Codec, Resource, ValueCodec
from drayman.cluster.watching import Watch
from drayman.cluster.writes import BindWrite, Write

T = TypeVar("T")

PAGE_SIZE: Final = 500
"""Default number of items per page, as in kubectl."""
_LIST_ATTEMPTS: Final = 3


class Token(Struct, frozen=True):
    """Of a service account, and when it expires, in seconds since the epoch."""

    value: str
    expires_at: float


class Page(Struct, Generic[T], frozen=True):
    """A list, or one page of it."""

    items: tuple[T, ...]
    resource_version: str
    continue_: str = ""
    remaining: int | None = None

    @classmethod
    def of(cls, metadata: codec.ListMeta, items: tuple[T, ...]) -> Page[T]:
        return cls(
            items, metadata.resource_version, metadata.continue_, metadata.remaining_item_count
        )


class Client(ABC):
    """A connection to one cluster. Close it, or use it in `async with`."""

    transactional: ClassVar[bool] = False
    """Whether `write_many` is all or nothing."""

    async def get(
        self,
        resource: Resource[T],
        name: str,
        namespace: str | None = None,
        *,
        options: GetOptions = LATEST,
    ) -> T:
        return await self._get(target_of_one(resource, name, namespace), resource.codec, options)

    async def list(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        options: ListOptions = EVERYTHING,
    ) -> Page[T]:
        """One page: the whole list unless `options.limit` is set. Without a namespace, covers all namespaces."""
        return await self._list(resource.target(namespace), resource.codec, options)

    async def pages(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        options: ListOptions = EVERYTHING,
    ) -> AsyncIterator[Page[T]]:
        """A list page by page, all of one version. Raises ExpiredError if it takes too long."""
        options = msgspec.structs.replace(options, limit=options.limit or PAGE_SIZE)
        while True:
            page = await self.list(resource, namespace, options=options)
            yield page
            if not page.continue_:
                return
            options = msgspec.structs.replace(
                options,
                continue_=page.continue_,
                resource_version="",
                resource_version_match="",
            )

    async def list_all(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        options: ListOptions = EVERYTHING,
    ) -> Page[T]:
        """A whole list, fetched in pages. If it expires on the way it is started again, finally without pages."""
        for _ in range(_LIST_ATTEMPTS - 1):
            items: list[T] = []
            version = ""
            try:
                async for page in self.pages(resource, namespace, options=options):
                    items += page.items
                    version = page.resource_version
            except ExpiredError:
                continue
            return Page(tuple(items), version)
        return await self.list(
            resource, namespace, options=msgspec.structs.replace(options, limit=0)
        )

    def watch(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        options: WatchOptions,
    ) -> Watch[T]:
        """The events of a watch: `async with client.watch(...) as events: async for event in events: ...`.

        Ends when the server ends it. Raises ExpiredError when the version to begin from is no longer kept, and
        UnreachableError or ProtocolError when the stream is cut; the version of the last event is where to resume.
        """
        return self._watch(resource.target(namespace), resource, options)

    async def create(
        self,
        resource: Resource[T],
        value: T,
        namespace: str | None = None,
        *,
        options: WriteOptions = PLAINLY,
    ) -> T:
        target = target_of_create(resource, value, namespace)
        return await self._create(target, value, resource.codec, options)

    async def update(
        self,
        resource: Resource[T],
        value: T,
        *,
        subresource: str = "",
        options: WriteOptions = PLAINLY,
    ) -> T:
        """Replaces an object; with the resourceVersion it carries, only if it has not changed since."""
        return await self._update(
            target_of_update(resource, value, subresource), value, resource.codec, options
        )

    async def patch(
        self,
        resource: Resource[T],
        name: str,
        patch: Patch,
        namespace: str | None = None,
        *,
        subresource: str = "",
        options: WriteOptions = PLAINLY,
    ) -> T:
        target = target_of_one(resource, name, namespace, subresource)
        return await self._patch(target, patch, resource.codec, options)

    async def delete(
        self,
        resource: Resource[T],
        name: str,
        namespace: str | None = None,
        *,
        options: DeleteOptions = AT_ONCE,
    ) -> T | None:
        """The object as the server shows it, or None where it only says that the object is gone."""
        return await self._delete(target_of_one(resource, name, namespace), resource.codec, options)

    async def delete_collection(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        selection: ListOptions = EVERYTHING,
        options: DeleteOptions = AT_ONCE,
    ) -> tuple[T, ...]:
        """Deletes what a list with the same selection would show; returns it as it was."""
        target = resource.target(namespace)
        return await self._delete_collection(target, resource.codec, options, selection)

    async def bind(
        self,
        name: str,
        namespace: str,
        node: str,
        *,
        uid: str = "",
        options: WriteOptions = PLAINLY,
    ) -> None:
        """Assigns a pod to a node. Raises ConflictError if it is assigned already."""
        body = BindWrite(name, namespace, node, uid).body()
        target = PODS.target(namespace, name, "binding")
        await self._create(target, body, ValueCodec("v1", "Binding"), options)

    async def evict(self, name: str, namespace: str, *, options: DeleteOptions = AT_ONCE) -> None:
        """Deletes a pod if its disruption budgets allow. Raises TooManyRequestsError if they do not."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options.body(),
        }
        target = PODS.target(namespace, name, "eviction")
        await self._create(target, body, ValueCodec("policy/v1", "Eviction"), PLAINLY)

    async def request_token(self, account: str, namespace: str, spec: dict[str, Json]) -> Token:
        """A token of a service account, as the spec of a TokenRequest asks for it."""
        kind = ValueCodec("authentication.k8s.io/v1", "TokenRequest")
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}
        target = SERVICE_ACCOUNTS.target(namespace, account, "token")
        answer = await self._create(target, body, kind, PLAINLY)
        status = answer["status"]
        expires = datetime.fromisoformat(status["expirationTimestamp"])
        return Token(status["token"], expires.timestamp())

    @abstractmethod
    async def write_many(self, writes: Sequence[Write]) -> tuple[object, ...]:
        """Several writes at once. Returns the object of each; None for bindings and for deletes answered without one.

        All or nothing where the backend has transactions. Elsewhere in order: see `drayman.cluster.in_order`.
        """

    async def write_all(self, writes: Sequence[Write]) -> None:
        """Like `write_many`, for callers that ignore the answers, which then need not be read."""
        await self.write_many(writes)

    @abstractmethod
    async def close(self) -> None:
        """Closes what is open. A second call does nothing."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @abstractmethod
    async def _get(self, target: Target, codec: Codec[T], options: GetOptions) -> T: ...

    @abstractmethod
    async def _list(self, target: Target, codec: Codec[T], options: ListOptions) -> Page[T]: ...

    @abstractmethod
    def _watch(self, target: Target, resource: Resource[T], options: WatchOptions) -> Watch[T]: ...

    @abstractmethod
    async def _create(
        self, target: Target, value: T, codec: Codec[T], options: WriteOptions
    ) -> T: ...

    @abstractmethod
    async def _update(
        self, target: Target, value: T, codec: Codec[T], options: WriteOptions
    ) -> T: ...

    @abstractmethod
    async def _patch(
        self, target: Target, patch: Patch, codec: Codec[T], options: WriteOptions
    ) -> T: ...

    @abstractmethod
    async def _delete(
        self, target: Target, codec: Codec[T], options: DeleteOptions
    ) -> T | None: ...

    @abstractmethod
    async def _delete_collection(
        self, target: Target, codec: Codec[T], options: DeleteOptions, selection: ListOptions
    ) -> tuple[T, ...]: ...


def target_of_create(resource: Resource[T], value: T, namespace: str | None) -> Target:
    """Where a create goes: to the namespace given, or the one that `value` names. Raises ValueError where neither does."""
    where = namespace or resource.codec.identity(value).namespace or None
    if resource.namespaced and where is None:
        raise ValueError(f"{resource.qualified}: which namespace?")
    return resource.target(where)


def target_of_update(resource: Resource[T], value: T, subresource: str) -> Target:
    """Where an update goes: to the object that `value` identifies.

    Raises ValueError where T does not hold the whole object, since fields it does not declare would be deleted.
    """
    if not resource.complete:
        raise ValueError(
            f"a {resource.kind} as {type(value).__name__} has not all of its fields: patch it"
        )
    found = resource.codec.identity(value)
    return target_of_one(resource, found.name, found.namespace or None, subresource)


def target_of_one(
    resource: Resource[T], name: str, namespace: str | None, subresource: str = ""
) -> Target:
    """An object by its name. Raises ValueError."""
    # An empty name would address the collection, and a delete would delete everything.
    if not name:
        raise ValueError(f"{resource.qualified}: which name?")
    return resource.target(namespace, name, subresource)
