"""The server for clients in the same process: the same verbs, rules and errors, without HTTP and without bytes.

Requests come as decoded JSON and are answered with the stored objects themselves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from drayman.api.struct import Json
from drayman.apiserver.access import ADMIN, User
from drayman.apiserver.batch import Batch
from drayman.apiserver.bodies import read_value
from drayman.apiserver.calls import Call, Patch, Result
from drayman.apiserver.conversion import data_in, from_hub
from drayman.apiserver.core import Core
from drayman.apiserver.creating import create
from drayman.apiserver.deleting import delete, delete_collection
from drayman.apiserver.encoding import encode
from drayman.apiserver.errors import StatusError, bad_request, method_not_allowed, no_such_resource
from drayman.apiserver.options import DeleteOptions, ListOptions, WriteOptions
from drayman.apiserver.patches import patch
from drayman.apiserver.reading import Page, get, list_objects
from drayman.apiserver.updating import update
from drayman.apiserver.watching import ERROR, WatchEvent, start_watch
from drayman.cluster import backend as protocol
from drayman.cluster import options as asked
from drayman.cluster.embedded.model import Stored
from drayman.cluster.embedded.store import Store
from drayman.cluster.errors import error_from_value

T = TypeVar("T")
Verb = Callable[[Call], Awaitable[Result]]

_VERBS: dict[str, Verb] = {
    "get": get,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
}


@dataclass(frozen=True, slots=True)
class Value:
    """A document that is no stored object: a Status, a Scale, an object in another version."""

    value: Mapping[str, Json]

    @property
    def data(self) -> bytes:
        return encode(self.value)


@dataclass(frozen=True, slots=True)
class Converted:
    """A stored object in another version than it is stored in."""

    call: Call
    stored: Stored

    @property
    def data(self) -> bytes:
        return data_in(self.call.resource, self.stored, self.call.version)

    @property
    def value(self) -> Mapping[str, Json]:
        return from_hub(self.call.resource, self.stored.value, self.call.version)


class ServerBackend:
    """Implements `drayman.cluster.backend.Backend` over a core, in the name of one user."""

    def __init__(self, core: Core, *, user: User = ADMIN, manager: str = "drayman") -> None:
        self._core = core
        self._user = user
        self._manager = manager

    async def get(self, target: protocol.Target, options: asked.GetOptions) -> protocol.Document:
        selection = ListOptions(resource_version=options.resource_version)
        return await self._do(replace(self._call(target, "get"), selection=selection))

    async def list(
        self, target: protocol.Target, options: asked.ListOptions
    ) -> protocol.DocumentPage:
        call = replace(self._call(target, "list"), selection=_selection(options))
        return _page(call, await _translated(list_objects(call)))

    def watch(
        self, target: protocol.Target, options: asked.WatchOptions
    ) -> AbstractAsyncContextManager[AsyncIterator[protocol.DocumentEvent]]:
        selection = ListOptions(
            label_selector=options.label_selector,
            field_selector=options.field_selector,
            resource_version=options.resource_version,
            version_match="NotOlderThan" if options.initial_events else "",
            timeout_seconds=options.timeout_seconds or None,
            allow_bookmarks=options.bookmarks or options.initial_events,
            send_initial_events=True if options.initial_events else None,
        )
        return _watching(replace(self._call(target, "watch"), selection=selection))

    async def create(
        self, target: protocol.Target, value: dict[str, Json], options: asked.WriteOptions
    ) -> protocol.Document:
        return await self._do(self._written(self._call(target, "create"), value, options))

    async def update(
        self, target: protocol.Target, value: dict[str, Json], options: asked.WriteOptions
    ) -> protocol.Document:
        return await self._do(self._written(self._call(target, "update"), value, options))

    async def patch(
        self, target: protocol.Target, media_type: str, patch: Json, options: asked.WriteOptions
    ) -> protocol.Document:
        call = replace(self._call(target, "patch"), write=self._options(options))
        return await self._do(replace(call, patch=Patch(media_type, patch)))

    async def delete(
        self, target: protocol.Target, options: asked.DeleteOptions
    ) -> protocol.Document:
        return await self._do(replace(self._call(target, "delete"), delete=_deletion(options)))

    async def delete_collection(
        self,
        target: protocol.Target,
        options: asked.DeleteOptions,
        selection: asked.ListOptions,
    ) -> protocol.DocumentPage:
        call = replace(
            self._call(target, "deletecollection"),
            delete=_deletion(options),
            selection=_selection(selection),
        )
        items = await _translated(delete_collection(call))
        return _page(call, Page(items, self._core.store.revision))

    async def write_many(
        self, writes: Sequence[protocol.BackendWrite]
    ) -> Sequence[protocol.Document]:
        store = self._core.store
        assert isinstance(store, Store), "batches are not nested"
        batch = Batch(store)
        within = ServerBackend(
            replace(self._core, store=batch), user=self._user, manager=self._manager
        )
        documents: list[tuple[protocol.Document, int]] = []
        for write in writes:
            document = await within.write_one(write)
            documents.append((document, len(batch.operations)))
        results = await batch.commit()
        return _final(documents, results)

    async def write_one(self, write: protocol.BackendWrite) -> protocol.Document:
        """One write of a batch, by its verb."""
        if isinstance(write.options, asked.DeleteOptions):
            return await self.delete(write.target, write.options)
        if write.verb == "patch":
            return await self.patch(write.target, write.media_type, write.body, write.options)
        verb = self.create if write.verb == "create" else self.update
        return await verb(write.target, write.body, write.options)

    def _call(self, target: protocol.Target, verb: str) -> Call:
        resource = self._core.resources.find(target.group, target.version, target.resource)
        try:
            if resource is None:
                raise no_such_resource()
            part = None
            if target.subresource:
                part = resource.subresource(target.subresource)
                if part is None:
                    raise no_such_resource()
            if verb not in (resource.verbs if part is None else part.verbs):
                raise method_not_allowed()
        except StatusError as error:
            raise error_from_value(error.to_json()) from error
        return Call(
            self._core,
            resource,
            target.version,
            verb,
            target.namespace,
            target.name,
            part,
            user=self._user,
        )

    def _options(self, options: asked.WriteOptions) -> WriteOptions:
        return WriteOptions(
            dry_run=options.dry_run,
            manager=options.field_manager or self._manager,
            field_validation=options.field_validation or "Warn",
            force=options.force,
        )

    def _written(self, call: Call, value: dict[str, Json], options: asked.WriteOptions) -> Call:
        write = self._options(options)
        call = replace(call, write=write)
        try:
            body = read_value(call, value, strict=write.field_validation)
        except StatusError as error:
            raise error_from_value(error.to_json()) from error
        return replace(call, body=body)

    async def _do(self, call: Call) -> protocol.Document:
        part = call.subresource
        if part is not None and call.verb in part.handlers:
            result = await _translated(part.handlers[call.verb](call))
            if not isinstance(result, Result):
                error = bad_request(f"{part.name} is a stream: use HTTP")
                raise error_from_value(error.to_json())
        else:
            result = await _translated(_VERBS[call.verb](call))
        if result.stored is None:
            return Value(result.value)
        return _document(call, result.stored)


async def _translated(work: Awaitable[T]) -> T:
    """The outcome of some work, its errors as clients know them."""
    try:
        return await work
    except StatusError as error:
        raise error_from_value(error.to_json()) from error


def _document(call: Call, stored: Stored) -> protocol.Document:
    if call.resource.kind_in(call.version) == call.resource.hub_kind:
        return stored
    return Converted(call, stored)


def _page(call: Call, page: Page) -> protocol.DocumentPage:
    return protocol.DocumentPage(
        [_document(call, stored) for stored in page.items],
        str(page.revision),
        page.continue_token,
        page.remaining,
    )


def _final(
    documents: list[tuple[protocol.Document, int]], results: Sequence[Stored]
) -> list[protocol.Document]:
    """The documents of a batch with the revisions they got when it was written."""
    found: list[protocol.Document] = []
    before = 0
    for document, after in documents:
        if after > before and isinstance(document, Stored):
            found.append(results[after - 1])
        elif after > before and isinstance(document, Converted):
            found.append(Converted(document.call, results[after - 1]))
        else:
            found.append(document)
        before = after
    return found


def _selection(options: asked.ListOptions) -> ListOptions:
    return ListOptions(
        label_selector=options.label_selector,
        field_selector=options.field_selector,
        limit=options.limit,
        continue_token=options.continue_,
        resource_version=options.resource_version,
        version_match=options.resource_version_match,
    )


def _deletion(options: asked.DeleteOptions) -> DeleteOptions:
    return DeleteOptions(
        dry_run=options.dry_run,
        grace_seconds=options.grace_period_seconds,
        propagation=options.propagation or None,
        uid=options.uid or None,
        resource_version=options.resource_version or None,
    )


@asynccontextmanager
async def _watching(call: Call) -> AsyncIterator[AsyncIterator[protocol.DocumentEvent]]:
    try:
        watch = start_watch(call)
    except StatusError as error:
        raise error_from_value(error.to_json()) from error
    try:
        async with aclosing(watch.batches()) as batches:
            yield _events(call, batches)
    finally:
        watch.close()


async def _events(
    call: Call, batches: AsyncIterator[list[WatchEvent]]
) -> AsyncIterator[protocol.DocumentEvent]:
    async for batch in batches:
        for event in batch:
            if event.type == ERROR:
                raise error_from_value(event.value)
            document = (
                Value(event.value or {}) if event.stored is None else _document(call, event.stored)
            )
            yield protocol.DocumentEvent(event.type, document)  # type: ignore[arg-type]
