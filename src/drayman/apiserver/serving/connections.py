"""Clients that go away, stop reading, or keep the server waiting.

If a client goes away, its answer ends at once rather than at the next write, which may be half an hour later for a quiet watch. A
client that stops reading is disconnected after a while: the data for it waits in memory, and a watch counts for as long as it is open.
So is a client that begins a request and does not go on with it. When too many connections are open, the one on which the server has waited
longest makes room for the next; those that are being answered stay.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from drayman.apiserver.protocol.limits import ServerLimits

log = logging.getLogger(__name__)

SLICE: Final = 64 * 1024
"""The most bytes that are passed on for sending at once."""
CHECKS_PER_PATIENCE: Final = 4
CHECKS_PER_IDLENESS: Final = 30
"""A connection is closed between two requests long before this. It ends those whose clients do not read small answers."""
KEEP_ALIVE_S: Final = 120.0
"""How long a connection stays open between two requests."""
FAREWELL_S: Final = 0.25
"""How long clients have to agree to the end of TLS when the server stops."""


@dataclass(slots=True, eq=False)
class Sending:
    """An answer that is being sent to a client."""

    request: web.BaseRequest
    task: asyncio.Task[object]
    since: float | None = None
    """Since when the client has not read the last data; None while no data is waiting for it."""

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Limits the time for what is sent in the context."""
        self.since = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            self.since = None

    async def write(self, response: web.StreamResponse, data: bytes) -> None:
        """Send data, in slices, each with the full time limit."""
        loop = asyncio.get_running_loop()
        view = memoryview(data)
        for start in range(0, len(data), SLICE):
            self.since = loop.time()
            await response.write(view[start : start + SLICE])
        self.since = None


class Connection(RequestHandler):
    """A connection that reports when something arrives on it."""

    __slots__ = ("_connections", "is_idle", "transport_below")

    def __init__(self, connections: Connections, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._connections = connections
        self.is_idle = False
        """Whether the last request is answered and nothing of the next one has arrived."""
        self.transport_below: asyncio.Transport | None = None
        """That of the socket: below TLS, if there is TLS."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # Over TLS half a megabyte would wait for a client that does not read, for each of thousands of watches.
        cast("asyncio.Transport", transport).set_write_buffer_limits(high=SLICE)

    def data_received(self, data: bytes) -> None:
        if self.is_idle:
            self._connections.receiving(self)
        super().data_received(data)


class Connections:
    """The connections that are open, and the answers that are being sent on them."""

    def __init__(self, limits: ServerLimits, most: int) -> None:
        self._limits = limits
        self._most = most
        self._sending: dict[object, Sending] = {}
        self._check: asyncio.TimerHandle | None = None
        self._open: set[Connection] = set()
        self._awaited: dict[Connection, float] = {}
        """Connections on which the server waits for the client, longest first, each with the number of the check that ends it."""
        self._checks = 0
        self._check_awaited: asyncio.TimerHandle | None = None
        self._was_full = False
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

    def has_room(self) -> bool:
        """Whether one more connection can be opened, if need be in place of another."""
        if len(self._open) < self._most:
            self._was_full = False
            return True
        if not self._was_full:
            self._was_full = True
            log.warning("%d connections are open: the oldest idle ones are closed", self._most)
        return self.make_room()

    def make_room(self) -> bool:
        """Close the connection on which the server has waited longest. False if there is none."""
        longest = next(iter(self._awaited), None)
        if longest is None:
            return False
        self._cut(longest)
        return True

    def opened(self, connection: Connection) -> None:
        """A client has connected. TLS, if there is any, has yet to be agreed upon."""
        self._open.add(connection)
        self._all_closed.clear()
        self._awaited[connection] = self._checks + CHECKS_PER_PATIENCE
        if self._check_awaited is None:
            self._schedule_awaited()

    def receiving(self, connection: Connection) -> None:
        """The first bytes of another request are there."""
        connection.is_idle = False
        del self._awaited[connection]  # It was silent for less time than others.
        self._awaited[connection] = self._checks + CHECKS_PER_PATIENCE

    def reading(self, connection: Connection) -> None:
        """The head of a request is there, but not yet its body."""
        self._awaited[connection] = math.inf

    def answering(self, connection: Connection) -> None:
        """All of a request is there."""
        self._awaited.pop(connection, None)

    def answered(self, connection: Connection) -> None:
        """A request has been answered, and the next one is waited for."""
        if connection in self._open:
            connection.is_idle = True
            self._awaited[connection] = self._checks + CHECKS_PER_IDLENESS

    def lost(self, connection: Connection) -> None:
        """The client of a connection has gone away."""
        connection.is_idle = False
        self._awaited.pop(connection, None)
        self._open.discard(connection)
        if not self._open:
            self._all_closed.set()
        if (answer := self._sending.get(connection)) is not None:
            log.debug("the client of %s went away", answer.request.path)
            answer.task.cancel()

    def end(self) -> None:
        """End every answer: the server stops."""
        for check in (self._check, self._check_awaited):
            if check is not None:
                check.cancel()
        for answer in tuple(self._sending.values()):
            answer.task.cancel()

    async def closed(self) -> None:
        """Wait until the connections that are being closed are closed, so that none outlives the event loop.

        Over TLS a client has to agree to the end. Connections of clients that do not are cut off.
        """
        await self._wait_closed()
        for connection in tuple(self._open):
            self._cut(connection)
        await self._wait_closed()

    def _cut(self, connection: Connection) -> None:
        """End a connection without the client's agreement."""
        if connection.transport_below is not None:
            connection.is_idle = False
            self._awaited.pop(connection, None)
            connection.transport_below.abort()

    async def _wait_closed(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                await self._all_closed.wait()

    def _schedule(self) -> None:
        if self._check is None:
            loop = asyncio.get_running_loop()
            pause = self._limits.patience_s / CHECKS_PER_PATIENCE
            self._check = loop.call_later(pause, self._abort_stalled)

    def _abort_stalled(self) -> None:
        self._check = None
        latest = asyncio.get_running_loop().time() - self._limits.patience_s
        for answer in tuple(self._sending.values()):
            if answer.since is not None and answer.since < latest:
                log.debug("the client of %s does not read", answer.request.path)
                if (transport := answer.request.transport) is not None:
                    transport.abort()
        if self._sending:
            self._schedule()

    def _schedule_awaited(self) -> None:
        pause = self._limits.head_s / CHECKS_PER_PATIENCE
        self._check_awaited = asyncio.get_running_loop().call_later(pause, self._cut_awaited)

    def _cut_awaited(self) -> None:
        self._check_awaited = None
        for connection in [each for each, last in self._awaited.items() if last < self._checks]:
            log.debug("a client does not go on with its request")
            self._cut(connection)
        self._checks += 1
        if self._open:
            self._schedule_awaited()


class WatchedServer(web.Server):
    """An HTTP server that makes connections of ours, and reports lost ones."""

    def __init__(self, connections: Connections, *args: object, **settings: object) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type]
        self._watched = connections

    def __call__(self) -> Connection:
        return Connection(self._watched, self, loop=self._loop, **self._kwargs)

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        assert isinstance(handler, Connection)
        self._watched.lost(handler)
