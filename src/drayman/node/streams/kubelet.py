"""A kubelet, or the node agent, which serves the same paths: logs by HTTPS, commands by WebSocket, ports by SPDY."""

from __future__ import annotations

import asyncio
import errno
import os
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any, Final
from urllib.parse import quote, urlencode

import aiohttp

from drayman.api.times import timestamp
from drayman.node.streams import channels
from drayman.node.streams.channels import Socket
from drayman.node.streams.dialing import ForwardedConnection, upgraded
from drayman.node.streams.finishing import cancelled, to_the_end
from drayman.node.streams.forwarding import SPDY_PROTOCOL
from drayman.node.streams.model import (
    Connection,
    ContainerName,
    LogOptions,
    NodeApiError,
    PodName,
    StreamOptions,
    Streams,
)
from drayman.node.streams.use import NodeUse, from_text
from drayman.node.streams.web_sockets import next_message

PORT: Final = 10250
"""Of a kubelet that does not say another one."""
_CONNECT_S: Final = 10.0
_USE_S: Final = 5.0
_CLOSE_S: Final = 2.0
_PIECE: Final = 32 * 1024
_MOST_ERROR: Final = 4096
_MOST_USE: Final = 4 * 1024 * 1024
"""Of a page that says what has been used. A kubelet says it in 2 KiB for each container."""


class _WebSocket(aiohttp.ClientWebSocketResponse):
    """One that can be given up although the other end does not read."""

    def __init__(
        self,
        reader: Any,
        writer: Any,
        protocol: Any,
        response: aiohttp.ClientResponse,
        *rest: Any,
        **more: Any,
    ) -> None:
        super().__init__(reader, writer, protocol, response, *rest, **more)
        self._below = response.connection

    def abort(self) -> None:
        if self._below is not None and self._below.transport is not None:
            self._below.transport.abort()


class Kubelets:
    """The kubelets of a cluster. They share a pool of connections, which is opened when first needed."""

    def __init__(self, context: Callable[[], ssl.SSLContext]) -> None:
        """`context`: how the server proves who it is, and whose certificates it believes. It is always the same one, and asked for
        whenever a kubelet is to be reached, so that it can be kept up to date."""
        self._context = context
        self._session: aiohttp.ClientSession | None = None

    def at(self, host: str, port: int) -> Kubelet:
        context = self._context()
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=context, limit=0),
                ws_response_class=_WebSocket,
                timeout=aiohttp.ClientTimeout(total=None, connect=_CONNECT_S),
            )
        return Kubelet(self._session, context, host, port)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


class Kubelet:
    """One of them."""

    def __init__(
        self, session: aiohttp.ClientSession, context: ssl.SSLContext, host: str, port: int
    ) -> None:
        self._session = session
        self._context = context
        self._host = host
        self._port = port
        name = f"[{host}]" if ":" in host else host
        self._url = f"https://{name}:{port}"

    async def logs(self, name: ContainerName, options: LogOptions) -> AsyncIterator[bytes]:
        url = self._path("containerLogs", name, _log_query(options))
        insecure = {"ssl": False} if options.trusts_any_certificate else {}
        try:
            response = await self._session.get(url, **insecure)  # type: ignore[arg-type]
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NodeApiError(500, f'Get "{url}": {_reason(error)}') from error
        if response.status != 200:
            async with response:
                text = (await response.content.read(_MOST_ERROR)).decode("utf-8", "replace")
            raise NodeApiError(response.status, text.strip() or f'Get "{url}": {response.status}')
        return _pieces(response)

    async def use(self) -> NodeUse:
        """What the node and its containers have used by now. Raises NodeApiError."""
        url = f"{self._url}/metrics/resource"
        timeout = aiohttp.ClientTimeout(total=_USE_S)
        data = bytearray()
        try:
            # What is compressed could be much more than it is let be.
            async with self._session.get(
                url, timeout=timeout, headers={"accept-encoding": "identity"}, auto_decompress=False
            ) as response:
                if response.status != 200:
                    raise NodeApiError(response.status, f'Get "{url}": {response.status}')
                async for piece in response.content.iter_chunked(_PIECE):
                    data += piece
                    if len(data) > _MOST_USE:
                        raise NodeApiError(502, f'Get "{url}": more than {_MOST_USE} bytes')
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NodeApiError(500, f'Get "{url}": {_reason(error)}') from error
        return await asyncio.to_thread(from_text, data.decode("utf-8", "replace"))

    async def execute(
        self,
        name: ContainerName,
        command: tuple[str, ...],
        options: StreamOptions,
        streams: Streams,
    ) -> int:
        query = [*(("command", word) for word in command), *_stream_query(options)]
        return await self._converse(self._path("exec", name, query), options, streams)

    async def attach(self, name: ContainerName, options: StreamOptions, streams: Streams) -> int:
        return await self._converse(
            self._path("attach", name, _stream_query(options)), options, streams
        )

    async def forward(self, pod: PodName, port: int) -> Connection:
        """Every connection is one of its own to the node, so that a slow one does not hold up others."""
        place = "/".join(quote(each, safe="") for each in (pod.namespace, pod.name))
        try:
            async with asyncio.timeout(_CONNECT_S):
                raw = await upgraded(
                    self._host, self._port, self._context, f"/portForward/{place}", SPDY_PROTOCOL
                )
        except (OSError, TimeoutError) as error:
            why = f"dial tcp {self._host}:{self._port}: {_reason(error)}"
            raise NodeApiError(500, f"error dialing backend: {why}") from error
        return await ForwardedConnection.open(raw, port)

    async def _converse(self, url: str, options: StreamOptions, streams: Streams) -> int:
        try:
            opened = await self._session.ws_connect(
                url, protocols=channels.PROTOCOLS, max_msg_size=channels.MOST_BYTES
            )
        except aiohttp.WSServerHandshakeError as error:
            raise NodeApiError(
                500, f"unable to upgrade connection: {error.status} {error.message}"
            ) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise NodeApiError(500, f"error dialing backend: {_reason(error)}") from error
        try:
            return await follow(ClientSocket(opened), opened.protocol or "", options, streams)
        finally:
            await to_the_end(_closed(opened))

    def _path(self, verb: str, name: ContainerName, query: list[tuple[str, str]]) -> str:
        place = "/".join(
            quote(each, safe="") for each in (name.namespace, name.pod, name.container)
        )
        return f"{self._url}/{verb}/{place}{'?' if query else ''}{urlencode(query)}"


class ClientSocket:
    """The near end of a WebSocket that was opened from here."""

    def __init__(self, opened: aiohttp.ClientWebSocketResponse) -> None:
        self._opened = opened

    async def receive(self) -> bytes | None:
        return await next_message(self._opened)

    async def send(self, message: bytes) -> None:
        await self._opened.send_bytes(message)

    async def close(self, code: int) -> None:
        await self._opened.close(code=code)


async def follow(socket: Socket, protocol: str, options: StreamOptions, streams: Streams) -> int:
    """Pass streams on to a node that runs a command; its exit code. Raises NodeApiError."""
    if protocol not in channels.PROTOCOLS:
        raise NodeApiError(502, f"the node speaks none of {', '.join(channels.PROTOCOLS)}")
    passing = [asyncio.create_task(_pass_sizes(socket, streams))]
    if options.stdin:
        passing.append(asyncio.create_task(_pass_input(socket, protocol, streams)))
    try:
        return await _pass_output(socket, streams)
    except ConnectionError as error:
        raise NodeApiError(502, f"the node went away: {error}") from error
    finally:
        await cancelled(*passing)


async def _closed(opened: aiohttp.ClientWebSocketResponse) -> None:
    """A node that does not read, because a command does not read its input, cannot agree to the end either."""
    try:
        async with asyncio.timeout(_CLOSE_S):
            await opened.close()
    except TimeoutError:
        assert isinstance(opened, _WebSocket)
        opened.abort()


async def _pass_output(socket: Socket, streams: Streams) -> int:
    while (received := await socket.receive()) is not None:
        channel, data = (received[0], received[1:]) if received else (-1, b"")
        if channel == channels.STDOUT:
            await streams.write(data)
        elif channel == channels.STDERR:
            await streams.write_error(data)
        elif channel == channels.ERROR and data:
            return channels.exit_code(data)
    raise NodeApiError(502, "the node closed the connection without saying how the command ended")


async def _pass_input(socket: Socket, protocol: str, streams: Streams) -> None:
    while data := await streams.read():
        await socket.send(channels.message(channels.STDIN, data))
    if protocol == channels.V5:
        await socket.send(bytes((channels.CLOSE, channels.STDIN)))


async def _pass_sizes(socket: Socket, streams: Streams) -> None:
    while True:
        size = await streams.resized()
        await socket.send(channels.message(channels.RESIZE, channels.size_data(size)))


async def _pieces(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async with response:
        try:
            async for piece in response.content.iter_chunked(_PIECE):
                yield piece
        except aiohttp.ClientError as error:
            raise ConnectionResetError(f"the node went away: {error}") from error


def _log_query(options: LogOptions) -> list[tuple[str, str]]:
    flags = {
        "follow": options.follow,
        "previous": options.previous,
        "timestamps": options.timestamps,
    }
    numbers = {
        "sinceSeconds": options.since_seconds,
        "tailLines": options.tail,
        "limitBytes": options.limit_bytes,
    }
    query = [(key, "true") for key, wanted in flags.items() if wanted]
    query += [(key, str(number)) for key, number in numbers.items() if number is not None]
    if options.since is not None:
        query.append(("sinceTime", timestamp(options.since)))
    return sorted(query)


def _stream_query(options: StreamOptions) -> list[tuple[str, str]]:
    """Under the names that kubelets have for them."""
    wanted = {
        "input": options.stdin,
        "output": options.stdout,
        "error": options.stderr and not options.tty,
        "tty": options.tty,
    }
    return [(key, "1") for key, is_wanted in wanted.items() if is_wanted]


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"dial tcp {error.host}:{error.port}: {_words(error.os_error)}"
    return _words(error)


def _words(error: Exception) -> str:
    """Of an error of the system its own, for asyncio puts an address in their place."""
    number = error.errno if isinstance(error, OSError) else None
    if number is None or number not in errno.errorcode or isinstance(error, ssl.SSLError):
        return str(error) or type(error).__name__
    return os.strerror(number).lower()
