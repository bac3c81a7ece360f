"""HTTP for a benchmark: requests on kept-alive connections, with as little client-side work as possible.

The general client decodes and checks every answer, which on a machine with two cores would be half of what is measured.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

import msgspec

CONNECTIONS: Final = 32
_LIMIT: Final = 1 << 26
_NAMESPACED: Final = "/namespaces/"
_NOT_FOUND: Final = 404


class RequestError(Exception):
    """The server refused, or its answer was not HTTP. `status` is 0 where there was no answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server is, and our identity there."""

    url: str
    context: ssl.SSLContext | None
    headers: tuple[tuple[str, str], ...]


class Connection:
    """One connection, one request at a time."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._head = head

    @classmethod
    async def open(cls, address: Address) -> Connection:
        """Raises RequestError."""
        parts = urlsplit(address.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            reader, writer = await asyncio.open_connection(
                parts.hostname, port, ssl=address.context, limit=_LIMIT
            )
        except OSError as error:
            raise RequestError(f"no connection to {address.url}: {error}") from error
        headers = "".join(f"{name}: {value}\r\n" for name, value in address.headers)
        return cls(reader, writer, f"Host: {parts.netloc}\r\nAccept: application/json\r\n{headers}")

    async def send(self, method: str, path: str, body: bytes = b"", kind: str = "json") -> bytes:
        """The body of the answer. Raises RequestError."""
        self._write(method, path, body, kind)
        status, headers = await self._read_head()
        answer = await self._read_body(headers)
        if status not in (200, 201, 202):
            said = answer[:500].decode(errors="replace")
            raise RequestError(f"{method} {path}: {status} {said}", status)
        return answer

    async def close(self) -> None:
        self._writer.close()
        with suppress(OSError):  # the other side may have closed it first
            await self._writer.wait_closed()

    def _write(self, method: str, path: str, body: bytes, kind: str) -> None:
        head = (
            f"{method} {path} HTTP/1.1\r\n{self._head}"
            f"Content-Type: application/{kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)

    async def _read_head(self) -> tuple[int, bytes]:
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            raise RequestError("the server closed the connection") from error
        return int(head[9:12]), head.lower()

    async def _read_body(self, headers: bytes) -> bytes:
        if b"transfer-encoding: chunked" in headers:
            parts = []
            while chunk := await self._read_chunk():
                parts.append(chunk)
            return b"".join(parts)
        _, found, rest = headers.partition(b"content-length: ")
        return await self._reader.readexactly(int(rest.split(b"\r\n")[0])) if found else b""

    async def _read_chunk(self) -> bytes:
        size = int((await self._reader.readuntil(b"\r\n")).split(b";")[0].strip(), 16)
        return (await self._reader.readexactly(size + 2))[:-2]


class ConnectionPool:
    """Several connections that share the work."""

    def __init__(self, address: Address, size: int = CONNECTIONS) -> None:
        self.address = address
        self.size = size
        self._free: asyncio.Queue[Connection] = asyncio.Queue()
        self._all: list[Connection] = []
        self.created: set[str] = set()
        """The paths of the objects that `create_all` has created or is creating, but of those in namespaces."""

    async def __aenter__(self) -> Self:
        try:
            for _ in range(self.size):
                connection = await Connection.open(self.address)
                self._all.append(connection)
                self._free.put_nowait(connection)
        except BaseException:  # of a server that takes no more of them, or an interrupt
            await self._close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        for connection in self._all:
            await connection.close()

    async def send(self, method: str, path: str, body: object = None, kind: str = "json") -> Any:
        """Send one request on any free connection, and decode its answer."""
        connection = await self._free.get()
        try:
            data = msgspec.json.encode(body) if body is not None else b""
            return msgspec.json.decode(await connection.send(method, path, data, kind))
        finally:
            self._free.put_nowait(connection)

    async def text(self, path: str) -> str:
        """What is there that is not JSON."""
        connection = await self._free.get()
        try:
            return (await connection.send("GET", path)).decode()
        finally:
            self._free.put_nowait(connection)

    async def create_all(
        self,
        path: str,
        objects: Iterable[dict[str, Any]],
        done: Callable[[], None],
        after: Callable[[Connection, Any], Awaitable[None]] | None = None,
    ) -> None:
        """Create everything, one object after another on each connection."""
        waiting = iter(objects)

        async def share(connection: Connection) -> None:
            for item in waiting:
                own = f"{path}/{item['metadata']['name']}"
                if _NAMESPACED not in path:
                    self.created.add(own)  # before the answer, which an interrupt may prevent
                try:
                    await connection.send("POST", path, msgspec.json.encode(item))
                except RequestError:
                    self.created.discard(own)
                    raise
                if after is not None:
                    await after(connection, item)
                done()

        async with asyncio.TaskGroup() as group:
            for connection in self._all:
                group.create_task(share(connection))

    async def delete_all(self, paths: Iterable[str], done: Callable[[], None]) -> None:
        """Delete all objects at these paths that still exist."""
        waiting = iter(paths)

        async def share(connection: Connection) -> None:
            for path in waiting:
                try:
                    await connection.send("DELETE", path)
                except RequestError as error:
                    if error.status != _NOT_FOUND:
                        raise
                done()

        async with asyncio.TaskGroup() as group:
            for connection in self._all:
                group.create_task(share(connection))
