"""The node's own server, with the paths of a kubelet: only the API server of its cluster is let in, by its certificate."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import WSMsgType, web

from drayman.api.times import moment_of
from drayman.node.agent.answering import AgentApi
from drayman.node.streams import channels
from drayman.node.streams.model import ContainerName, LogOptions, NodeApiError, StreamOptions
from drayman.node.streams.serving import serve


@dataclass(frozen=True, slots=True)
class ServingCertificates:
    """How a node shows who it is, and whom it believes."""

    certificate: Path
    key: Path
    authority: Path

    def context(self) -> ssl.SSLContext:
        """Raises OSError."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.authority)
        context.load_cert_chain(self.certificate, self.key)
        context.verify_mode = ssl.CERT_REQUIRED
        return context


class _Socket:
    """The near end of a client's WebSocket."""

    def __init__(self, response: web.WebSocketResponse) -> None:
        self._response = response

    async def receive(self) -> bytes | None:
        received = await self._response.receive()
        if received.type is WSMsgType.BINARY:
            return bytes(received.data)
        return str(received.data).encode() if received.type is WSMsgType.TEXT else None

    async def send(self, message: bytes) -> None:
        await self._response.send_bytes(message)

    async def close(self, code: int) -> None:
        await self._response.close(code=code)


class _Handlers:
    def __init__(self, api: AgentApi) -> None:
        self._api = api

    async def health(self, _request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok")

    async def logs(self, request: web.Request) -> web.StreamResponse:
        try:
            pieces = await self._api.logs(self._name(request), _log_options(request))
        except NodeApiError as error:
            return web.Response(status=error.code, text=str(error))
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        async for piece in pieces:
            await response.write(piece)
        await response.write_eof()
        return response

    async def execute(self, request: web.Request) -> web.StreamResponse:
        try:
            name = self._name(request)
        except NodeApiError as error:
            return web.Response(status=error.code, text=str(error))
        command = tuple(request.query.getall("command", []))
        options = _stream_options(request)
        response = web.WebSocketResponse(
            protocols=channels.PROTOCOLS, max_msg_size=channels.MOST_BYTES
        )
        await response.prepare(request)
        await serve(
            _Socket(response),
            options,
            lambda streams: self._api.execute(name, command, options, streams),
        )
        return response

    def _name(self, request: web.Request) -> ContainerName:
        parts = request.match_info
        return self._api.find(parts["namespace"], parts["pod"], parts["container"])


def _log_options(request: web.Request) -> LogOptions:
    """Raises NodeApiError."""
    query = request.query

    def number(name: str) -> int | None:
        return int(query[name]) if name in query else None

    try:
        return LogOptions(
            follow=query.get("follow") == "true",
            previous=query.get("previous") == "true",
            timestamps=query.get("timestamps") == "true",
            since=moment_of(query["sinceTime"]) if "sinceTime" in query else None,
            since_seconds=number("sinceSeconds"),
            tail=number("tailLines"),
            limit_bytes=number("limitBytes"),
        )
    except ValueError as error:
        raise NodeApiError(400, f"the query makes no sense: {error}") from error


def _stream_options(request: web.Request) -> StreamOptions:
    def is_wanted(name: str) -> bool:
        return request.query.get(name) in ("1", "true")

    return StreamOptions(
        is_wanted("input"), is_wanted("output"), is_wanted("error"), is_wanted("tty")
    )


@asynccontextmanager
async def serving(
    api: AgentApi, address: str, port: int, certificates: ServingCertificates
) -> AsyncIterator[int]:
    """Serves until the context is left; gives the port. Raises OSError."""
    handlers = _Handlers(api)
    place = "/{namespace}/{pod}/{container}"
    app = web.Application()
    app.router.add_get("/healthz", handlers.health)
    app.router.add_get(f"/containerLogs{place}", handlers.logs)
    app.router.add_get(f"/exec{place}", handlers.execute)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, address, port, ssl_context=certificates.context())
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
