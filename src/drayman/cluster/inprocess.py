"""A `Client` for the server in the same process.

Objects are decoded once, directly into the requested type: writers and watchers share the result, which is immutable. Writes hand over
decoded JSON. Nothing is encoded only to be parsed on the other side, and several writes at once are one transaction of the store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar, TypeVar

from drayman.api.errors import DecodeError
from drayman.cluster.backend import (
    Backend,
    BackendWrite,
    BindBody,
    Document,
    DocumentEvent,
    DocumentPage,
    PartsBody,
    Target,
)
from drayman.cluster.client import Client, Page, target_of_create, target_of_one
from drayman.cluster.errors import ProtocolError, UnreachableError
from drayman.cluster.options import (
    PLAINLY,
    DeleteOptions,
    GetOptions,
    ListOptions,
    WatchOptions,
    WriteOptions,
)
from drayman.cluster.patches import Patch
from drayman.cluster.resources import PODS, Codec, Resource
from drayman.cluster.watching import Bookmark, Change, change_of, decode_bookmark
from drayman.cluster.writes import (
    BindWrite,
    CreateWrite,
    DeleteWrite,
    PartsWrite,
    PatchWrite,
    RemoveWrite,
    Write,
)

T = TypeVar("T")


class InProcessClient(Client):
    """Talks to a `Backend`. Must be used on the event loop that the backend runs on."""

    transactional: ClassVar[bool] = True

    def __init__(self, backend: Backend) -> None:
        self._open_backend: Backend | None = backend

    @property
    def _backend(self) -> Backend:
        if self._open_backend is None:
            raise UnreachableError("the client is closed", outcome_unknown=False)
        return self._open_backend

    async def write_many(self, writes: Sequence[Write]) -> tuple[object, ...]:
        documents = await self._backend.write_many([_backend_write(write) for write in writes])
        return tuple(map(_outcome, writes, documents))

    async def write_all(self, writes: Sequence[Write]) -> None:
        await self._backend.write_many([_backend_write(write) for write in writes])

    async def close(self) -> None:
        self._open_backend = None

    async def _get(self, target: Target, codec: Codec[T], options: GetOptions) -> T:
        return _decode(codec, await self._backend.get(target, options))

    async def _list(self, target: Target, codec: Codec[T], options: ListOptions) -> Page[T]:
        return _page(codec, await self._backend.list(target, options))

    @asynccontextmanager
    async def _watch(
        self, target: Target, resource: Resource[T], options: WatchOptions
    ) -> AsyncIterator[AsyncIterator[Change[T] | Bookmark]]:
        async with self._backend.watch(target, options) as found:

            async def events() -> AsyncIterator[Change[T] | Bookmark]:
                async for event in found:
                    yield _event(resource, event)

            yield events()

    async def _create(self, target: Target, value: T, codec: Codec[T], options: WriteOptions) -> T:
        return _decode(codec, await self._backend.create(target, codec.to_value(value), options))

    async def _update(self, target: Target, value: T, codec: Codec[T], options: WriteOptions) -> T:
        return _decode(codec, await self._backend.update(target, codec.to_value(value), options))

    async def _patch(
        self, target: Target, patch: Patch, codec: Codec[T], options: WriteOptions
    ) -> T:
        document = await self._backend.patch(target, patch.media_type, patch.value, options)
        return _decode(codec, document)

    async def _delete(self, target: Target, codec: Codec[T], options: DeleteOptions) -> T | None:
        return _decode_any(codec, await self._backend.delete(target, options))

    async def _delete_collection(
        self, target: Target, codec: Codec[T], options: DeleteOptions, selection: ListOptions
    ) -> tuple[T, ...]:
        return _page(codec, await self._backend.delete_collection(target, options, selection)).items


def _decode(codec: Codec[T], document: Document) -> T:
    try:
        return document.read(codec)
    except DecodeError as error:
        raise ProtocolError(f"the server holds an object that cannot be read: {error}") from error


def _outcome(write: Write, document: Document) -> object:
    """What a caller gets for a write: its object, if it has one."""
    if isinstance(write, BindWrite | RemoveWrite):
        return None
    if isinstance(write, DeleteWrite):
        return _decode_any(write.resource.codec, document)
    return _decode(write.resource.codec, document)


def _decode_any(codec: Codec[T], document: Document) -> T | None:
    """The object, or None where the answer is a Status."""
    return None if document.is_status else _decode(codec, document)


def _event(resource: Resource[T], event: DocumentEvent) -> Change[T] | Bookmark:
    try:
        if event.type == "BOOKMARK":
            return decode_bookmark(event.document.data)
        return change_of(resource, event.type, event.document.read(resource.codec))
    except DecodeError as error:
        raise ProtocolError(f"watch of {resource.qualified}: {error}") from error


def _page(codec: Codec[T], page: DocumentPage) -> Page[T]:
    items = tuple(_decode(codec, document) for document in page.items)
    return Page(items, page.resource_version, page.continue_, page.remaining)


def _backend_write(write: Write) -> BackendWrite:
    match write:
        case CreateWrite():
            target = target_of_create(write.resource, write.value, write.namespace)
            body = write.resource.codec.to_value(write.value)
            return BackendWrite("create", target, body, "", write.options)
        case PatchWrite():
            target = target_of_one(write.resource, write.name, write.namespace, write.subresource)
            patch = write.patch
            return BackendWrite("patch", target, patch.value, patch.media_type, write.options)
        case PartsWrite():
            target = target_of_one(write.resource, write.name, write.namespace, write.subresource)
            parts = PartsBody(write.parts, write.uid, write.resource_version)
            return BackendWrite("parts", target, parts, "", write.options)
        case RemoveWrite():
            last = write.last
            target = target_of_one(last.resource, last.name, last.namespace, last.subresource)
            parts = PartsBody(last.parts, last.uid, last.resource_version)
            return BackendWrite("remove", target, parts, "", write.options)
        case DeleteWrite():
            target = target_of_one(write.resource, write.name, write.namespace)
            return BackendWrite("delete", target, options=write.options)
        case BindWrite():
            target = PODS.target(write.namespace, write.name)
            return BackendWrite("bind", target, BindBody(write.node, write.uid), "", PLAINLY)
