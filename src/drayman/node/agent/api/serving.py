"""The node's own server, with the paths of a kubelet. Who is let in is known by a certificate of the cluster's authority."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Final, TypeVar

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from aiohttp.web_protocol import RequestHandler

from drayman.api.times import moment_of
from drayman.cluster.errors import ClusterError
from drayman.node.agent.api.accepting import LIMITS, Acceptor, Limits, accepting
from drayman.node.agent.api.admitting import Gate
from drayman.node.agent.api.answering import AgentApi
from drayman.node.streams import channels, commands, forwarding
from drayman.node.streams.departing import while_there
from drayman.node.streams.model import ContainerName, LogOptions, NodeApiError, StreamOptions
from drayman.node.streams.negotiating import STREAM_PROTOCOL, is_spdy, stream_protocol
from drayman.node.streams.serving import serve
from drayman.node.streams.takeover import taken_over
from drayman.node.streams.use import CONTENT_TYPE, to_text
from drayman.node.streams.web_sockets import next_message
from drayman.node.streams.wire_log import wire_log
from drayman.workloads.certificates.users import certified_user

T = TypeVar("T")
_log: Final = logging.getLogger(__name__)
_SHUTDOWN_S: Final = 1.0
"""How long sessions may take to end by themselves when the node stops; then they are ended."""
_Run = Callable[..., Awaitable[int]]
"""What runs or joins a command, given its container, options and streams."""

_READS: Final = ("/healthz", "/metrics/", "/containerLogs/")
"""Everything else changes something."""


class _Socket:
    """The near end of a client's WebSocket."""

    def __init__(self, response: web.WebSocketResponse) -> None:
        self._response = response

    async def receive(self) -> bytes | None:
        return await next_message(self._response)

    async def send(self, message: bytes) -> None:
        await self._response.send_bytes(message)

    async def close(self, code: int) -> None:
        await self._response.close(code=code)


class _Handlers:
    def __init__(self, api: AgentApi) -> None:
        self._api = api

    async def health(self, _request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok")

    async def use(self, _request: web.Request) -> web.StreamResponse:
        text = to_text(await self._api.use())
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def logs(self, request: web.Request) -> web.StreamResponse:
        try:
            pieces = await self._api.logs(self._name(request), _log_options(request))
        except NodeApiError as error:
            return web.Response(status=error.code, text=str(error))
        async with aclosing(pieces):
            response = web.StreamResponse(headers={"Content-Type": "text/plain"})
            await response.prepare(request)
            async for piece in pieces:
                await response.write(piece)
            await response.write_eof()
        return response

    async def execute(self, request: web.Request) -> web.StreamResponse:
        command = tuple(request.query.getall("command", []))
        if not command:
            why = "you must specify a command: the query has no `command`"
            return web.Response(status=400, text=why)
        return await self._converse(request, partial(self._api.execute, command=command))

    async def attach(self, request: web.Request) -> web.StreamResponse:
        return await self._converse(request, self._api.attach)

    async def _converse(self, request: web.Request, run: _Run) -> web.StreamResponse:
        """A session of a command, by WebSocket or SPDY."""
        options = _stream_options(request)
        try:
            work = partial(run, self._name(request), options=options)
            if is_spdy(request.headers.get("Upgrade", "")):
                protocol = stream_protocol(_offered(request), commands.PROTOCOLS)
                async with taken_over(request, {STREAM_PROTOCOL: protocol}) as (answer, raw):
                    with while_there(request, raw.ping):
                        await commands.serve(raw, protocol, options, lambda to: work(streams=to))
                    return answer
            response = await _websocket(request, channels.PROTOCOLS)
            with while_there(request, response.ping):
                await serve(_Socket(response), options, lambda to: work(streams=to))
            return response
        except NodeApiError as error:
            return web.Response(status=error.code, text=str(error))

    async def forward(self, request: web.Request) -> web.StreamResponse:
        parts = request.match_info
        try:
            pod = self._api.find_pod(parts["namespace"], parts["pod"])
            dial = partial(self._api.forward, pod)
            if is_spdy(request.headers.get("Upgrade", "")):
                protocol = stream_protocol(_offered(request), (forwarding.SPDY_PROTOCOL,))
                async with taken_over(request, {STREAM_PROTOCOL: protocol}) as (answer, raw):
                    with while_there(request, raw.ping):
                        await forwarding.serve_spdy(raw, dial)
                    return answer
            ports = _ports(request)
            response = await _websocket(request, (forwarding.CHANNELS,))
            with while_there(request, response.ping):
                await forwarding.serve_channels(_Socket(response), ports, dial)
            return response
        except NodeApiError as error:
            return web.Response(status=error.code, text=str(error))

    def _name(self, request: web.Request) -> ContainerName:
        parts = request.match_info
        return self._api.find(parts["namespace"], parts["pod"], parts["container"])


async def _websocket(request: web.Request, protocols: Sequence[str]) -> web.WebSocketResponse:
    response = web.WebSocketResponse(
        protocols=protocols, max_msg_size=channels.MOST_BYTES_OF_CLIENTS
    )
    await response.prepare(request)
    return response


def _offered(request: web.Request) -> list[str]:
    return request.headers.getall(STREAM_PROTOCOL, [])


def _ports(request: web.Request) -> list[int]:
    """Raises NodeApiError."""
    try:
        return forwarding.ports_of(request.query.getall("port", []))
    except ValueError as error:
        raise NodeApiError(400, f"the query makes no sense: {error}") from error


def _log_options(request: web.Request) -> LogOptions:
    """Raises NodeApiError."""
    query = request.query

    def read(name: str, meaning: Callable[[str], T]) -> T | None:
        try:
            return meaning(query[name]) if name in query else None
        except ValueError as error:
            raise NodeApiError(400, f"the query makes no sense: {name}: {error}") from error

    return LogOptions(
        follow=query.get("follow") == "true",
        previous=query.get("previous") == "true",
        timestamps=query.get("timestamps") == "true",
        since=read("sinceTime", moment_of),
        since_seconds=read("sinceSeconds", _count),
        tail=read("tailLines", _count),
        limit_bytes=read("limitBytes", _count),
    )


def _count(text: str) -> int:
    """Raises ValueError."""
    found = int(text)
    if found < 0:
        raise ValueError(f"{found} is less than 0")
    return found


def _stream_options(request: web.Request) -> StreamOptions:
    def is_wanted(name: str) -> bool:
        return request.query.get(name) in ("1", "true")

    return StreamOptions(
        is_wanted("input"), is_wanted("output"), is_wanted("error"), is_wanted("tty")
    )


def _counted(busy: set[RequestHandler]) -> Middleware:
    """Knows which connections have a request under way."""

    @web.middleware
    async def count(request: web.Request, handler: Handler) -> web.StreamResponse:
        connection = request.protocol
        busy.add(connection)
        try:
            return await handler(request)
        finally:
            busy.discard(connection)

    return count


def _guarded(gate: Gate) -> Middleware:
    """Lets in whom the cluster allows it."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        caller = certified_user(request.get_extra_info("peercert") or {})
        verb = "get" if request.path.startswith(_READS) else "create"
        try:
            is_allowed = await gate.lets_in(caller, verb)
        except ClusterError as error:
            return web.Response(status=503, text=f"the cluster does not say who may ask: {error}")
        if not is_allowed:
            why = f'user "{caller[0]}" may not {verb} nodes/proxy'
            return web.Response(status=403, text=why)
        return await handler(request)

    return guard


@asynccontextmanager
async def serving(
    api: AgentApi,
    address: str,
    port: int,
    tls: ssl.SSLContext,
    gate: Gate,
    limits: Limits = LIMITS,
) -> AsyncIterator[int]:
    """Serves until the context is left; gives the port. Raises OSError."""
    handlers = _Handlers(api)
    busy: set[RequestHandler] = set()
    place = "/{namespace}/{pod}/{container}"
    app = web.Application(middlewares=[_counted(busy), _guarded(gate)])
    app.router.add_get("/healthz", handlers.health)
    app.router.add_get("/metrics/resource", handlers.use)
    app.router.add_get(f"/containerLogs{place}", handlers.logs)
    for method in ("GET", "POST"):  # by WebSocket, by SPDY
        app.router.add_route(method, f"/exec{place}", handlers.execute)
        app.router.add_route(method, f"/attach{place}", handlers.attach)
        app.router.add_route(method, "/portForward/{namespace}/{pod}", handlers.forward)
    runner = web.AppRunner(
        app,
        access_log=None,
        logger=wire_log(_log),
        keepalive_timeout=limits.idle_s,
        handler_cancellation=True,  # who follows a log that says no more is never written to
        shutdown_timeout=_SHUTDOWN_S,
    )
    await runner.setup()
    assert runner.server is not None, "it has just been set up"
    acceptor = Acceptor(runner.server, tls, lambda each: each not in busy, limits)
    try:
        async with accepting(acceptor, address, port) as listening:
            yield listening
    finally:
        await runner.cleanup()
