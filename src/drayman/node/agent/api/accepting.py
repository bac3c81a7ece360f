"""Connections to a node's server: how many there may be, and how long they may take to say what they want.

Whoever reaches the node can connect to it, and most of the limits are for those who then say nothing. The server of the event loop has no
bound for connections that have not shown who they are, and no way to drop one of them for another.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from drayman.cluster.background import in_background

PAUSE_S: Final = 0.25
"""How long nothing is accepted after the system has refused."""
_BACKLOG: Final = 128
_UNSENT: Final = 64 * 1024
"""Bytes that wait for a client that does not read. With TLS it would be half a megabyte for each session."""
_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """What connections may cost."""

    handshakes: int = 64
    """At a time. The oldest makes way for another one: a client that is well takes a fraction of a second."""
    handshake_s: float = 5.0
    connections: int = 512
    """With those that have shown who they are. Each log that is followed and each command has one."""
    idle_s: float = 100.0
    """Without a request. Longer than API servers keep connections for later, for it is better that they close them."""


LIMITS: Final = Limits()


class Acceptor:
    """Accepts connections for a server as long as `run` runs."""

    def __init__(
        self,
        server: web.Server,
        tls: ssl.SSLContext,
        is_idle: Callable[[RequestHandler], bool],
        limits: Limits,
    ) -> None:
        """`is_idle` says whether a connection has no request under way, and may make way for another one."""
        self._server = server
        self._tls = tls
        self._is_idle = is_idle
        self._limits = limits
        self._shaking: dict[asyncio.Task[None], None] = {}
        """Handshakes under way, the oldest first."""

    async def run(self, listening: socket.socket) -> None:
        """Works until cancelled."""
        try:
            while True:
                await self._accept(listening)
                # A flood of connections must not keep out what else there is to do.
                await asyncio.sleep(0)
        finally:
            for task in self._shaking:
                task.cancel()
            await asyncio.gather(*self._shaking, return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        await _readable(listening)
        try:
            # Not by the event loop, which loses a connection if it is told to stop in the moment in which that comes.
            accepted, _ = listening.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as error:
            _log.warning("no connection can be accepted for a moment: %s", error.strerror)
            self._drop_oldest_handshake()
            await asyncio.sleep(PAUSE_S)
            return
        if not self._has_room():
            accepted.close()
            return
        if len(self._shaking) >= self._limits.handshakes:
            self._drop_oldest_handshake()
        accepted.setblocking(False)
        # It has begun, and the connection is its own, before anything here can cancel it: `run` gives way after each.
        task = asyncio.create_task(self._shake_hands(accepted), name="handshake of a client")
        self._shaking[task] = None
        task.add_done_callback(lambda done: self._shaking.pop(done, None))

    def _drop_oldest_handshake(self) -> None:
        if self._shaking:
            task = next(iter(self._shaking))
            del self._shaking[task]
            task.cancel()

    def _has_room(self) -> bool:
        """Whether there may be one more connection, for which an idle one may have to go."""
        connections = self._server.connections
        if len(connections) < self._limits.connections:
            return True
        for each in connections:
            transport = each.transport
            if self._is_idle(each) and transport is not None and not transport.is_closing():
                assert isinstance(transport, asyncio.Transport)
                transport.abort()
                return True
        return False

    async def _shake_hands(self, accepted: socket.socket) -> None:
        try:
            transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                self._server,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=self._limits.handshake_s,
                ssl_shutdown_timeout=self._limits.handshake_s,
            )
            transport.set_write_buffer_limits(high=_UNSENT)
        except OSError as error:  # those of TLS are, too
            _log.debug("a client was not let in: %s", error)


async def _readable(listening: socket.socket) -> None:
    """Returns when somebody wants to connect."""
    loop, somebody = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(listening, somebody.set)
    try:
        await somebody.wait()
    finally:
        loop.remove_reader(listening)


@asynccontextmanager
async def accepting(acceptor: Acceptor, address: str, port: int) -> AsyncIterator[int]:
    """Listens until the context is left; gives the port. Raises OSError."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, port), family=family, backlog=_BACKLOG) as listening:
        listening.setblocking(False)
        running = in_background(acceptor.run(listening), "the acceptor of the node", _log)
        try:
            yield int(listening.getsockname()[1])
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
