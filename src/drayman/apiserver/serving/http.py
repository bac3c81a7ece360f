"""The shell around the server: sockets, HTTP and TLS by aiohttp.

Translates requests and answers and nothing else. The low-level server of aiohttp is used, as routing is ours.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl, unquote

from aiohttp import web
from multidict import CIMultiDict

from drayman.apiserver.protocol.errors import StatusError, too_large, too_slow
from drayman.apiserver.protocol.exchange import (
    Answer,
    LongResponse,
    PeerCertificate,
    Query,
    Request,
    StreamingResponse,
    UpgradedResponse,
)
from drayman.apiserver.protocol.limits import BODY_LIMIT, SMALL_BODY
from drayman.apiserver.serving.accepting import Acceptor, most_connections
from drayman.apiserver.serving.connections import (
    KEEP_ALIVE_S,
    Connection,
    Connections,
    WatchedServer,
)
from drayman.apiserver.serving.server import ApiServer
from drayman.apiserver.serving.upgrading import upgrade
from drayman.node.streams.negotiating import STREAM_PROTOCOL
from drayman.node.streams.wire_log import wire_log
from drayman.workloads.certificates.users import certified_user

log = logging.getLogger(__name__)

HEADER_LIMIT: Final = 16 * 1024
IMPERSONATION: Final = "impersonate-"
_STREAM_PROTOCOL: Final = STREAM_PROTOCOL.lower()
WARNINGS_LIMIT: Final = 4 * 1024
WARNING_LIMIT: Final = 256
MOST_WARNINGS: Final = 32
"""Some clients give up on an answer with more than a hundred headers."""
SHUTDOWN_S: Final = 2.0
LOWEST_RATE: Final = 32 * 1024
"""Bytes per second of a body that a client must send once its first moments are over."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Where to listen. Port 0 picks one."""

    host: str = "127.0.0.1"
    port: int = 0
    tls: ssl.SSLContext | None = None
    most_connections: int = 0
    """How many may be open at a time; 0: what the system allows, within reason."""


@dataclass(slots=True)
class RunningServer:
    """A server that listens. `stop` ends it; requests under way get a moment to finish."""

    server: ApiServer
    host: str
    port: int
    is_tls: bool
    _acceptor: Acceptor
    _runner: web.ServerRunner
    connections: Connections

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}"

    async def stop(self) -> None:
        await self._acceptor.close()
        self.connections.end()
        await self._runner.cleanup()
        await self.connections.closed()


async def start(server: ApiServer, listener: Listener) -> RunningServer:
    """Listen. Raises OSError if the address is not available."""
    connections = Connections(server.limits, listener.most_connections or most_connections())
    watched = WatchedServer(
        connections,
        _Shell(server, connections).handle,
        request_factory=_make_request,
        access_log=None,
        logger=wire_log(log),
        keepalive_timeout=KEEP_ALIVE_S,
        max_line_size=HEADER_LIMIT,
        max_field_size=HEADER_LIMIT,
        auto_decompress=False,  # Kubernetes takes bodies as they are, and a small one could become very large
    )
    runner = web.ServerRunner(watched, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    acceptor = Acceptor(watched, connections, listener.tls)
    try:
        host, port = await acceptor.listen(listener.host, listener.port)
    except BaseException:
        await acceptor.close()
        await runner.cleanup()
        raise
    server.discovery.address = f"{host}:{port}"
    return RunningServer(
        server, host, port, listener.tls is not None, acceptor, runner, connections
    )


def _make_request(message, payload, protocol, writer, task):  # type: ignore[no-untyped-def]
    return web.BaseRequest(
        message,
        payload,
        protocol,
        writer,
        task,
        asyncio.get_running_loop(),
        client_max_size=BODY_LIMIT + 1,
    )


class _Shell:
    def __init__(self, server: ApiServer, connections: Connections) -> None:
        self._server = server
        self._connections = connections
        ids = server.core.ids
        self._always = CIMultiDict({"Cache-Control": "no-cache, private"})
        # Clients log these to show which of the real server's queues a request went through. Here there is one.
        self._known = CIMultiDict(
            {
                **self._always,
                "X-Kubernetes-Pf-Flowschema-Uid": ids.uid(),
                "X-Kubernetes-Pf-Prioritylevel-Uid": ids.uid(),
            }
        )

    async def handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        connection = incoming.protocol
        assert isinstance(connection, Connection)
        try:
            request = _request(incoming)
            answer = await self._answer(connection, incoming, request)
            headers = self._headers(answer)
            if isinstance(answer, StreamingResponse | UpgradedResponse):
                try:
                    if isinstance(answer, StreamingResponse):
                        return await self._stream(incoming, answer, headers)
                    return await upgrade(incoming, answer, headers, self._connections)
                finally:
                    answer.end()
            if isinstance(answer, LongResponse):
                return await self._send_large(
                    incoming, answer.status, answer.pieces, answer.length, headers
                )
            body = answer.body
            if len(body) <= SMALL_BODY or incoming.method == "HEAD":
                return web.Response(status=answer.status, body=body, headers=headers)
            with self._server.limits.body_bytes.taking(request.sender, len(body)):
                return await self._send_large(incoming, answer.status, (body,), len(body), headers)
        finally:
            self._connections.answered(connection)

    async def _answer(
        self, connection: Connection, incoming: web.BaseRequest, request: Request
    ) -> Answer:
        if not incoming.body_exists:
            self._connections.answering(connection)
            return await self._server.handle(request)
        started = time.perf_counter()
        length = min(incoming.content_length or BODY_LIMIT, BODY_LIMIT)
        if length > SMALL_BODY:
            refusal = await self._server.refusal(request)
            if refusal is not None:
                return refusal
        try:
            with self._server.limits.body(request.sender, length):
                if not incoming.content.is_eof():
                    self._connections.reading(connection)
                request.body = await _body(incoming, self._server.limits.body_s)
                self._connections.answering(connection)
                return await self._server.handle(request)
        except StatusError as error:
            return await self._server.refuse(request, error, started)

    def _headers(self, answer: Answer) -> CIMultiDict[str]:
        headers = (self._always if answer.status == 401 else self._known).copy()
        headers["Audit-Id"] = self._server.core.ids.uid()
        if answer.content_type:
            headers["Content-Type"] = answer.content_type
        if answer.headers:
            headers.update(answer.headers)
        for warning in _short(answer.warnings) if answer.warnings else ():
            headers.add("Warning", f'299 - "{_quoted(warning)}"')
        return headers

    async def _stream(
        self, incoming: web.BaseRequest, answer: StreamingResponse, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=headers)
        response.enable_chunked_encoding()
        try:
            with self._connections.sending(incoming) as sending:
                await response.prepare(incoming)
                async with aclosing(answer.chunks) as chunks:  # type: ignore[type-var]
                    async for chunk in chunks:
                        await sending.write(response, chunk)
                await response.write_eof()
        except ConnectionError:
            log.debug("the client of %s went away", incoming.path)
        return response

    async def _send_large(
        self,
        incoming: web.BaseRequest,
        status: int,
        pieces: Iterable[bytes],
        length: int,
        headers: Mapping[str, str],
    ) -> web.StreamResponse:
        """An answer in slices: this distinguishes a client that reads none of them from one that reads slowly."""
        response = web.StreamResponse(status=status, headers=headers)
        response.content_length = length
        try:
            with self._connections.sending(incoming) as sending:
                await response.prepare(incoming)
                if incoming.method != "HEAD":
                    for piece in pieces:
                        await sending.write(response, piece)
                await response.write_eof()
        except ConnectionError:
            log.debug("the client of %s went away", incoming.path)
        return response


async def _body(incoming: web.BaseRequest, seconds: float) -> bytes:
    """The body of a request. Raises StatusError 408 if it comes too slowly, 413 if it is too large."""
    try:
        if incoming.content.is_eof():
            return await incoming.read()
        async with asyncio.timeout(seconds) as limit:
            return await _growing_body(incoming, limit)
    except TimeoutError:
        raise too_slow() from None
    except web.HTTPRequestEntityTooLarge:
        raise too_large(BODY_LIMIT) from None


async def _growing_body(incoming: web.BaseRequest, limit: asyncio.Timeout) -> bytes:
    """A body that has not arrived as a whole. The time for it is extended by what arrives."""
    floor = limit.when()
    assert floor is not None
    body = bytearray()
    while chunk := await incoming.content.readany():
        body += chunk
        if len(body) > BODY_LIMIT:
            raise too_large(BODY_LIMIT)
        limit.reschedule(floor + len(body) / LOWEST_RATE)
    return bytes(body)


def _request(incoming: web.BaseRequest) -> Request:
    """A request with everything known before its body is read."""
    raw_path, _, query = incoming.raw_path.partition("?")
    return Request(
        method=incoming.method,
        path=unquote(raw_path),
        query=Query(tuple(parse_qsl(query, keep_blank_values=True))) if query else Query(),
        headers=_headers_of(incoming.headers),
        raw_path=raw_path,
        peer=incoming.remote or "",
        certificate=_certificate_of(incoming),
    )


def _certificate_of(incoming: web.BaseRequest) -> PeerCertificate | None:
    """What TLS has verified when the connection was made."""
    found = incoming.get_extra_info("peercert")
    if not found:
        return None
    return PeerCertificate(*certified_user(found), ssl.cert_time_to_seconds(found["notAfter"]))


def _headers_of(incoming: Mapping[str, str]) -> dict[str, str]:
    """Headers by lower-case name. The first of several counts, but impersonation headers are joined, one per line, and so are protocols."""
    headers: dict[str, str] = {}
    for name, value in incoming.items():
        key = name.lower()
        text = value if value.isascii() else _without_stray_bytes(value)
        if key not in headers:
            headers[key] = text
        elif key.startswith(IMPERSONATION):
            headers[key] += f"\n{text}"
        elif key == _STREAM_PROTOCOL:
            headers[key] += f",{text}"
    return headers


def _without_stray_bytes(text: str) -> str:
    """A header with bytes that are not UTF-8 replaced: as lone surrogates they could be neither logged nor sent back."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _short(warnings: Sequence[str]) -> Iterator[str]:
    """Warnings within the bounds for headers: if they are too long together, the start of each. The last says how many are left out."""
    if len(warnings) <= MOST_WARNINGS and sum(map(len, warnings)) <= WARNINGS_LIMIT:
        yield from warnings
        return
    length = 0
    for number, warning in enumerate(warnings):
        if length >= WARNINGS_LIMIT or number == MOST_WARNINGS - 1:
            yield f"{len(warnings) - number} more warnings are left out"
            return
        text = warning[:WARNING_LIMIT]
        length += len(text)
        yield text


def _quoted(text: str) -> str:
    """A text for use in quotation marks in a header, where line ends are not allowed."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return printable.replace("\\", "\\\\").replace('"', '\\"')
