"""A command's streams for a client at the other end of a WebSocket."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from drayman.node.streams import channels
from drayman.node.streams.channels import Socket
from drayman.node.streams.finishing import cancelled, to_the_end
from drayman.node.streams.model import NodeApiError, StreamOptions, Streams, WindowSize

_log: Final = logging.getLogger(__name__)
IDLE_S: Final = 4 * 3600.0
"""After so long without a byte in either direction a session ends, as a kubelet's does."""
MOST_INPUT: Final = 32 * 1024
"""Bytes of input that wait for a command. While more do, nothing is read from its client."""

Work = Callable[[Streams], Awaitable[int]]


async def serve(socket: Socket, options: StreamOptions, work: Work, idle_s: float = IDLE_S) -> None:
    """Run a command for a client and say how it ended. Ends early if the client closes the socket, or nothing happens for very long.

    Raises ConnectionError if the client goes away.
    """
    client = _Client(socket, options)
    await socket.send(channels.message(_first_written(options), b""))
    reading = asyncio.create_task(client.receive_all(), name="input of a command")
    working = asyncio.ensure_future(work(client))
    try:
        while True:
            done, _ = await asyncio.wait(
                (reading, working), timeout=idle_s, return_when=asyncio.FIRST_COMPLETED
            )
            if working in done:
                await _say_end(socket, working)
                return
            if reading in done:
                reading.result()
                return
            if client.quiet_s() >= idle_s:
                await socket.send(_error(f"nothing happened for {idle_s:.0f} s"))
                return
    finally:
        await to_the_end(_over(socket, reading, working))


async def _over(socket: Socket, reading: asyncio.Task[None], working: asyncio.Future[int]) -> None:
    await cancelled(reading, working)
    try:
        await socket.close(channels.NORMAL_CLOSURE)
    except ConnectionError as error:
        _log.debug("a client is gone: %s", error)


async def _say_end(socket: Socket, working: asyncio.Future[int]) -> None:
    try:
        status = channels.ended(working.result())
    except NodeApiError as error:
        status = channels.refused(str(error), error.code)
    await socket.send(channels.message(channels.ERROR, status))


def _error(why: str) -> bytes:
    return channels.message(channels.ERROR, channels.refused(why))


def _first_written(options: StreamOptions) -> int:
    """The channel of the empty message that tells a client that its session has begun."""
    if options.stdout:
        return channels.STDOUT
    return channels.STDERR if options.stderr else channels.ERROR


class _Client:
    """The streams of one session."""

    def __init__(self, socket: Socket, options: StreamOptions) -> None:
        self._socket = socket
        self._options = options
        self._input: asyncio.Queue[bytes] = asyncio.Queue()
        self._waiting = 0
        """Bytes of input that the command has not read."""
        self._has_room = asyncio.Event()
        self._is_input_over = not options.stdin
        self._size: asyncio.Queue[WindowSize] = asyncio.Queue(1)
        self._clock = asyncio.get_running_loop().time
        self._last = self._clock()

    def quiet_s(self) -> float:
        """Seconds since something was sent or received."""
        return self._clock() - self._last

    async def receive_all(self) -> None:
        """Sort what the client sends, until it closes the socket."""
        is_open = self._options.stdin
        while (received := await self._socket.receive()) is not None:
            self._last = self._clock()
            channel, data = (received[0], received[1:]) if received else (-1, b"")
            if channel == channels.STDIN and data and is_open:
                await self._keep(data)
            elif channel == channels.CLOSE and is_open and channels.is_end_of_input(data):
                is_open = False
                self._input.put_nowait(b"")
            elif channel == channels.RESIZE and (size := channels.size_of(data)) is not None:
                if self._size.full():  # the last one counts
                    self._size.get_nowait()
                self._size.put_nowait(size)

    async def _keep(self, data: bytes) -> None:
        """Pass input on; returns when there is room for more."""
        self._input.put_nowait(data)
        self._waiting += len(data)
        while self._waiting > MOST_INPUT:
            self._has_room.clear()
            await self._has_room.wait()

    async def read(self) -> bytes:
        if self._is_input_over:
            return b""
        data = await self._input.get()
        self._waiting -= len(data)
        self._has_room.set()
        self._is_input_over = not data
        return data

    async def write(self, data: bytes) -> None:
        if self._options.stdout and data:
            await self._send(channels.STDOUT, data)

    async def write_error(self, data: bytes) -> None:
        if self._options.tty:
            await self.write(data)
        elif self._options.stderr and data:
            await self._send(channels.STDERR, data)

    async def resized(self) -> WindowSize:
        return await self._size.get()

    async def _send(self, channel: int, data: bytes) -> None:
        await self._socket.send(channels.message(channel, data))
        self._last = self._clock()
