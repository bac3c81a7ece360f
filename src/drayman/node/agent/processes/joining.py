"""Clients that attach to a container: the agent passes their streams on to the shim, which outlives it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from drayman.node.agent.processes.attaching import (
    CLOSE,
    HEAD,
    LONGEST,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    message,
)
from drayman.node.agent.processes.terminals import Output
from drayman.node.agent.processes.window_sizes import packed
from drayman.node.streams.finishing import cancelled, to_the_end
from drayman.node.streams.model import StreamOptions, Streams

_AGAIN_S: Final = 0.05


async def join_container(folder: Path, options: StreamOptions, streams: Streams) -> None:
    """Pass streams on until the container ends. Raises OSError.

    One that ends without having read its input breaks the connection for who writes. It is not the same one for who reads, because there
    may be output on its way.
    """
    reader = asyncio.StreamReader(limit=LONGEST)
    async with _conversation(folder, reader) as writer:
        tasks = [asyncio.create_task(_pass_sizes(writer, streams))]
        if options.stdin:
            tasks.append(asyncio.create_task(_pass_input(writer, streams)))
        try:
            await _pass_output(reader, streams)
        finally:
            await to_the_end(cancelled(*tasks))


@asynccontextmanager
async def _conversation(
    folder: Path, reader: asyncio.StreamReader
) -> AsyncIterator[asyncio.StreamWriter]:
    """The connection for who writes, while the reader has one, too. A client may leave at any moment of this."""
    with ExitStack() as opened:
        near = await _connected(folder)
        try:
            _, writer = await asyncio.open_unix_connection(sock=near.dup())
            opened.callback(writer.close)
            output, loop = Output(reader), asyncio.get_running_loop()
            reading, _ = await loop.create_unix_connection(lambda: output, sock=near)
            opened.callback(reading.close)
        except BaseException:
            near.close()
            raise
        try:
            yield writer
        except BaseException:
            # Closing waits until the container has read what was said, which it may never do.
            writer.transport.abort()
            raise


async def _connected(folder: Path) -> socket.socket:
    """By way of the folder: the path of a socket must not be long."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    found.setblocking(False)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        while True:
            try:
                found.connect(f"/proc/self/fd/{place}/attach")
                return found
            except ConnectionRefusedError:  # nobody looks after it any more
                raise ConnectionRefusedError("the container has ended") from None
            except BlockingIOError:  # more clients wait than the shim has room for
                await asyncio.sleep(_AGAIN_S)
    except BaseException:
        found.close()
        raise
    finally:
        os.close(place)


async def _pass_output(reader: asyncio.StreamReader, streams: Streams) -> None:
    try:
        while True:
            kind, length = HEAD.unpack(await reader.readexactly(HEAD.size))
            data = await reader.readexactly(length)
            if kind == STDOUT:
                await streams.write(data)
            elif kind == STDERR:
                await streams.write_error(data)
    except asyncio.IncompleteReadError:
        return  # the container has ended


async def _pass_input(writer: asyncio.StreamWriter, streams: Streams) -> None:
    writer.write(message(STDIN, b""))  # from now on it has somebody to hear
    while data := await streams.read():
        for start in range(0, len(data), LONGEST):
            writer.write(message(STDIN, data[start : start + LONGEST]))
            await writer.drain()
    writer.write(message(CLOSE, b""))


async def _pass_sizes(writer: asyncio.StreamWriter, streams: Streams) -> None:
    while True:
        size = await streams.resized()
        if (possible := packed(size.width, size.height)) is not None:
            writer.write(message(RESIZE, possible))
