"""A driver on its sockets, as its user sees it."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from drayman.plugins.calling import PluginClient
from drayman.plugins.errors import CallError
from drayman.plugins.model import Answers, ClaimRef, Removals, ReportedHealth
from drayman.plugins.registry import Registry
from drayman.plugins.serving import PluginServer
from drayman.plugins.sockets import Sockets
from patience import PATIENCE_S

DRIVER = "gpu.example.com"


class Nothing:
    """What a driver without devices does."""

    async def prepare(self, claims: Sequence[ClaimRef]) -> Answers:
        return {}

    async def unprepare(self, claims: Sequence[ClaimRef]) -> Removals:
        return {}

    async def watch_health(self) -> AsyncIterator[Sequence[ReportedHealth]]:
        yield ()


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(
        prefix="plugin"
    ) as name:  # short, because there are sockets in it
        yield Path(name)


@asynccontextmanager
async def serving(folder: Path, unregistered_s: float) -> AsyncIterator[PluginServer]:
    sockets = Sockets.of(DRIVER, folder / "registry", folder / "plugin")
    server = PluginServer(DRIVER, sockets, Nothing(), unregistered_s=unregistered_s)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]


async def test_a_driver_that_nobody_registers_says_so(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, with the folder in which it waits."""
    async with serving(folder, 0.01), asyncio.timeout(PATIENCE_S):
        while not (said := warnings(caplog)):
            await asyncio.sleep(0.01)
        assert len(said) == 1
        assert said[0].startswith(f"{DRIVER}: no node has registered the driver")
        assert said[0].endswith(f" in {folder / 'registry'}")


async def test_a_driver_that_is_registered_or_has_ended_says_nothing(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its time is over when the next driver's is."""
    time_s = 5.0  # in which even a slow machine registers a driver
    async with serving(folder / "a", time_s) as server:
        async with Registry(folder / "a/registry", interval_s=0.01) as registry:
            await registry.wait_until(lambda found: found.latest(DRIVER) is not None)
        assert server.registered
        async with serving(folder / "b", time_s):
            pass
        async with serving(folder / "c", time_s), asyncio.timeout(PATIENCE_S):
            while not warnings(caplog):
                await asyncio.sleep(0.01)
    (said,) = warnings(caplog)
    assert said.endswith(str(folder / "c/registry"))


class Slow(Nothing):
    """Is told what to do, and does not come to an end with it; says something about its health, and then nothing more."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()

    async def prepare(self, claims: Sequence[ClaimRef]) -> Answers:
        self.has_begun.set()
        await asyncio.Event().wait()
        return {}

    async def watch_health(self) -> AsyncIterator[Sequence[ReportedHealth]]:
        yield ()
        await asyncio.Event().wait()


@asynccontextmanager
async def slow(folder: Path) -> AsyncIterator[tuple[PluginServer, Slow, PluginClient]]:
    service = Slow()
    server = PluginServer(DRIVER, Sockets.of(DRIVER, folder, folder), service)
    await server.start()
    client = PluginClient(server.info)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield server, service, client
    finally:
        await client.close()


async def test_a_driver_that_need_not_finish_its_calls_ends_them(folder: Path) -> None:
    """Nobody is left waiting for it."""
    async with slow(folder) as (server, service, client):
        preparing = asyncio.create_task(client.prepare([]))
        await service.has_begun.wait()
        stopping = asyncio.create_task(server.stop())
        while server.sockets.services.exists():
            await asyncio.sleep(0.01)
        stopping.cancel()
        await asyncio.wait((stopping,))
        assert stopping.cancelled()
        with pytest.raises(CallError, match=r"UNAVAILABLE|CANCELLED"):
            await preparing


async def test_reports_that_nobody_wants_any_more_are_ended(folder: Path) -> None:
    """At once, and not when somebody finds that they have been forgotten."""
    async with slow(folder) as (server, _, client):
        stream = client.health()
        assert await anext(stream) == ()
        before = asyncio.all_tasks()
        await stream.aclose()
        await asyncio.sleep(0)  # what was forgotten would be found by now
        assert asyncio.all_tasks() <= before
        await server.stop()


class Looking(Registry):
    """Counts how often it looks."""

    looks = 0

    async def reconcile(self) -> None:
        self.looks += 1
        await super().reconcile()

    async def look(self, times: int) -> None:
        """Returns when it has looked so often again."""
        enough = self.looks + times
        while self.looks < enough:
            await asyncio.sleep(0.01)


async def test_a_registry_that_cannot_be_read_says_so_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And once that it can be read again; another problem is told, too."""
    there = folder / "registry"
    async with asyncio.timeout(PATIENCE_S), Looking(there, interval_s=0.01) as registry:
        await registry.look(2)
        there.rmdir()
        await registry.look(5)
        there.touch()
        await registry.look(5)
        there.unlink()
        there.mkdir()
        await registry.look(5)
    gone, other, again = warnings(caplog)
    assert gone.startswith("the registry cannot be read: [Errno 2] No such file")
    assert other.startswith("the registry cannot be read: [Errno 20] Not a directory")
    assert again == f"{there} can be followed again"


async def test_a_driver_that_does_not_answer_is_told_of_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And once that it does, when it is registered after all."""
    caplog.set_level("INFO", logger="drayman.plugins.registry")
    there = folder / "registry"
    there.mkdir()
    sockets = Sockets.of(DRIVER, there, folder / "plugin")
    server = PluginServer(DRIVER, sockets, Nothing())
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(sockets.registration))
        silent.listen()
        async with asyncio.timeout(PATIENCE_S), Looking(there, interval_s=0.01) as registry:
            await registry.look(3)
            silent.close()
            await server.start()
            await registry.wait_until(lambda found: found.latest(DRIVER) is not None)
            await server.stop()
    first, *more = [
        each.getMessage() for each in caplog.records if each.name == "drayman.plugins.registry"
    ]
    assert first.startswith(f"{sockets.registration}: GetInfo: ")
    assert more == [f"{sockets.registration}: it answers now"]
