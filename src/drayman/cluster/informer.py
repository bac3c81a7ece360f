"""A cache of objects that follows the cluster, and notifies its handlers of every change once and in order.

An informer lists, then watches from the version of the list. A watch that ends or breaks is resumed from the last version seen, so that
nothing is missed or reported twice. Where the server no longer keeps that version (410) the informer lists again and works out what changed
meanwhile: objects that are gone are reported as deleted, those with another uid as deleted and added. Handlers run on the informer's own
task; while they do, nothing is read from the server, which is the back-pressure. An informer needs memory for the objects it follows and,
during a new list, for those it has not seen before.

States: listing -> watching -> (broken: wait, watch again | expired: listing) ... -> stopped.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import Final, Generic, Literal, Self, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from drayman.cluster.backoff import Backoff
from drayman.cluster.breaks import Breaks
from drayman.cluster.cache import Cache, Indexer, Key
from drayman.cluster.client import PAGE_SIZE, Client
from drayman.cluster.errors import ClusterError, ExpiredError, NotFoundError, UnreachableError
from drayman.cluster.options import ListOptions, WatchOptions
from drayman.cluster.resources import Resource
from drayman.cluster.watching import Bookmark, Change

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)

WATCH_SECONDS: Final = (300, 600)
"""The range of watch timeouts. Chosen at random, so that the watches of many informers do not end together."""

SHORT_WATCH: Final = 1.0
"""Seconds; a watch that ends sooner without an event counts as unwanted by the server."""
RESUMES: Final = 5
"""Failures in a row after which a watch is no longer resumed."""

PAGED_LISTS: Final = 3
"""Failures in a row after which a list is asked for in one piece: one that expires page by page would never end."""
UNPAGED: Final = 2**31 - 1


class Notice(Struct, Generic[T], frozen=True):
    """What a handler receives. `object` is the last known state of a deleted object; `old` is set for modified ones."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    object: T
    old: T | None = None


Handler = Callable[[Notice[T]], None]
"""Must not block. What it raises ends the informer: a handler that fails would otherwise work on a state that never was."""


class Selection(Struct, Generic[T], frozen=True):
    """What an informer follows."""

    resource: Resource[T]
    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""


class Informer(Generic[T]):
    """Follows a selection of objects. Use it in `async with`, which starts and stops it."""

    def __init__(
        self,
        client: Client,
        selection: Selection[T],
        *,
        indexers: Mapping[str, Indexer[T]] | None = None,
        page_size: int = PAGE_SIZE,
        backoff: Backoff | None = None,
        rng: random.Random | None = None,
        on_failure: Callable[[Exception], None] | None = None,
    ) -> None:
        """`on_failure` gets what a handler raises, which then does not end the informer: for shared informers."""
        self._client = client
        self._selection = selection
        self._cache: Cache[T] = Cache(indexers or {})
        self._page_size = page_size
        self._rng = rng or random.Random()
        self._backoff = backoff or Backoff(rng=self._rng)
        self._on_failure = on_failure
        self._handlers: list[Handler[T]] = []
        self._breaks = Breaks()
        self._version = ""
        self._failures = 0
        self._complaint = ""
        self._versions_tried = 0
        self._in_doubt = False
        self._is_absent = False
        self._synced = asyncio.Event()
        self._awaited: list[tuple[str, asyncio.Event]] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def cache(self) -> Cache[T]:
        """The objects as they are known now. For reading only."""
        return self._cache

    @property
    def resource(self) -> Resource[T]:
        """What it follows."""
        return self._selection.resource

    @property
    def resource_version(self) -> str:
        """How far this informer has come; empty before the first list."""
        return self._version

    @property
    def is_synced(self) -> bool:
        """Whether the first list has been reported to the handlers."""
        return self._synced.is_set()

    @property
    def is_absent(self) -> bool:
        """Whether the server does not know the resource, which this one does without."""
        return self._is_absent

    def add_handler(self, handler: Handler[T]) -> None:
        """Notifies a handler of every change from now on, and first of every existing object, as added."""
        self._handlers.append(handler)
        for value in self._cache:
            self._notify_one(handler, Notice("ADDED", value))

    def remove_handler(self, handler: Handler[T]) -> None:
        """Stops notifying a handler. Must not be called by a handler."""
        self._handlers.remove(handler)

    async def wait_synced(self) -> None:
        """Returns when the first list has been reported to the handlers. Raises what ended the informer, if that came first."""
        await self._wait(self._synced)

    async def wait_seen(self, version: str) -> None:
        """Returns when the handlers have been notified of every change up to this version of one of its objects.

        Raises what ended the informer, if that came first.
        """
        if self._has_seen(version):
            return
        seen = asyncio.Event()
        self._awaited.append((version, seen))
        await self._wait(seen)

    async def _wait(self, event: asyncio.Event) -> None:
        if self._task is None:
            raise RuntimeError("the informer has not been started")
        happened = asyncio.create_task(event.wait())
        try:
            await asyncio.wait((happened, self._task), return_when=asyncio.FIRST_COMPLETED)
        finally:
            happened.cancel()
        if not event.is_set():
            await self._task
            raise RuntimeError("the informer was stopped")

    def _has_seen(self, version: str) -> bool:
        return bool(self._version) and not _is_before(self._version, version)

    def _wake_waiting(self) -> None:
        for version, seen in self._awaited:
            if self._has_seen(version):
                seen.set()
        self._awaited = [(version, seen) for version, seen in self._awaited if not seen.is_set()]

    def start(self) -> None:
        """Begins to follow, in a task of its own."""
        if self._task is not None:
            raise RuntimeError("the informer has been started already")
        self._task = asyncio.create_task(self._follow(), name=f"informer {self._describe()}")

    async def stop(self) -> None:
        """Ends the task and waits until it has ended. Raises what a handler raised."""
        if self._task is None:
            return
        self._task.cancel()
        try:
            await self._task
        except asyncio.CancelledError:
            # Ours if the task was cancelled; if it is the caller that is being cancelled, that propagates.
            if not self._task.cancelled():
                raise

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _follow(self) -> None:
        """Lists where it must, watches where it can, and waits between failures."""
        while True:
            try:
                if self._in_doubt:
                    await self._check_history()
                if not self._version:
                    await self._list()
                await self._watch()
            except ExpiredError as error:
                _log.info("%s: %s; listing again", self._describe(), error)
                self._version = ""
                await self._pause()
            except ClusterError as error:
                if isinstance(error, NotFoundError) and self._selection.resource.optional:
                    await self._do_without(error)
                    continue
                self._complain(str(error))
                await self._recover(error)

    async def _list(self) -> None:
        """Brings the cache to a current version, page by page, and the handlers with it."""
        options = ListOptions(
            label_selector=self._selection.label_selector,
            field_selector=self._selection.field_selector,
            limit=self._page_size if self._failures < PAGED_LISTS else UNPAGED,
        )
        listed: set[Key] = set()
        version = ""
        async for page in self._client.pages(
            self._selection.resource, self._selection.namespace, options=options
        ):
            for value in page.items:
                listed.add(self._put(value))
                await self._breaks.between()
            version = page.resource_version
        self._is_absent = False
        self._complete(listed, version)

    async def _watch(self) -> None:
        """Follows changes until the server ends the watch."""
        began = asyncio.get_running_loop().time()
        silent = True
        async with self._client.watch(
            self._selection.resource, self._selection.namespace, options=self._watch_options()
        ) as events:
            async for event in events:
                silent, self._failures = False, 0
                self._be_content()
                self._take(event)
                await self._breaks.between()
        if silent and asyncio.get_running_loop().time() - began < SHORT_WATCH:
            # A server that ends its watches at once must not be asked without a pause.
            await self._pause()

    def _watch_options(self) -> WatchOptions:
        return WatchOptions(
            label_selector=self._selection.label_selector,
            field_selector=self._selection.field_selector,
            resource_version=self._version,
            timeout_seconds=self._rng.randint(*WATCH_SECONDS),
        )

    def _take(self, event: Change[T] | Bookmark) -> None:
        if isinstance(event, Change):
            if event.type == "DELETED":
                found = self._selection.resource.codec.identity(event.object)
                self._remove((found.namespace, found.name), event.object)
            else:
                self._put(event.object)
        self._version = event.resource_version
        if self._awaited:
            self._wake_waiting()

    def _put(self, value: T) -> Key:
        """Takes in an object as it is now. One already known in this version is ignored."""
        identity = self._selection.resource.codec.identity
        found = identity(value)
        key = (found.namespace, found.name)
        old = self._cache.get(found.name, found.namespace)
        known = None if old is None else identity(old)
        if known is not None and known.uid != found.uid:
            # Deleted and made again while nothing was watching.
            self._remove(key, None)
            old = known = None
        if known is None or known.resource_version != found.resource_version:
            self._cache.put(key, value)
            self._notify(Notice("ADDED" if old is None else "MODIFIED", value, old))
        return key

    def _remove(self, key: Key, last: T | None) -> None:
        """Forgets an object. `last` is how it was when it was deleted, where that is known."""
        namespace, name = key
        old = self._cache.get(name, namespace)
        if old is not None:
            self._cache.remove(key)
            self._notify(Notice("DELETED", old if last is None else last))

    def _complete(self, listed: set[Key], version: str) -> None:
        """The end of a list: what it did not contain is gone."""
        for key in self._cache.names():
            if key not in listed:
                self._remove(key, None)
        self._version = version
        self._failures = self._versions_tried = 0
        self._be_content()
        self._synced.set()
        self._wake_waiting()

    def _notify(self, notice: Notice[T]) -> None:
        for handler in self._handlers:
            self._notify_one(handler, notice)

    def _notify_one(self, handler: Handler[T], notice: Notice[T]) -> None:
        try:
            handler(notice)
        except Exception as error:
            if self._on_failure is not None:
                self._on_failure(error)
            elif isinstance(error, ClusterError):
                # Must not be taken for a failure of the watch, which would be retried.
                raise RuntimeError(f"a handler of {self._describe()} failed") from error
            else:
                raise

    async def _check_history(self) -> None:
        """After a server was away: lists again if it came back with less history than we have seen.

        A server that lost its data starts counting again, and a watch from a version in its future would stay silent.
        """
        if self._version:
            page = await self._client.list(
                self._selection.resource, self._selection.namespace, options=ListOptions(limit=1)
            )
            if _is_before(page.resource_version, self._version):
                _log.warning("%s: the server has lost its history; listing again", self._describe())
                self._version = ""
            self._be_content()
        self._in_doubt = False

    async def _recover(self, error: ClusterError) -> None:
        self._in_doubt = isinstance(error, UnreachableError)
        if self._failures >= RESUMES and not self._in_doubt:
            # The server answers, but not with a watch from here: start over.
            self._version = ""
        await self._pause()

    async def _do_without(self, error: NotFoundError) -> None:
        """The server does not know the resource, so there are no objects. A cluster that is upgraded may have it later.

        Where it may have another version of it, that is tried first.
        """
        resource = self._selection.resource
        self._selection = replace(self._selection, resource=resource.in_next_version())
        self._versions_tried += 1
        if self._versions_tried % (1 + len(resource.other_versions)):
            self._version = ""
            return
        if not self._is_absent:
            _log.debug("%s: %s; doing without", self._describe(), error)
        self._is_absent = True
        failures = self._failures
        self._complete(set(), "")
        self._failures = failures
        await self._pause()

    def _complain(self, about: str) -> None:
        """Once, however long it lasts: a server that is away is asked every few seconds."""
        if about != self._complaint:
            self._complaint = about
            _log.warning("%s: %s", self._describe(), about)

    def _be_content(self) -> None:
        """Whoever has read the complaint wants to know that it is over."""
        if self._complaint:
            self._complaint = ""
            _log.warning("%s: the server answers again", self._describe())

    async def _pause(self) -> None:
        self._failures += 1
        await asyncio.sleep(self._backoff.delay(self._failures))

    def _describe(self) -> str:
        resource, namespace = self._selection.resource, self._selection.namespace
        return f"{resource.qualified} in {namespace}" if namespace else resource.qualified


def _is_before(version: str, other: str) -> bool:
    """Versions are decimal numbers; where a server has others, they cannot be compared."""
    return version.isdecimal() and other.isdecimal() and int(version) < int(other)
