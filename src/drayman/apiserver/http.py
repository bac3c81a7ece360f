"""The shell around the server: sockets, HTTP and TLS by aiohttp.

Translates requests and answers and nothing else. The low-level server of aiohttp is used, as routing is ours.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
import ssl
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from multidict import CIMultiDict

from drayman.apiserver.answers import answer_error
from drayman.apiserver.errors import too_large
from drayman.apiserver.exchange import Answer, Query, Request, Response, StreamingResponse
from drayman.apiserver.negotiation import View
from drayman.apiserver.server import ApiServer

log = logging.getLogger(__name__)

BODY_LIMIT: Final = 3 * 1024 * 1024
GZIP_FROM: Final = 128 * 1024
GZIP_LEVEL: Final = 1
"""Clients on the same machine want the answer soon more than they want it small."""
HEADER_LIMIT: Final = 16 * 1024
SHUTDOWN_S: Final = 2.0
KEEP_ALIVE_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Listener:
    """Where to listen. Port 0 picks one."""

    host: str = "127.0.0.1"
    port: int = 0
    tls: ssl.SSLContext | None = None


@dataclass(slots=True)
class RunningServer:
    """A server that listens. `stop` ends it; requests under way get a moment to finish."""

    server: ApiServer
    host: str
    port: int
    is_tls: bool
    _runner: web.ServerRunner
    _open: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_tls else 'http'}://{host}:{self.port}"

    async def stop(self) -> None:
        for task in tuple(self._open):
            task.cancel()
        await self._runner.cleanup()


async def start(server: ApiServer, listener: Listener) -> RunningServer:
    """Listen. Raises OSError where the address cannot be had."""
    shell = _Shell(server)
    runner = web.ServerRunner(
        web.Server(
            shell.handle,
            request_factory=_make_request,
            access_log=None,
            logger=_wire_log(),
            keepalive_timeout=KEEP_ALIVE_S,
            max_line_size=HEADER_LIMIT,
            max_field_size=HEADER_LIMIT,
        ),
        shutdown_timeout=SHUTDOWN_S,
    )
    await runner.setup()
    site = web.TCPSite(runner, listener.host, listener.port, ssl_context=listener.tls, backlog=1024)
    try:
        await site.start()
    except BaseException:
        await runner.cleanup()
        raise
    host, port = runner.addresses[0][:2]
    server.discovery.address = f"{host}:{port}"
    return RunningServer(server, host, port, listener.tls is not None, runner, shell.open)


def _wire_log() -> logging.Logger:
    """Where aiohttp tells about connections."""
    wire = log.getChild("wire")
    wire.addFilter(_is_about_the_server)
    return wire


def _is_about_the_server(record: logging.LogRecord) -> bool:
    """Bytes that are no HTTP are answered with 400. A traceback of the parser would tell nobody anything."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError):
        log.debug("a client sent no HTTP: %s", error.message)
        return False
    return True


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
    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self.open: set[asyncio.Task[None]] = set()
        ids = server.core.ids
        # Clients log these to tell which of the real server's queues a request went through. Here there is one.
        self._flow = {
            "X-Kubernetes-Pf-Flowschema-Uid": ids.uid(),
            "X-Kubernetes-Pf-Prioritylevel-Uid": ids.uid(),
        }

    async def handle(self, incoming: web.BaseRequest) -> web.StreamResponse:
        try:
            body = await incoming.read() if incoming.body_exists else b""
        except web.HTTPRequestEntityTooLarge:
            answer: Answer = answer_error(too_large(BODY_LIMIT), View())
        else:
            answer = await self._server.handle(_request(incoming, body))
        headers = self._headers(answer)
        if isinstance(answer, Response):
            return await _whole(incoming, answer, headers)
        return await self._stream(incoming, answer, headers)

    def _headers(self, answer: Answer) -> CIMultiDict[str]:
        headers = CIMultiDict(
            {
                "Audit-Id": self._server.core.ids.uid(),
                "Cache-Control": "no-cache, private",
                "Content-Type": answer.content_type,
            }
        )
        if answer.status != 401:
            headers.update(self._flow)
        headers.update(answer.headers)
        for warning in answer.warnings:
            headers.add("Warning", f'299 - "{_quoted(warning)}"')
        return headers

    async def _stream(
        self, incoming: web.BaseRequest, answer: StreamingResponse, headers: Mapping[str, str]
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=headers)
        response.enable_chunked_encoding()
        task = asyncio.current_task()
        assert task is not None
        self.open.add(task)
        try:
            await response.prepare(incoming)
            async with aclosing(answer.chunks) as chunks:  # type: ignore[type-var]
                async for chunk in chunks:
                    await response.write(chunk)
            await response.write_eof()
        except ConnectionError:
            log.debug("client of %s went away", incoming.path)
        finally:
            self.open.discard(task)
        return response


async def _whole(
    incoming: web.BaseRequest, answer: Response, headers: CIMultiDict[str]
) -> web.Response:
    body = answer.body
    if (
        len(body) > GZIP_FROM
        and incoming.method == "GET"
        and "gzip" in incoming.headers.get("Accept-Encoding", "")
        and "Etag" not in headers
    ):
        body = await asyncio.get_running_loop().run_in_executor(None, _compressed, body)
        headers["Content-Encoding"] = "gzip"
        headers["Vary"] = "Accept-Encoding"
    return web.Response(status=answer.status, body=body, headers=headers)


def _compressed(body: bytes) -> bytes:
    return gzip.compress(body, GZIP_LEVEL, mtime=0)


def _request(incoming: web.BaseRequest, body: bytes) -> Request:
    raw_path, _, query = incoming.raw_path.partition("?")
    return Request(
        method=incoming.method,
        path=unquote(raw_path),
        query=Query(tuple(parse_qsl(query, keep_blank_values=True))) if query else Query(),
        headers={name.lower(): value for name, value in incoming.headers.items()},
        body=body,
        raw_path=raw_path,
        peer=incoming.remote or "",
    )


def _quoted(text: str) -> str:
    """A text for the inside of quotation marks in a header, where line ends cannot be."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return printable.replace("\\", "\\\\").replace('"', '\\"')
