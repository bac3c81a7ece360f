"""Ports of a pod for a client: each connection to one is a pair of streams, for its bytes and for what goes wrong with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

from drayman.node.spdy.session import MOST_STREAMS, PROTOCOL_ERROR, REFUSED_STREAM
from drayman.node.streams.channels import NORMAL_CLOSURE, V4, Socket, message
from drayman.node.streams.finishing import cancelled, to_the_end
from drayman.node.streams.model import Connection, NodeApiError
from drayman.node.streams.multiplexing import Multiplexer, Stream, multiplexed
from drayman.node.streams.serving import IDLE_S

_log: Final = logging.getLogger(__name__)
SPDY_PROTOCOL: Final = "portforward.k8s.io"
TUNNEL: Final = "SPDY/3.1+portforward.k8s.io"
"""The bytes of SPDY in the messages of a WebSocket."""
CHANNELS: Final = V4
WEBSOCKET_PROTOCOLS: Final = (TUNNEL, CHANNELS)
MOST_PORTS: Final = 127
"""With channels, of which a byte says which one is meant."""
PAIRING_S: Final = 30.0
"""How long a client may take to open the second stream of a pair."""
MOST_PAIRS: Final = MOST_STREAMS // 2
"""That are served at a time. There are no more of open streams, but a pair that was reset may still be waiting for its port."""
TYPE, PORT, REQUEST = "streamtype", "port", "requestid"
DATA, ERROR = "data", "error"
_MOST_WAITING: Final = 16

Dial = Callable[[int], Awaitable[Connection]]
"""A connection to a port. Raises NodeApiError."""


class Pair(Protocol):
    """A connection as its client sees it."""

    async def read(self) -> bytes: ...
    async def write(self, data: bytes) -> None: ...
    async def end(self) -> None: ...

    async def fail(self, why: str) -> None:
        """Say what went wrong. It is the last that is said."""
        ...


def port_of(text: str) -> int:
    """Raises ValueError."""
    if not (text.isascii() and text.isdecimal() and 0 < int(text) < 65536):
        raise ValueError(f"{text!r} is not a port: it has to be a number from 1 to 65535")
    return int(text)


def ports_of(texts: Sequence[str]) -> list[int]:
    """Ports of a query, which may have several in one value. Raises ValueError."""
    found = [port_of(each) for text in texts for each in text.split(",")]
    if not 0 < len(found) <= MOST_PORTS:
        raise ValueError(f"there are {len(found)} ports: from 1 to {MOST_PORTS} are accepted")
    return found


async def join(pair: Pair, port: int, dial: Dial) -> None:
    """Connect a client to a port until both have said everything, or one of them is gone.

    A connection that is reset is not worth a word: clients would give up forwarding altogether.
    """
    try:
        connection = await dial(port)
    except NodeApiError as error:
        await pair.fail(str(error))
        return
    upwards = asyncio.create_task(_send(pair, connection))
    downwards = asyncio.create_task(_receive(pair, connection))
    try:
        await asyncio.gather(upwards, downwards)
    except NodeApiError as error:
        await pair.fail(str(error))
    except ConnectionError as error:
        _log.debug("a connection to port %d ends: %s", port, error)
    finally:
        await to_the_end(_parted(connection, upwards, downwards))


async def _parted(connection: Connection, *tasks: asyncio.Task[None]) -> None:
    await cancelled(*tasks)
    await connection.close()


async def _send(pair: Pair, connection: Connection) -> None:
    """What nobody is there to receive any more is dropped: there may be an answer to what came before."""
    is_there = True
    while data := await pair.read():
        try:
            if is_there:
                await connection.write(data)
        except ConnectionError:
            is_there = False
    await connection.end()


async def _receive(pair: Pair, connection: Connection) -> None:
    while data := await connection.read():
        await pair.write(data)
    await pair.end()


# --- By SPDY ------------------------------------------------------------------------------------


class _StreamPair:
    def __init__(self, data: Stream, error: Stream) -> None:
        self._data = data
        self._error = error

    async def read(self) -> bytes:
        return await self._data.read()

    async def write(self, data: bytes) -> None:
        await self._data.write(data)

    async def end(self) -> None:
        await self._data.end()
        await self._error.end()

    async def fail(self, why: str) -> None:
        try:
            await self._error.write(why.encode())
        except ConnectionError as error:
            _log.debug("nobody is there to be told %s: %s", why, error)
        await self.end()

    async def close(self) -> None:
        await self._data.close()
        await self._error.close()


class _Pairing:
    """Streams that wait for the other one of their pair, and pairs that are served. One that is reset does not wait any more, so no more
    wait than may be open."""

    def __init__(self, streams: Multiplexer, dial: Dial) -> None:
        self._streams = streams
        self._dial = dial
        self._single: dict[str, tuple[Stream, asyncio.TimerHandle]] = {}
        self._joined: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the connection ends, or nothing has happened for very long."""
        try:
            while True:
                try:
                    async with asyncio.timeout(max(1.0, IDLE_S - self._streams.quiet_s())):
                        stream = await self._streams.accept()
                except TimeoutError:
                    if self._streams.quiet_s() >= IDLE_S:
                        return
                    continue
                if stream is None:
                    return
                self._add(stream)
        finally:
            for _, timer in self._single.values():
                timer.cancel()
            await to_the_end(cancelled(*self._joined))

    def _add(self, stream: Stream) -> None:
        if stream.is_broken:
            return
        if not _is_sensible(stream):
            stream.refuse(PROTOCOL_ERROR)
            return
        request = _request_of(stream)
        if request not in self._single:
            self._wait_for_other(request, stream)
            return
        other = self._taken(request)
        status = self._refusal(stream, other)
        if status is None:
            self._serve(*((stream, other) if _is_for_data(stream) else (other, stream)))
        else:
            other.refuse(status)
            stream.refuse(status)

    def _refusal(self, stream: Stream, other: Stream) -> int | None:
        """Why two streams are no pair that can be served, if they are not."""
        is_pair = _is_for_data(stream) != _is_for_data(other)
        if not is_pair or other.headers[PORT] != stream.headers[PORT]:
            return PROTOCOL_ERROR
        return REFUSED_STREAM if len(self._joined) >= MOST_PAIRS else None

    def _serve(self, data: Stream, error: Stream) -> None:
        port = port_of(data.headers[PORT])
        task = asyncio.create_task(
            self._join(_StreamPair(data, error), port), name=f"connection to port {port}"
        )
        self._joined.add(task)
        task.add_done_callback(self._joined.discard)

    def _wait_for_other(self, request: str, stream: Stream) -> None:
        def give_up() -> None:
            self._taken(request).refuse(PROTOCOL_ERROR)

        def forget() -> None:
            self._taken(request)

        timer = asyncio.get_running_loop().call_later(PAIRING_S, give_up)
        self._single[request] = (stream, timer)
        stream.when_broken = forget

    def _taken(self, request: str) -> Stream:
        """A stream that does not wait any more."""
        stream, timer = self._single.pop(request)
        timer.cancel()
        stream.when_broken = None
        return stream

    async def _join(self, pair: _StreamPair, port: int) -> None:
        try:
            await join(pair, port, self._dial)
        finally:
            await pair.close()


def _is_sensible(stream: Stream) -> bool:
    try:
        port_of(stream.headers.get(PORT, ""))
    except ValueError:
        return False
    return stream.headers.get(TYPE) in (DATA, ERROR)


def _is_for_data(stream: Stream) -> bool:
    return stream.headers[TYPE] == DATA


def _request_of(stream: Stream) -> str:
    """What both streams of a pair have. Very old clients do not say it: they open them one after the other, that for errors first."""
    said = stream.headers.get(REQUEST)
    return said or f"#{stream.number - (2 if _is_for_data(stream) else 0)}"


async def serve_spdy(socket: Socket, dial: Dial) -> None:
    """Forward ports to a client at the other end of a SPDY connection, until it leaves."""
    async with multiplexed(socket, is_client=False) as streams:
        await _Pairing(streams, dial).run()


# --- By channels of a WebSocket -----------------------------------------------------------------


class _ChannelPair:
    """Two channels. They cannot end on their own: the socket is closed when all ports are done."""

    def __init__(self, socket: Socket, index: int) -> None:
        self._socket = socket
        self._data = 2 * index
        self._received: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
        self._is_over = False

    async def begin(self, port: int) -> None:
        """Each channel says first which port it is for."""
        for channel in (self._data, self._data + 1):
            await self._socket.send(message(channel, port.to_bytes(2, "little")))

    async def read(self) -> bytes:
        return await self._received.get()

    async def write(self, data: bytes) -> None:
        await self._socket.send(message(self._data, data))

    async def end(self) -> None:
        """The client cannot say that it has nothing more to send, so nobody waits for that."""
        self._is_over = True
        while not self._received.empty():
            self._received.get_nowait()
        self._received.put_nowait(b"")

    async def fail(self, why: str) -> None:
        await self._socket.send(message(self._data + 1, why.encode()))
        await self.end()

    async def arrived(self, data: bytes) -> None:
        if not self._is_over:
            await self._received.put(data)


async def serve_channels(socket: Socket, ports: Sequence[int], dial: Dial) -> None:
    """Forward ports to a client of a WebSocket: one connection for each port."""
    pairs = [_ChannelPair(socket, index) for index in range(len(ports))]
    for pair, port in zip(pairs, ports, strict=True):
        await pair.begin(port)
    reading = asyncio.create_task(_sort(socket, pairs))
    joined = [
        asyncio.create_task(join(pair, port, dial)) for pair, port in zip(pairs, ports, strict=True)
    ]
    everything = asyncio.gather(*joined)
    try:
        done, _ = await asyncio.wait((reading, everything), return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    except ConnectionError as error:
        _log.debug("a client is gone: %s", error)
    finally:
        await to_the_end(_closed(socket, reading, everything, *joined))


async def _closed(socket: Socket, *tasks: asyncio.Future[Any]) -> None:
    await cancelled(*tasks)
    await socket.close(NORMAL_CLOSURE)


async def _sort(socket: Socket, pairs: Sequence[_ChannelPair]) -> None:
    while (received := await socket.receive()) is not None:
        channel = received[0] if received else 1
        if channel % 2 == 0 and channel // 2 < len(pairs) and len(received) > 1:
            await pairs[channel // 2].arrived(received[1:])
