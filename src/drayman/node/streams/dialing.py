"""Ports of pods on a node that is reached by HTTPS: its connection becomes one of SPDY, which every kubelet serves."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import AsyncExitStack, suppress
from typing import Final

from drayman.node.spdy.errors import SpdyError
from drayman.node.streams.channels import Socket
from drayman.node.streams.finishing import cancelled
from drayman.node.streams.forwarding import DATA, ERROR, PORT, REQUEST, TYPE
from drayman.node.streams.model import NodeApiError
from drayman.node.streams.multiplexing import Multiplexer, Stream, multiplexed
from drayman.node.streams.takeover import SPDY, RawSocket

_LONGEST_HEAD: Final = 64 * 1024
_MOST_ERROR: Final = 4096
_OPEN_S: Final = 30.0


async def upgraded(
    host: str, port: int, context: ssl.SSLContext, path: str, protocol: str
) -> RawSocket:
    """Ask a node to go on in SPDY. Raises OSError if it cannot be reached, and NodeApiError if it refuses.

    One that says nothing would say no farewell either, which TLS waits for, so nobody takes leave of it.
    """
    reader, writer = await asyncio.open_connection(host, port, ssl=context, limit=_LONGEST_HEAD)
    try:
        name = f"[{host}]" if ":" in host else host
        head = (
            f"POST {path} HTTP/1.1",
            f"Host: {name}:{port}",
            "Connection: Upgrade",
            f"Upgrade: {SPDY}",
            f"X-Stream-Protocol-Version: {protocol}",
            "Content-Length: 0",
        )
        writer.write("\r\n".join((*head, "", "")).encode())
        await writer.drain()
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status = answer.split(" ", 2)[1]
        if status != "101":
            text = (await reader.read(_MOST_ERROR)).decode("utf-8", "replace").strip()
            raise NodeApiError(500, f"unable to upgrade connection: {status} {text}".strip())
    except (IndexError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        writer.transport.abort()
        raise NodeApiError(502, f"the node's answer makes no sense: {error}") from error
    except BaseException:
        writer.transport.abort()
        raise
    return RawSocket(reader, writer)


class ForwardedConnection:
    """A connection to a port of a pod. What the node says on the stream for errors is raised by whoever reads."""

    def __init__(self, data: Stream, error: Stream, held: AsyncExitStack) -> None:
        self._data = data
        self._held = held
        self._why = asyncio.create_task(_all_of(error), name="errors of a connection")

    @classmethod
    async def open(cls, socket: Socket, port: int) -> ForwardedConnection:
        """Raises NodeApiError."""
        async with AsyncExitStack() as stack:
            streams = await stack.enter_async_context(multiplexed(socket, is_client=True))
            try:
                async with asyncio.timeout(_OPEN_S):
                    error, data = await _pair(streams, port)
            except (ConnectionError, SpdyError, TimeoutError) as refusal:
                raise NodeApiError(502, f"the node opens no streams: {refusal}") from refusal
            return cls(data, error, stack.pop_all())

    async def read(self) -> bytes:
        try:
            data = await self._data.read()
        except ConnectionError:
            if self._why.done() and (why := self._why.result()):
                raise NodeApiError(500, why) from None
            raise
        if not data and (why := await asyncio.shield(self._why)):
            raise NodeApiError(500, why)
        return data

    async def write(self, data: bytes) -> None:
        await self._data.write(data)

    async def end(self) -> None:
        await self._data.end()

    async def close(self) -> None:
        await cancelled(self._why)
        await self._data.close()
        await self._held.aclose()


async def _pair(streams: Multiplexer, port: int) -> tuple[Stream, Stream]:
    about = {PORT: str(port), REQUEST: "0"}
    error = await streams.open({TYPE: ERROR, **about})
    await error.end()
    return error, await streams.open({TYPE: DATA, **about})


async def _all_of(stream: Stream) -> str:
    said = b""
    with suppress(ConnectionError):
        while len(said) < _MOST_ERROR and (data := await stream.read()):
            said += data
    return said.decode("utf-8", "replace").strip()
