"""Logs and commands of a node that is reached by HTTPS, as a kubelet is."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import WSMsgType, web

from drayman.apiserver.protocol.environment import SystemClock
from drayman.apiserver.security.authority import ensure_certificates
from drayman.apiserver.security.kubelets import kubelet_context
from drayman.node.streams import channels
from drayman.node.streams.kubelet import Kubelet, Kubelets
from drayman.node.streams.model import (
    ContainerName,
    LogOptions,
    NodeApiError,
    StreamOptions,
    Streams,
    WindowSize,
)
from drayman.node.streams.serving import serve
from node.streams.talking import Collected

NAME = ContainerName("ns", "p", "uid", "c")
ALL = StreamOptions(stdin=True, stdout=True, stderr=True)


class Served:
    """The socket of a client, for `serve`."""

    def __init__(self, response: web.WebSocketResponse) -> None:
        self._response = response

    async def receive(self) -> bytes | None:
        received = await self._response.receive()
        return bytes(received.data) if received.type is WSMsgType.BINARY else None

    async def send(self, message: bytes) -> None:
        await self._response.send_bytes(message)

    async def close(self, code: int) -> None:
        await self._response.close(code=code)


async def handle(request: web.BaseRequest) -> web.StreamResponse:
    """Says what it is asked for, and shouts what it is told."""
    verb = request.path.split("/")[1]
    if verb == "containerLogs":
        if "previous" in request.query:
            return web.Response(status=400, text='previous terminated container "c" not found\n')
        return web.Response(text=request.path_qs)
    if request.query.get("command") == "refuse":
        return web.Response(status=404, text="no")
    response = web.WebSocketResponse(protocols=channels.PROTOCOLS)
    await response.prepare(request)

    async def work(streams: Streams) -> int:
        await streams.write(request.path_qs.encode())
        size = await streams.resized()
        await streams.write_error(f"{size.width}x{size.height}".encode())
        while data := await streams.read():
            await streams.write(data.upper())
        return 7

    await serve(Served(response), ALL, work)
    return response


@asynccontextmanager
async def kubelet(folder: Path) -> AsyncIterator[Kubelet]:
    """One that serves with a certificate of the cluster, and asks its clients for one."""
    files = ensure_certificates(folder, ["127.0.0.1"], SystemClock().now())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=files.authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(files.certificate, files.key)
    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    kubelets = Kubelets(lambda: kubelet_context(folder, SystemClock()))
    try:
        yield kubelets.at("127.0.0.1", int(site.name.rpartition(":")[2]))
    finally:
        await kubelets.close()
        await runner.cleanup()


async def text_of(node: Kubelet, options: LogOptions) -> str:
    return b"".join([piece async for piece in await node.logs(NAME, options)]).decode()


async def test_a_log_is_asked_for_as_of_a_kubelet(tmp_path: Path) -> None:
    """By path and query; what it refuses is said with its own words."""
    async with kubelet(tmp_path) as node:
        assert await text_of(node, LogOptions()) == "/containerLogs/ns/p/c"
        asked = LogOptions(follow=True, timestamps=True, tail=3, since_seconds=9, limit_bytes=5)
        query = "follow=true&limitBytes=5&sinceSeconds=9&tailLines=3&timestamps=true"
        assert await text_of(node, asked) == f"/containerLogs/ns/p/c?{query}"
        with pytest.raises(NodeApiError, match="previous terminated") as refused:
            await node.logs(NAME, LogOptions(previous=True))
        assert refused.value.code == 400


async def test_streams_are_passed_on_to_a_kubelet(tmp_path: Path) -> None:
    """Input until its end, sizes, both outputs, and the exit code."""
    client = Collected([b"hello ", b"there"], sizes=[WindowSize(80, 24)])
    async with kubelet(tmp_path) as node:
        code = await node.execute(NAME, ("say", "a b"), ALL, client)
    asked = b"/exec/ns/p/c?command=say&command=a+b&input=1&output=1&error=1"
    assert (code, client.output, client.errors) == (7, asked + b"HELLO THERE", b"80x24")


async def test_a_kubelet_that_refuses_is_reported(tmp_path: Path) -> None:
    """Also one that cannot be reached."""
    async with kubelet(tmp_path) as node:
        with pytest.raises(NodeApiError, match="unable to upgrade connection: 404"):
            await node.execute(NAME, ("refuse",), ALL, Collected())
    kubelets = Kubelets(lambda: kubelet_context(tmp_path, SystemClock()))
    try:
        with pytest.raises(NodeApiError, match=r"containerLogs/ns/p/c.: dial tcp 127.0.0.1:1"):
            await kubelets.at("127.0.0.1", 1).logs(NAME, LogOptions())
    finally:
        await kubelets.close()
