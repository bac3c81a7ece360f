"""Ports of this machine, on which its pods listen, because they share its network."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from drayman.node.streams.finishing import closed

_LOOPBACK: Final = ("127.0.0.1", "::1")
_PIECE: Final = 32 * 1024


class LocalConnection:
    """A connection to a port."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        return await self._reader.read(_PIECE)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def end(self) -> None:
        with suppress(OSError):  # it is gone already
            self._writer.write_eof()

    async def close(self) -> None:
        await closed(self._writer)


async def connect(port: int) -> LocalConnection:
    """Raises OSError, with what went wrong with the first address."""
    first: OSError | None = None
    for address in _LOOPBACK:
        try:
            return LocalConnection(*await asyncio.open_connection(address, port))
        except OSError as error:
            first = first or error
    assert first is not None
    raise first
