"""Ports of this machine, on which its pods listen, because they share its network."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

_LOOPBACK: Final = ("127.0.0.1", "::1")
_PIECE: Final = 32 * 1024
_FAREWELL_S: Final = 2.0


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
        """What was written last may still be read, but not for ever."""
        self._writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                await self._writer.wait_closed()
        self._writer.transport.abort()


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
