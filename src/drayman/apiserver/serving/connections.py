"""Clients that go away or stop reading while they are being answered.

If a client goes away, its answer ends at once rather than at the next write, which may be half an hour later for a quiet watch. A
client that stops reading is disconnected after a while: the data for it waits in memory, and a watch counts for as long as it is open.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

log = logging.getLogger(__name__)

SLICE: Final = 64 * 1024
"""The most bytes that are passed on for sending at once."""
CHECKS_PER_PATIENCE: Final = 4
FAREWELL_S: Final = 0.25
"""How long clients have to agree to the end of TLS when the server stops."""


@dataclass(slots=True, eq=False)
class Sending:
    """An answer that is being sent to a client."""

    request: web.BaseRequest
    task: asyncio.Task[object]
    since: float | None = None
    """Since when the client has not read the last data; None while no data is waiting for it."""

    async def write(self, response: web.StreamResponse, data: bytes) -> None:
        """Send data, in slices, each with the full time limit."""
        loop = asyncio.get_running_loop()
        view = memoryview(data)
        for start in range(0, len(data), SLICE):
            self.since = loop.time()
            await response.write(view[start : start + SLICE])
        self.since = None


class Connections:
    """The answers that are being sent, by the connection they go to."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._sending: dict[object, Sending] = {}
        self._check: asyncio.TimerHandle | None = None
        self._open: dict[object, socket.socket] = {}
        self._all_closed = asyncio.Event()
        self._all_closed.set()

    def __len__(self) -> int:
        return len(self._sending)

    @contextmanager
    def sending(self, request: web.BaseRequest) -> Iterator[Sending]:
        """Watches over an answer while it is sent. The current task is cancelled once sending is pointless.

        Raises ConnectionResetError if the client has already gone away.
        """
        task = asyncio.current_task()
        assert task is not None
        if request.transport is None:
            raise ConnectionResetError("the client went away")
        connection = request.protocol
        answer = self._sending[connection] = Sending(request, task)
        self._schedule()
        try:
            yield answer
        finally:
            del self._sending[connection]

    def made(self, connection: object, transport: asyncio.Transport) -> None:
        """A client has connected."""
        self._open[connection] = transport.get_extra_info("socket")
        self._all_closed.clear()

    def lost(self, connection: object) -> None:
        """The client of a connection has gone away."""
        self._open.pop(connection, None)
        if not self._open:
            self._all_closed.set()
        if (answer := self._sending.get(connection)) is not None:
            log.debug("the client of %s went away", answer.request.path)
            answer.task.cancel()

    def end(self) -> None:
        """End every answer: the server stops."""
        if self._check is not None:
            self._check.cancel()
        for answer in tuple(self._sending.values()):
            answer.task.cancel()

    async def closed(self) -> None:
        """Wait until the connections that are being closed are closed, so that none outlives the event loop.

        Over TLS a client has to agree to the end. Connections of clients that do not are cut off.
        """
        await self._wait_closed()
        for each in tuple(self._open.values()):
            # The transport's own `abort` does nothing to a TLS connection that was closed twice, and aiohttp does close twice.
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        await self._wait_closed()

    async def _wait_closed(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await self._all_closed.wait()

    def _schedule(self) -> None:
        if self._check is None:
            loop = asyncio.get_running_loop()
            pause = self._patience_s / CHECKS_PER_PATIENCE
            self._check = loop.call_later(pause, self._abort_stalled)

    def _abort_stalled(self) -> None:
        self._check = None
        latest = asyncio.get_running_loop().time() - self._patience_s
        for answer in tuple(self._sending.values()):
            if answer.since is not None and answer.since < latest:
                log.debug("the client of %s does not read", answer.request.path)
                if (transport := answer.request.transport) is not None:
                    transport.abort()
        if self._sending:
            self._schedule()


class WatchedServer(web.Server):
    """An HTTP server that reports new and lost connections."""

    def __init__(self, connections: Connections, *args: object, **settings: object) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type]
        self._watched = connections

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._watched.made(handler, transport)

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._watched.lost(handler)
