"""The registry of a node: the folder in which drivers leave a socket to be found by.

The folder is read again and again; a socket that is new, or was made again, is called, and its plugin is registered or told why it is not.
A socket that is gone deregisters its plugin. Several instances of a driver may be registered while it is updated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final, Self

from drayman.plugins.calling import Connection, PluginClient, introduce, notify
from drayman.plugins.errors import CallError, RegistrationError
from drayman.plugins.sockets import is_socket

_log: Final = logging.getLogger(__name__)
_Mark = tuple[int, int]
"""What tells a socket from one that was made later in the same place."""


@dataclass(frozen=True, slots=True)
class Registered:
    """One instance of a driver."""

    socket: Path
    client: PluginClient
    order: int
    """Later ones are higher."""

    @property
    def driver(self) -> str:
        return self.client.info.name


class Registry:
    """Follows the folder while it is entered."""

    def __init__(
        self,
        folder: Path,
        *,
        interval_s: float = 1.0,
        on_change: Callable[[str], None] | None = None,
    ) -> None:
        """`on_change` is called with the name of a driver of which an instance was registered or deregistered."""
        self._folder = folder
        self._interval_s = interval_s
        self._on_change = on_change
        self._plugins: dict[Path, Registered] = {}
        self._seen: dict[Path, _Mark] = {}
        self._silent: set[Path] = set()
        """Sockets that did not answer, of which that was said."""
        self._orders = count(1)
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._problem: tuple[type[Exception], int | None] | None = None
        """Why the last look has failed."""

    def instances(self, driver: str) -> list[Registered]:
        """The instances of a driver, the latest last."""
        found = [each for each in self._plugins.values() if each.driver == driver]
        return sorted(found, key=lambda each: each.order)

    def latest(self, driver: str) -> Registered | None:
        """The instance to call: the latest that is connected, else the latest."""
        found = self.instances(driver)
        preferred = [each for each in found if each.client.is_connected] or found
        return preferred[-1] if preferred else None

    async def wait_until(self, wanted: Callable[[Registry], bool]) -> None:
        """Returns when the registry is as wanted."""
        while not wanted(self):
            self._changed.clear()
            await self._changed.wait()

    async def __aenter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._task = asyncio.create_task(self._follow(), name=f"registry {self._folder}")
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        for path in tuple(self._plugins):
            await self._deregister(path)

    async def _follow(self) -> None:
        while True:
            try:
                await self.reconcile()
            except Exception as error:
                # Whatever one plugin does, others have to be found.
                self._tell_problem(error)
            else:
                if self._problem is not None:
                    _log.warning("%s can be followed again", self._folder)
                self._problem = None
            await asyncio.sleep(self._interval_s)

    def _tell_problem(self, error: Exception) -> None:
        """Once, and not at every look."""
        problem = type(error), error.errno if isinstance(error, OSError) else None
        is_told, self._problem = problem == self._problem, problem
        if is_told:
            return
        if isinstance(error, OSError):
            _log.warning("the registry cannot be read: %s", error)
        else:
            _log.error("the registry cannot be followed for a moment", exc_info=error)

    async def reconcile(self) -> None:
        """Bring the plugins up to date with the folder. Raises OSError."""
        found = {path: mark for path in self._folder.iterdir() if (mark := _mark_of(path))}
        for path in [path for path, mark in self._seen.items() if found.get(path) != mark]:
            del self._seen[path]
            await self._deregister(path)
        self._silent &= found.keys()
        fresh = {path: mark for path, mark in found.items() if path not in self._seen}
        done = await asyncio.gather(*map(self._register, fresh))
        self._seen.update(
            item for item, is_done in zip(fresh.items(), done, strict=True) if is_done
        )

    async def _register(self, path: Path) -> bool:
        """Call a new socket. Returns whether it is done with: what does not answer is called again."""
        async with Connection(path) as connection:
            try:
                info = await introduce(connection)
                try:
                    client = PluginClient(info)
                except RegistrationError as error:
                    _log.warning("%s: %s", path, error)
                    await notify(connection, str(error))
                    return True
                async with AsyncExitStack() as unused:
                    unused.push_async_callback(client.close)
                    await notify(connection)
                    unused.pop_all()
            except CallError as error:
                if path not in self._silent:
                    _log.info("%s; it is called again until it answers", error)
                self._silent.add(path)
                return False
            if path in self._silent:
                _log.info("%s: it answers now", path)
                self._silent.remove(path)
            self._plugins[path] = Registered(path, client, next(self._orders))
            self._tell(info.name)
        return True

    async def _deregister(self, path: Path) -> None:
        gone = self._plugins.pop(path, None)
        if gone is not None:
            await gone.client.close()
            self._tell(gone.driver)

    def _tell(self, driver: str) -> None:
        self._changed.set()
        if self._on_change is not None:
            self._on_change(driver)


def _mark_of(path: Path) -> _Mark | None:
    """None for what is no socket, is hidden, or is gone by now."""
    if path.name.startswith(".") or not is_socket(path):
        return None
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns
