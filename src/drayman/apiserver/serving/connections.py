"""Clients that go away or stop reading while they are being answered.

A client that goes away takes its answer with it at once, rather than at the next write, which for a watch of something quiet may be
half an hour off. A client that stops reading is cut off after a while: what it was to be sent waits in memory, and a watch counts
for as long as it is open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

log = logging.getLogger(__name__)

SLICE: Final = 64 * 1024
"""Most bytes that are handed over to be sent at once."""
CHECKS_PER_PATIENCE: Final = 4


@dataclass(slots=True, eq=False)
class Sending:
    """An answer on its way to a client."""

    request: web.BaseRequest
    task: asyncio.Task[object]
    since: float | None = None
    """Since when the client has not taken what it was sent last; None while nothing is waiting for it."""

    async def write(self, response: web.StreamResponse, data: bytes) -> None:
        """Send data, in slices of which each gets the whole patience."""
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

    def __len__(self) -> int:
        return len(self._sending)

    def waiting_bytes(self) -> int:
        """What was sent and is still in memory because clients have not read it."""
        transports = (answer.request.transport for answer in self._sending.values())
        return sum(t.get_write_buffer_size() for t in transports if t is not None)

    @contextmanager
    def sending(self, request: web.BaseRequest) -> Iterator[Sending]:
        """Watches over an answer while it is sent. The current task is cancelled once that is to no purpose.

        Raises ConnectionResetError where the client has gone away already.
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

    def lost(self, connection: object) -> None:
        """The client of a connection has gone away."""
        if (answer := self._sending.get(connection)) is not None:
            log.debug("the client of %s went away", answer.request.path)
            answer.task.cancel()

    def end(self) -> None:
        """End every answer: the server stops."""
        if self._check is not None:
            self._check.cancel()
        for answer in tuple(self._sending.values()):
            answer.task.cancel()

    def _schedule(self) -> None:
        if self._check is None:
            loop = asyncio.get_running_loop()
            pause = self._patience_s / CHECKS_PER_PATIENCE
            self._check = loop.call_later(pause, self._cut_off_the_stalled)

    def _cut_off_the_stalled(self) -> None:
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
    """An HTTP server that tells when a connection is lost."""

    def __init__(self, connections: Connections, *args: object, **settings: object) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type]
        self._watched = connections

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._watched.lost(handler)
