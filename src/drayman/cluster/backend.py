"""What a server in the same process offers a client.

The registry of the embedded API server implements `Backend`, and `InProcessClient` is a `Client` over it. Objects go in as decoded JSON and
come out as `Document`s, which hold the stored bytes and the decoded value: whichever a reader needs is there without another trip through
JSON. The backend does admission, defaulting, validation and conflict checks, exactly as over HTTP; only the wire is missing.

A backend refuses by raising a `StatusError`, which the client passes on. `drayman.cluster.errors.error_from_value` makes one from a Status
as decoded JSON.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, NamedTuple, Protocol, TypeVar

from msgspec import Struct

from drayman.api.struct import Json
from drayman.cluster.options import (
    PLAINLY,
    DeleteOptions,
    GetOptions,
    ListOptions,
    WatchOptions,
    WriteOptions,
)

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Reader(Protocol[T_co]):
    """How an object is read. Raises `drayman.api.errors.DecodeError`."""

    @property
    def is_immutable(self) -> bool:
        """Whether what is read cannot be changed, so that several readers may share it."""
        ...

    def decode(self, data: bytes) -> T_co: ...


class Target(NamedTuple):
    """Which object, or which collection where `name` is empty, a request is about.

    `namespace` is empty for cluster-scoped resources and for requests over all namespaces.
    """

    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""


class Document(Protocol):
    """An object as the backend holds it, with kind and apiVersion of the version asked for.

    `data` is its JSON text. `value` is shared with other readers and must not be changed.
    """

    @property
    def data(self) -> bytes: ...

    @property
    def value(self) -> Mapping[str, Json]: ...

    @property
    def is_status(self) -> bool:
        """Whether it is not an object but a Status, which says what happened to one."""
        ...

    def read(self, reader: Reader[T]) -> T:
        """The object as this reader reads it. If it is immutable, all uses of the same reader share it.

        Raises DecodeError.
        """
        ...


class DocumentPage(Struct, frozen=True):
    """One page of a list."""

    items: Sequence[Document]
    resource_version: str
    continue_: str = ""
    remaining: int | None = None


class DocumentEvent(Struct, frozen=True):
    """One event of a watch. A BOOKMARK's document has a resourceVersion and perhaps annotations, nothing else.

    What would be an ERROR event over HTTP is raised instead.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    document: Document


class PartsBody(Struct, frozen=True):
    """Parts of an object by their path, and which object they are for, if given."""

    parts: Mapping[tuple[str, ...], Json]
    uid: str = ""
    resource_version: str = ""


class BindBody(Struct, frozen=True):
    """The node to assign a pod to."""

    node: str
    uid: str = ""


class BackendWrite(Struct, frozen=True):
    """One of several writes at once. `body` is the object, the patch, a `PartsBody`, a `BindBody`, or nothing for a delete."""

    verb: Literal["create", "patch", "delete", "parts", "remove", "bind"]
    target: Target
    body: Json = None
    media_type: str = ""
    """Of a patch."""
    options: WriteOptions | DeleteOptions = PLAINLY


class Backend(Protocol):
    """The verbs of the API on decoded JSON. Every method raises StatusError where the server refuses."""

    async def get(self, target: Target, options: GetOptions) -> Document: ...

    async def list(self, target: Target, options: ListOptions) -> DocumentPage: ...

    def watch(
        self, target: Target, options: WatchOptions
    ) -> AbstractAsyncContextManager[AsyncIterator[DocumentEvent]]:
        """The events of a watch, until its timeout. Leaving the context frees what the watch holds."""
        ...

    async def create(
        self, target: Target, value: dict[str, Json], options: WriteOptions
    ) -> Document:
        """`target.name` is empty, or the parent's where a subresource such as `binding` is created."""
        ...

    async def update(
        self, target: Target, value: dict[str, Json], options: WriteOptions
    ) -> Document: ...

    async def patch(
        self, target: Target, media_type: str, patch: Json, options: WriteOptions
    ) -> Document: ...

    async def delete(self, target: Target, options: DeleteOptions) -> Document:
        """The object as it is now or last was, or a Status, as over HTTP."""
        ...

    async def delete_collection(
        self, target: Target, options: DeleteOptions, selection: ListOptions
    ) -> DocumentPage:
        """The deleted objects, as they were."""
        ...

    async def write_many(self, writes: Sequence[BackendWrite]) -> Sequence[Document]:
        """All of the writes in one transaction, or none of them and the error of the first that was refused.

        A later write of the same batch sees the earlier ones.
        """
        ...
