"""HTTP connections of clients that become something else than a WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from drayman.node.spdy.frames import Ping, encoded
from drayman.node.streams.finishing import closed

SPDY: Final = "SPDY/3.1"
_PIECE: Final = 64 * 1024


class RawSocket:
    """Bytes as they come; a message is any piece of them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def receive(self) -> bytes | None:
        try:
            return await self._reader.read(_PIECE) or None
        except ConnectionError:
            return None

    async def send(self, message: bytes) -> None:
        self._writer.write(message)
        await self._writer.drain()

    async def ping(self) -> None:
        """By SPDY, with a number of the server's. The answer means nothing."""
        await self.send(encoded(Ping(2)))

    async def close(self, _code: int) -> None:
        await closed(self._writer)


class _Taken(asyncio.StreamReaderProtocol):
    """What was a connection of the HTTP server. The server hears of its end, because it counts connections."""

    def __init__(self, reader: asyncio.StreamReader, before: RequestHandler) -> None:
        super().__init__(reader)
        self._before = before

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._before.connection_lost(exc)


@asynccontextmanager
async def taken_over(
    request: web.BaseRequest, headers: Mapping[str, str]
) -> AsyncIterator[tuple[web.StreamResponse, RawSocket]]:
    """Agree to an upgrade; what follows on the connection is not HTTP. Raises ConnectionResetError if the client is gone.

    The client waits for the agreement before it sends anything else.
    """
    transport = request.transport
    if transport is None:
        raise ConnectionResetError("the client went away")
    response = web.StreamResponse(
        status=101, headers={**headers, "Connection": "Upgrade", "Upgrade": SPDY}
    )
    reader = asyncio.StreamReader(limit=_PIECE)
    taken = _Taken(reader, request.protocol)
    transport.set_protocol(taken)
    taken.connection_made(transport)
    writer = asyncio.StreamWriter(transport, taken, reader, asyncio.get_running_loop())
    await response.prepare(request)
    response.force_close()
    try:
        yield response, RawSocket(reader, writer)
    finally:
        transport.close()
