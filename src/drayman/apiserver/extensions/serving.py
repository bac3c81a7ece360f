"""Custom resources in the table of what is served.

The table follows the store: every lookup after a write first brings it up to date. So the request after the one that wrote a
definition finds its resource, whichever way either came in, and this needs nothing in the background.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextvars import Context
from dataclasses import dataclass, field

from drayman.apiserver.extensions.custom_resource import custom_resource
from drayman.apiserver.extensions.definition import ESTABLISHED, STORAGE, Definition
from drayman.apiserver.extensions.definitions import definitions_resource
from drayman.apiserver.extensions.deletion import clean_up
from drayman.apiserver.extensions.migration import migrate
from drayman.apiserver.served.resources import ApiResource, Resources
from drayman.apiserver.verbs.core import Core

log = logging.getLogger(__name__)


@dataclass
class DefinedResources(Resources):
    """Every resource served now, including those from definitions."""

    core: Core | None = None
    _revision: int = -1
    _known: dict[str, int] = field(default_factory=dict)
    """The revision at which each definition was last read."""
    _defined: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Group and plural of each served resource, by the name of its definition."""
    _terminating: set[str] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _ended: bool = False

    def follow(self) -> None:
        """Apply the changes to definitions since the last call."""
        assert self.core is not None
        store = self.core.store
        if store.revision == self._revision:
            return
        self._revision = store.revision
        now = {stored.key.name: stored.revision for stored in store.list(STORAGE)}
        if now != self._known:
            changed = [name for name in now if self._known.get(name) != now[name]]
            for name in self._known.keys() - now.keys():
                self._drop(name)
            self._known = now
            for stored in store.list(STORAGE):
                if stored.key.name in changed:
                    self._take(Definition(stored.value))
        for name in [name for name in self._terminating if not store.list(name)]:
            self._terminating.discard(name)
            self._start(clean_up(self.core, name))

    def _take(self, definition: Definition) -> None:
        assert self.core is not None
        if definition.is_terminating:
            self._terminating.add(definition.name)
        resource = custom_resource(definition) if definition.is_true(ESTABLISHED) else None
        if resource is None:
            self._drop(definition.name)
        elif not self._is_builtin(resource):
            self.add(resource)
            self._defined[definition.name] = (resource.group, resource.plural)
            if self.core.store.list(resource.storage_name):
                self._start(migrate(self.core, resource))

    def _is_builtin(self, resource: ApiResource) -> bool:
        """Built-in resources do not change, whatever a definition says."""
        found = self._by_path.get((resource.group, resource.versions[0], resource.plural))
        return found is not None and not found.custom

    def _drop(self, name: str) -> None:
        self._terminating.discard(name)
        place = self._defined.pop(name, None)
        if place is not None:
            self.remove(*place)

    def _start(self, work: Coroutine[None, None, None]) -> None:
        """Run something that must not delay lookups."""
        if self._ended:
            work.close()  # The next process that opens the store starts it.
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            work.close()  # Without a loop there are no writes either, and the next look starts it.
            self._revision = -1
            return
        # On no user's behalf: what comes up here may come up in any request.
        task = loop.create_task(work, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    async def settled(self) -> None:
        """Wait until all background work is finished."""
        self.follow()
        while self._tasks:
            await asyncio.wait(self._tasks)
            self.follow()

    async def end(self) -> None:
        """Start nothing more in the background, and wait for running work to stop."""
        self._ended = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("a custom resource was not brought up to date", exc_info=task.exception())


def install_extensions(core: Core) -> None:
    """Serve definitions, and the resources defined by those in the store. To be called before the server is created."""
    resources = DefinedResources(core.resources.generation, core=core)
    for resource in core.resources:
        resources.add(resource)
    resources.add(definitions_resource())
    core.resources = resources
    resources.follow()


async def end_extensions(core: Core) -> None:
    """Stop the background work for definitions. To be called before the store is closed."""
    if isinstance(core.resources, DefinedResources):
        await core.resources.end()
