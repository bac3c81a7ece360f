"""The server for clients in the same process: the same verbs, rules and errors, without HTTP and without bytes.

Requests come as decoded JSON and are answered with the stored objects themselves.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Final, TypeVar

import msgspec

from drayman.api.struct import Json
from drayman.apiserver.answers.documents import (
    Decided,
    Value,
    document_of,
    final_documents,
    page_of,
)
from drayman.apiserver.protocol.access import ADMIN, User
from drayman.apiserver.protocol.errors import (
    StatusError,
    bad_request,
    internal_error,
    method_not_allowed,
    no_such_resource,
)
from drayman.apiserver.protocol.options import DeleteOptions, ListOptions
from drayman.apiserver.requests.beside import beside
from drayman.apiserver.requests.bodies import read_value
from drayman.apiserver.requests.calls import Call, Patch, Result
from drayman.apiserver.requests.large_bodies import read_beside
from drayman.apiserver.subresources.binding import bind_to
from drayman.apiserver.verbs.batch import Batch, conflict_of
from drayman.apiserver.verbs.core import Core
from drayman.apiserver.verbs.creating import create
from drayman.apiserver.verbs.deleting import delete, delete_collection
from drayman.apiserver.verbs.parts import write_parts
from drayman.apiserver.verbs.patches import patch, patch_type
from drayman.apiserver.verbs.reading import StoredPage, get, list_objects
from drayman.apiserver.verbs.removing import remove_after
from drayman.apiserver.verbs.updating import update
from drayman.apiserver.verbs.watching import ERROR, WatchEvent, start_watch
from drayman.cluster import backend as protocol
from drayman.cluster import options as asked
from drayman.cluster.breaks import Turnstile
from drayman.cluster.embedded.errors import ConflictError, RefusedError, StoreError
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


MOST_AT_ONCE: Final = 256
"""Writes of a transaction that are decided without a break. In a break another writer may be first, and the transaction fails: so only
those take breaks that would keep other requests waiting."""


class ServerBackend:
    """Implements `drayman.cluster.backend.Backend` over a core, on behalf of one user."""

    def __init__(self, core: Core, *, user: User = ADMIN, manager: str = "drayman") -> None:
        self._core = core
        self._user = user
        self._manager = manager
        self._turnstile = Turnstile()
        """Requests are answered between the transactions of the scheduler, of nodes and of controllers: each takes some milliseconds."""

    async def get(self, target: protocol.Target, options: asked.GetOptions) -> protocol.Document:
        selection = ListOptions(resource_version=options.resource_version)
        return await self._do(replace(self._call(target, "get"), selection=selection))

    async def list(
        self, target: protocol.Target, options: asked.ListOptions
    ) -> protocol.DocumentPage:
        call = replace(self._call(target, "list"), selection=_selection(options))
        return page_of(call, await _translated(list_objects(call)))

    def watch(
        self, target: protocol.Target, options: asked.WatchOptions
    ) -> AbstractAsyncContextManager[AsyncIterator[protocol.DocumentEvent]]:
        selection = ListOptions(
            label_selector=options.label_selector,
            field_selector=options.field_selector,
            resource_version=options.resource_version,
            timeout_seconds=options.timeout_seconds or None,
            allow_bookmarks=options.bookmarks,
        )
        return _watching(replace(self._call(target, "watch"), selection=selection))

    async def create(
        self, target: protocol.Target, value: dict[str, Json], options: asked.WriteOptions
    ) -> protocol.Document:
        call = self._call(target, "create")
        call.write = self._options(options)
        body = msgspec.json.encode(value)
        call.size = len(body)
        with _translating():
            call.body = await read_beside(
                body, lambda: read_value(call, value, strict=call.write.field_validation)
            )
        return await self._do(call)

    async def update(
        self, target: protocol.Target, value: dict[str, Json], options: asked.WriteOptions
    ) -> protocol.Document:
        return await self._do(self._written(target, "update", value, options))

    async def patch(
        self, target: protocol.Target, media_type: str, patch: Json, options: asked.WriteOptions
    ) -> protocol.Document:
        call = self._call(target, "patch")
        with _translating():
            media = patch_type(media_type, custom=call.resource.custom)
        write = self._options(options)
        return await self._do(replace(call, write=write, patch=Patch(media, patch)))

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
        return page_of(call, StoredPage(items, self._core.store.revision))

    async def write_many(
        self, writes: Sequence[protocol.BackendWrite]
    ) -> Sequence[protocol.Document]:
        store = self._core.store
        assert isinstance(store, Store), "batches are not nested"
        batch = Batch(store)
        within = ServerBackend(
            replace(self._core, store=batch), user=self._user, manager=self._manager
        )
        decided: list[Decided] = []
        await self._prepare(writes)
        for number, write in enumerate(writes):
            if number % MOST_AT_ONCE == 0:
                await self._turnstile.enter()
            document = await within.write_one(write)
            decided.append(Decided(document, write.options.dry_run, len(batch.operations)))
        results = await _translated(batch.commit())
        return final_documents(decided, results)

    async def _prepare(self, writes: Sequence[protocol.BackendWrite]) -> None:
        """Work out beside the event loop what would keep it busy while writes are decided, which is done without a break."""
        for write in writes:
            if write.verb == "create":
                preparation = self._call(write.target, write.verb).strategy.preparation(write.body)
                if preparation is not None:
                    await beside(preparation, is_small=True)

    async def write_one(self, write: protocol.BackendWrite) -> protocol.Document:
        """One write of a batch, by its verb."""
        target, body, options = write.target, write.body, write.options
        if isinstance(options, asked.DeleteOptions):
            return await self.delete(target, options)
        if write.verb == "patch":
            return await self.patch(target, write.media_type, body, options)
        if write.verb == "create":
            return await self._do(self._written(target, write.verb, body, options))
        call = self._call(target, "create" if write.verb == "bind" else "patch")
        call.write = self._options(options)
        if write.verb == "parts":
            result = await _translated(write_parts(call, body))
        elif write.verb == "remove":
            result = await _translated(remove_after(call, body))
        else:
            result = await _translated(bind_to(call, body.node, body.uid))
        return _document(call, result)

    def _call(self, target: protocol.Target, verb: str) -> Call:
        resource = self._core.resources.find(target.group, target.version, target.resource)
        part = None
        if resource is not None and target.subresource:
            part = resource.subresource(target.subresource)
        if resource is None or (part is None and target.subresource):
            raise _translation(no_such_resource())
        if verb not in (resource.verbs if part is None else part.verbs):
            raise _translation(method_not_allowed())
        if part is None and verb in resource.read_handlers:
            raise _translation(bad_request(f"{resource.qualified} is not stored: use HTTP"))
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

    def _options(self, options: asked.WriteOptions) -> asked.WriteOptions:
        if options.field_manager:
            return options
        return msgspec.structs.replace(options, field_manager=self._manager)

    def _written(
        self, target: protocol.Target, verb: str, value: Json, options: asked.WriteOptions
    ) -> Call:
        call = self._call(target, verb)
        call.write = self._options(options)
        try:
            call.body = read_value(call, value, strict=call.write.field_validation)
        except StatusError as error:
            raise _translation(error) from error
        return call

    async def _do(self, call: Call) -> protocol.Document:
        part = call.subresource
        if part is not None and call.verb in part.handlers:
            result = await _translated(part.handlers[call.verb](call))
            if not isinstance(result, Result):
                raise _translation(bad_request(f"{part.name} is a stream: use HTTP"))
        else:
            result = await _translated(_VERBS[call.verb](call))
        return _document(call, result)


def _document(call: Call, result: Result | WatchEvent) -> protocol.Document:
    if result.stored is None:
        return Value(result.value or {})
    return document_of(call, result.stored)


@contextmanager
def _translating() -> Iterator[None]:
    """Errors of the server and its store become errors that clients know."""
    try:
        yield
    except (StatusError, StoreError) as error:
        raise _translation(error) from error


async def _translated(work: Awaitable[T]) -> T:
    """The outcome of some work, its errors translated for clients."""
    try:
        return await work
    except (StatusError, StoreError) as error:
        raise _translation(error) from error


def _translation(error: StatusError | StoreError) -> Exception:
    if isinstance(error, ConflictError | RefusedError):
        error = conflict_of(error)
    elif isinstance(error, StoreError):
        error = internal_error(str(error))
    return error_from_value(error.to_json())


def _selection(options: asked.ListOptions) -> ListOptions:
    return ListOptions(**msgspec.structs.asdict(options))


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
    with _translating():
        watch = start_watch(call)
    try:
        async with aclosing(watch.batches()) as batches:
            yield _events(call, batches)
    finally:
        watch.close()


async def _events(
    call: Call, batches: AsyncIterator[list[WatchEvent]]
) -> AsyncIterator[protocol.DocumentEvent]:
    with _translating():  # the store may be closed by now
        async for batch in batches:
            for event in batch:
                if event.type == ERROR:
                    raise error_from_value(event.value)
                yield protocol.DocumentEvent(event.type, _document(call, event))  # type: ignore[arg-type]
