"""Clients made of bare sockets, which can do what no client library lets one do."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from robustness.hostile import Target, hostile_target

from drayman.apiserver.serving.http import Listener, RunningServer, start
from patience import PATIENCE_S

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True, slots=True)
class Listening:
    """A hostile target that listens."""

    target: Target
    running: RunningServer
    clients: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self, receive_buffer: int = 0) -> Connection:
        """A connection, with a buffer that is no larger than asked for."""
        client = socket.socket()
        if receive_buffer:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        client.setblocking(False)
        address = (self.running.host, self.running.port)
        await asyncio.get_running_loop().sock_connect(client, address)
        reader, writer = await asyncio.open_connection(sock=client, limit=receive_buffer or 2**16)
        self.clients.append(writer)
        return reader, writer

    async def ask(self, data: bytes) -> bytes:
        """The first line of the answer to bytes, empty where the connection is closed instead."""
        reader, writer = await self.connect()
        writer.write(data)
        try:
            return await asyncio.wait_for(reader.readline(), PATIENCE_S)
        finally:
            writer.transport.abort()

    async def watch(self, path: str, receive_buffer: int = 0) -> tuple[int, Connection]:
        """The status of a watch, and its connection with nothing read but the first line."""
        reader, writer = await self.connect(receive_buffer)
        writer.write(get(f"{path}?watch=1"))
        line = await asyncio.wait_for(reader.readline(), PATIENCE_S)
        return int(line.split()[1]), (reader, writer)

    @property
    def watches(self) -> tuple[int, int]:
        """Watches that count towards the limit, and subscriptions of the store."""
        return self.target.server.limits.watches.taken, self.target.server.core.store.watchers


def get(path: str, *headers: bytes) -> bytes:
    lines = (f"GET {path} HTTP/1.1".encode(), b"Host: x", *headers)
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for something to become true, with a clear complaint if it does not."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"{what} did not happen within {PATIENCE_S} s") from None


@asynccontextmanager
async def listening(
    *, patience_s: float | None = None, most_connections: int = 0
) -> AsyncIterator[Listening]:
    """A listening target. A client that reads nothing for `patience_s` is cut off."""
    async with hostile_target() as target:
        if patience_s is not None:
            target.server.limits.patience_s = patience_s
        running = await start(target.server, Listener(most_connections=most_connections))
        server = Listening(target, running)
        try:
            yield server
            assert not target.tracebacks.found, target.tracebacks.found
        finally:
            for client in server.clients:
                client.transport.abort()
            await running.stop()
