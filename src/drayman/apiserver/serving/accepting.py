"""Accepting connections: a few in each iteration of the event loop, and no more than there are file descriptors for.

The event loop has a server of its own, but that accepts a thousand connections at once, whose TLS handshakes then keep everybody waiting;
it gives each of them a buffer of 256 KiB; and when the process has no file descriptors left, it logs a traceback for each connection.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import ssl
import time
from asyncio.sslproto import SSLProtocol, SSLProtocolState
from typing import Final

from drayman.apiserver.protocol.round_robin import RoundRobin
from drayman.apiserver.serving.connections import Connection, Connections, WatchedServer

log = logging.getLogger(__name__)

BACKLOG: Final = 1024
ACCEPTED_PER_ITERATION: Final = 8
HANDSHAKES_S: Final = 0.005
"""How long TLS handshakes are worked on in one iteration; each step of one takes a fraction of a millisecond."""
PAUSE_S: Final = 0.25
"""How long nothing is accepted after the system has refused."""
MOST_CONNECTIONS: Final = 12_000
"""Room for all watches, and for requests besides."""
RESERVED_FILES: Final = 128
"""File descriptors that are kept for the store, for logs and for libraries."""


def most_connections() -> int:
    """How many connections may be open at a time."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return min(MOST_CONNECTIONS, max(1, soft - RESERVED_FILES))


class Acceptor:
    """Accepts connections on some sockets until it is closed."""

    def __init__(
        self, server: WatchedServer, connections: Connections, tls: ssl.SSLContext | None
    ) -> None:
        self._server = server
        self._connections = connections
        self._tls = tls
        self._handshakes = _Handshakes()
        self._sockets: list[socket.socket] = []
        self._opening: set[asyncio.Task[None]] = set()
        self._pauses: set[asyncio.TimerHandle] = set()

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Listen at every address of a host; the first one, with its port, is returned. Raises OSError."""
        loop = asyncio.get_running_loop()
        flags = socket.AI_PASSIVE
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=flags)
        for family, kind, protocol, _, address in dict.fromkeys(found):
            self._sockets.append(listening := socket.socket(family, kind, protocol))
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listening.bind(address)
            listening.setblocking(False)
            listening.listen(BACKLOG)
        for listening in self._sockets:
            loop.add_reader(listening, self._accept, listening)
        where: tuple[str, int] = self._sockets[0].getsockname()[:2]
        return where

    async def close(self) -> None:
        """Accept no more connections. Those that are just being opened are given up."""
        loop = asyncio.get_running_loop()
        for pause in self._pauses:
            pause.cancel()
        for listening in self._sockets:
            loop.remove_reader(listening)
            listening.close()
        self._sockets.clear()
        opening = tuple(self._opening)
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED_PER_ITERATION):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("no connection can be accepted for a moment: %s", error.strerror)
                self._connections.make_room()
                self._pause(listening)
                return
            if not self._connections.has_room():
                accepted.close()
                continue
            accepted.setblocking(False)
            self._begin(accepted, address[0])

    def _begin(self, accepted: socket.socket, peer: str) -> None:
        task = asyncio.get_running_loop().create_task(self._open(accepted, peer))
        self._opening.add(task)

        def over(_: asyncio.Task[None]) -> None:
            self._opening.discard(task)
            if task.cancelled():
                accepted.close()  # it may not even have begun

        task.add_done_callback(over)

    def _pause(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)

        def go_on() -> None:
            self._pauses.discard(timer)
            loop.add_reader(listening, self._accept, listening)

        timer = loop.call_later(PAUSE_S, go_on)
        self._pauses.add(timer)

    async def _open(self, accepted: socket.socket, peer: str) -> None:
        loop = asyncio.get_running_loop()
        connection = self._server()
        protocol: asyncio.BaseProtocol = connection
        if self._tls is not None:
            protocol = _Tls(connection, peer, self._tls, self._handshakes, self._connections)
        self._connections.opened(connection)
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, accepted)
        except BaseException:
            self._connections.lost(connection)
            accepted.close()
            raise
        connection.transport_below = transport


class _Handshakes:
    """TLS handshakes under way, a few milliseconds of them in each iteration of the event loop, of one address after the other."""

    def __init__(self) -> None:
        self._waiting: RoundRobin[_Tls] = RoundRobin()

    def go_on(self, peer: str, tls: _Tls) -> None:
        """Take the next step of a handshake in a moment."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._work)
        self._waiting.put(peer, tls)

    def _work(self) -> None:
        end = time.perf_counter() + HANDSHAKES_S
        try:
            while self._waiting and time.perf_counter() < end:
                self._waiting.pop().shake_hands()
        finally:
            if self._waiting:
                asyncio.get_running_loop().call_soon(self._work)


class _Tls(SSLProtocol):
    """TLS for one connection, with a buffer for one record rather than sixteen."""

    max_size = 16 * 1024

    def __init__(
        self,
        connection: Connection,
        peer: str,
        tls: ssl.SSLContext,
        handshakes: _Handshakes,
        connections: Connections,
    ) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop, connection, tls, None, server_side=True)  # type: ignore[arg-type]
        self._connection = connection
        self._peer = peer
        self._handshakes = handshakes
        self._connections = connections

    def _do_handshake(self) -> None:
        """Bytes of a handshake have arrived."""
        self._handshakes.go_on(self._peer, self)

    def shake_hands(self) -> None:
        state: object = self._state  # type: ignore[attr-defined]
        if state is SSLProtocolState.DO_HANDSHAKE:  # It may have ended in the meantime.
            super()._do_handshake()  # type: ignore[misc]

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection itself does not hear of this if it ends before the handshake does."""
        super().connection_lost(exc)
        self._connections.lost(self._connection)
