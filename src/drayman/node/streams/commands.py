"""The streams of a command as streams of SPDY, for clients that do not use WebSocket.

Each stream says in its header `streamType` what it is for. They carry the same as the channels of a WebSocket, so they are turned into its
messages, and one way to follow a command serves both.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from drayman.api.struct import Json
from drayman.node.spdy.session import PROTOCOL_ERROR
from drayman.node.streams import channels, serving
from drayman.node.streams.channels import Socket
from drayman.node.streams.finishing import cancelled
from drayman.node.streams.model import StreamOptions
from drayman.node.streams.multiplexing import Multiplexer, Stream, multiplexed

PROTOCOLS: Final = (channels.V4, "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
"""The best one first. The last two know no sizes of terminals, and only the first one has exit codes."""
TYPE: Final = "streamtype"
OPENING_S: Final = 30.0
"""How long a client may take to open its streams."""
_LONGEST_SIZE: Final = 1024
_CHANNELS: Final = {
    "error": channels.ERROR,
    "stdin": channels.STDIN,
    "stdout": channels.STDOUT,
    "stderr": channels.STDERR,
    "resize": channels.RESIZE,
}


def wanted(options: StreamOptions, protocol: str) -> set[int]:
    """The channels for which a client opens a stream."""
    found = {
        channels.ERROR: True,
        channels.STDIN: options.stdin,
        channels.STDOUT: options.stdout,
        channels.STDERR: options.stderr and not options.tty,
        channels.RESIZE: options.tty and protocol in PROTOCOLS[:2],
    }
    return {channel for channel, is_wanted in found.items() if is_wanted}


async def serve(socket: Socket, protocol: str, options: StreamOptions, work: serving.Work) -> None:
    """Run a command for a client at the other end of a SPDY connection, and say how it ended."""
    async with multiplexed(socket, is_client=False) as streams:
        try:
            async with asyncio.timeout(OPENING_S):
                opened = await _opened(streams, wanted(options, protocol))
        except TimeoutError:
            return
        if opened is not None:
            await serving.serve(_Channels(streams, opened, protocol), options, work)


async def _opened(streams: Multiplexer, missing: set[int]) -> dict[int, Stream] | None:
    """The streams of a client, once there are all; None if the client leaves."""
    found: dict[int, Stream] = {}
    while missing:
        stream = await streams.accept()
        if stream is None:
            return None
        channel = _CHANNELS.get(stream.headers.get(TYPE, ""))
        if channel is None or channel not in missing:
            stream.refuse(PROTOCOL_ERROR)
            continue
        missing = missing - {channel}
        found[channel] = stream
    return found


class _Channels:
    """Streams as a WebSocket with channels."""

    def __init__(self, streams: Multiplexer, opened: dict[int, Stream], protocol: str) -> None:
        self._streams = streams
        self._opened = opened
        self._protocol = protocol
        self._messages: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._reading = [asyncio.create_task(self._refuse_more())]
        if channels.STDIN in opened:
            self._reading.append(asyncio.create_task(self._read_input(opened[channels.STDIN])))
        if channels.RESIZE in opened:
            self._reading.append(asyncio.create_task(self._read_sizes(opened[channels.RESIZE])))

    async def receive(self) -> bytes | None:
        return await self._messages.get()

    async def send(self, message: bytes) -> None:
        channel, data = message[0], message[1:]
        if channel == channels.ERROR and self._protocol != channels.V4:
            data = _in_words(data)
        stream = self._opened.get(channel)
        if stream is not None and data:
            await stream.write(data)

    async def close(self, _code: int) -> None:
        await cancelled(*self._reading)
        for channel, stream in self._opened.items():
            await stream.end()
            if channel in (channels.STDIN, channels.RESIZE):
                await stream.close()

    async def _read_input(self, stream: Stream) -> None:
        try:
            while data := await stream.read():
                await self._messages.put(channels.message(channels.STDIN, data))
            await self._messages.put(bytes((channels.CLOSE, channels.STDIN)))
        except ConnectionError:
            await self._messages.put(None)

    async def _read_sizes(self, stream: Stream) -> None:
        """A line each."""
        rest = b""
        try:
            while data := await stream.read():
                *lines, rest = (rest + data).split(b"\n")
                rest = rest[-_LONGEST_SIZE:]
                for line in lines:
                    await self._messages.put(channels.message(channels.RESIZE, line))
        except ConnectionError:
            return

    async def _refuse_more(self) -> None:
        """There is nothing for more streams to do; when the connection ends, so does the session."""
        while (stream := await self._streams.accept()) is not None:
            stream.refuse(PROTOCOL_ERROR)
        await self._messages.put(None)


def _in_words(status: bytes) -> bytes:
    """What older clients are told of the end: nothing if all went well."""
    found = msgspec.json.decode(status, type=dict[str, Json]) if status else {}
    return str(found.get("message") or "").encode() if found.get("status") == "Failure" else b""
