"""Streams of SPDY over one connection, for those who read and write them.

Nobody waits for a connection to take what is answered to it while it is being read: two ends that each wait for the other to read would
wait for ever. What a stream has received waits until somebody reads it; when that is too much, the connection is not read on.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from drayman.node.spdy.errors import SpdyError
from drayman.node.spdy.session import (
    CANCEL,
    PROTOCOL_ERROR,
    Accepted,
    Broken,
    Ended,
    Event,
    Opened,
    Received,
    Session,
)
from drayman.node.streams.channels import NORMAL_CLOSURE, Socket
from drayman.node.streams.finishing import cancelled, to_the_end

_log: Final = logging.getLogger(__name__)
PIECE: Final = 32 * 1024
"""Bytes of one frame of data."""
MOST_WAITING: Final = 256 * 1024
"""Bytes of a stream that wait to be read."""
MOST_UNSENT: Final = 128 * 1024
"""Bytes that wait to be sent before streams wait with theirs."""
MOST_ANSWERS: Final = 1024 * 1024
"""Bytes that wait to be sent before the connection is not read any more: somebody asks, and does not read the answers."""
FAREWELL_S: Final = 2.0
"""How long the other end may take to read the last bytes and to agree to the end."""


class _Pulse:
    """Wakes everybody who waits at the moment."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    async def wait(self) -> None:
        await self._event.wait()

    def beat(self) -> None:
        self._event.set()
        self._event = asyncio.Event()


class Stream:
    """One of the streams. It is a `Connection`."""

    def __init__(self, streams: Multiplexer, number: int, headers: Mapping[str, str]) -> None:
        self._streams = streams
        self.number = number
        self.headers = headers
        self.is_accepted = False
        """By the other end."""
        self._pieces: deque[bytes] = deque()
        self.waiting = 0
        """Bytes that nobody has read."""
        self.is_ended = False
        """Whether the other end sends nothing more."""
        self.is_broken = False
        self.when_broken: Callable[[], None] | None = None
        """Called when the other end resets it, or is gone."""

    async def read(self) -> bytes:
        while not self._pieces:
            if self.is_ended:
                return b""
            if self.is_broken:
                raise ConnectionResetError("the stream was reset")
            await self._streams.pulse.wait()
        piece = self._pieces.popleft()
        self.waiting -= len(piece)
        self._streams.consumed(self, len(piece))
        return piece

    async def write(self, data: bytes) -> None:
        await self._streams.send(self, data)

    async def end(self) -> None:
        self._streams.end(self)

    async def close(self) -> None:
        self._streams.reset(self, CANCEL)

    def refuse(self, status: int) -> None:
        """Reset it with a reason."""
        self._streams.reset(self, status)

    def arrived(self, data: bytes) -> None:
        self._pieces.append(data)
        self.waiting += len(data)

    def release(self) -> None:
        """Forget what has not been read."""
        self._pieces.clear()
        self.waiting = 0

    def broken(self) -> None:
        self.is_broken = True
        if self.when_broken is not None:
            self.when_broken()


class Multiplexer:
    """The streams of a connection."""

    def __init__(self, socket: Socket, *, is_client: bool) -> None:
        self._socket = socket
        self._session = Session(is_client=is_client)
        self._streams: dict[int, Stream] = {}
        self._opened: asyncio.Queue[Stream | None] = asyncio.Queue()
        self.pulse = _Pulse()
        self.is_over = False
        """Whether the connection has ended."""
        self._clock = asyncio.get_running_loop().time
        self._last = self._clock()

    def quiet_s(self) -> float:
        """Seconds since data was sent or received; pings are none."""
        return self._clock() - self._last

    # --- For those who have streams ------------------------------------------------------------

    async def accept(self) -> Stream | None:
        """The next stream that the other end opens; None when the connection has ended."""
        return None if self.is_over and self._opened.empty() else await self._opened.get()

    async def open(self, headers: Mapping[str, str]) -> Stream:
        """Raises ConnectionError if the other end does not want the stream, and SpdyError if there can be no more."""
        stream = Stream(self, self._session.open(headers), headers)
        self._streams[stream.number] = stream
        self.pulse.beat()
        while not stream.is_accepted:
            if stream.is_broken or self.is_over:
                raise ConnectionRefusedError("the stream was refused")
            await self.pulse.wait()
        return stream

    async def send(self, stream: Stream, data: bytes) -> None:
        at = 0
        while at < len(data):
            if self.is_over or not self._session.is_open(stream.number):
                raise ConnectionResetError("the stream is closed")
            room = self._session.room(stream.number)
            if not room or self._session.pending > MOST_UNSENT:
                await self.pulse.wait()
                continue
            piece = data[at : at + min(room, PIECE)]
            self._session.send(stream.number, piece)
            self._last = self._clock()
            at += len(piece)
            self.pulse.beat()

    def end(self, stream: Stream) -> None:
        self._session.end(stream.number)
        if stream.is_ended:
            self._streams.pop(stream.number, None)
        self.pulse.beat()

    def reset(self, stream: Stream, status: int) -> None:
        self._session.reset(stream.number, status)
        stream.broken()
        self._streams.pop(stream.number, None)
        self.pulse.beat()

    def consumed(self, stream: Stream, count: int) -> None:
        self._session.consumed(stream.number, count)
        self.pulse.beat()

    # --- For the connection --------------------------------------------------------------------

    async def read_all(self) -> None:
        """Sort what arrives, until the connection ends."""
        try:
            while (data := await self._socket.receive()) is not None:
                for event in self._session.receive(data):
                    await self._handle(event)
                self.pulse.beat()
                if self._session.is_leaving and not len(self._session):
                    return
                while self._session.pending > MOST_ANSWERS:
                    await self.pulse.wait()
        except SpdyError as error:
            _log.debug("a connection ends: %s", error)
            self._session.leave(PROTOCOL_ERROR)
        except ConnectionError as error:
            _log.debug("a connection ends: %s", error)
        finally:
            self._finish()

    def _finish(self) -> None:
        self.is_over = True
        for stream in self._streams.values():
            stream.broken()
        self._opened.put_nowait(None)
        self.pulse.beat()

    async def _handle(self, event: Event) -> None:
        if isinstance(event, Opened):
            stream = Stream(self, event.stream, event.headers)
            self._streams[event.stream] = stream
            self._session.accept(event.stream)
            self._opened.put_nowait(stream)
            return
        found = self._streams.get(event.stream)
        if found is None:
            if isinstance(event, Received):
                self._session.consumed(event.stream, len(event.data))
            return
        match event:
            case Accepted():
                found.is_accepted = True
            case Received(_, data):
                self._last = self._clock()
                found.arrived(data)
                self.pulse.beat()
                while found.waiting > MOST_WAITING and not found.is_broken:
                    await self.pulse.wait()
            case Ended():
                found.is_ended = True
                if event.stream not in self._session:
                    del self._streams[event.stream]
            case Broken():
                found.broken()
                del self._streams[event.stream]

    async def write_all(self) -> None:
        """Send what there is to be sent, until cancelled. Raises ConnectionError."""
        while True:
            if data := self._session.take():
                await self._socket.send(data)
                self.pulse.beat()
            else:
                await self.pulse.wait()

    def release(self) -> None:
        """The connection is over: forget what was not read and not sent.

        Streams and their connection refer to each other, and the collector of such circles may come by much later.
        """
        self._session.release()
        for stream in self._streams.values():
            stream.release()
        self._streams.clear()

    async def leave(self, reading: asyncio.Task[None], writing: asyncio.Task[None]) -> None:
        """Say farewell, and read on until the other end has done so, too: what it has not read yet could be lost otherwise."""
        self._session.leave()
        self.pulse.beat()
        await asyncio.wait(
            (reading, writing), timeout=FAREWELL_S, return_when=asyncio.FIRST_COMPLETED
        )


@asynccontextmanager
async def multiplexed(socket: Socket, *, is_client: bool) -> AsyncIterator[Multiplexer]:
    """The streams of a connection, which ends when the context is left."""
    streams = Multiplexer(socket, is_client=is_client)
    reading = asyncio.create_task(streams.read_all(), name="streams that are read")
    writing = asyncio.create_task(streams.write_all(), name="streams that are written")
    writing.add_done_callback(lambda _: reading.cancel())  # nobody is there to be answered
    try:
        yield streams
        if not streams.is_over:
            await streams.leave(reading, writing)
    finally:
        await to_the_end(_closed(streams, socket, reading, writing))


async def _closed(streams: Multiplexer, socket: Socket, *tasks: asyncio.Task[None]) -> None:
    await cancelled(*tasks)
    streams.release()
    await socket.close(NORMAL_CLOSURE)
