"""A kubelet, or the node agent, which serves the same paths: logs by HTTPS, commands by WebSocket."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Final
from urllib.parse import quote, urlencode

import aiohttp

from drayman.api.times import timestamp
from drayman.node.streams import channels
from drayman.node.streams.channels import Socket
from drayman.node.streams.model import (
    ContainerName,
    LogOptions,
    NodeApiError,
    StreamOptions,
    Streams,
)

PORT: Final = 10250
"""Of a kubelet that does not say another one."""
_CONNECT_S: Final = 10.0
_PIECE: Final = 32 * 1024
_MOST_ERROR: Final = 4096


class Kubelets:
    """The kubelets of a cluster. They share a pool of connections, which is opened when first needed."""

    def __init__(self, make_context: Callable[[], ssl.SSLContext]) -> None:
        """`make_context`: how the server proves who it is, and whose certificates it believes."""
        self._make_context = make_context
        self._session: aiohttp.ClientSession | None = None

    def at(self, host: str, port: int) -> Kubelet:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._make_context(), limit=0),
                timeout=aiohttp.ClientTimeout(total=None, connect=_CONNECT_S),
            )
        name = f"[{host}]" if ":" in host else host
        return Kubelet(self._session, f"https://{name}:{port}")

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


class Kubelet:
    """One of them."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

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
        async with opened:
            return await follow(ClientSocket(opened), opened.protocol or "", options, streams)

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
        received = await self._opened.receive()
        if received.type is aiohttp.WSMsgType.BINARY:
            return bytes(received.data)
        if received.type is aiohttp.WSMsgType.TEXT:
            return str(received.data).encode()
        return None

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
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)


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
        return f"dial tcp {error.host}:{error.port}: {error.os_error.strerror or error.os_error}"
    return str(error) or type(error).__name__
