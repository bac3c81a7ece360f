"""Logs and commands of a node that is reached by HTTPS, as a kubelet is."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from aiohttp import WSMsgType, web

from drayman.apiserver.protocol.environment import Clock, SystemClock
from drayman.apiserver.security.authority import SigningAuthority, ensure_certificates
from drayman.apiserver.security.kubelets import KubeletTrust
from drayman.node.agent.api.certificates import KeyFile, request_for
from drayman.node.streams import channels
from drayman.node.streams.kubelet import Kubelet, Kubelets
from drayman.node.streams.model import (
    ContainerName,
    LogOptions,
    NodeApiError,
    PodName,
    StreamOptions,
    Streams,
    WindowSize,
)
from drayman.node.streams.serving import serve
from drayman.workloads.certificates.signers import DIGITAL_SIGNATURE, SERVER_AUTH
from node.streams.talking import Collected

NAME = ContainerName("ns", "p", "uid", "c")
LINE = "# and more of it\n"
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
    if verb == "metrics":
        return web.Response(text=LINE * (4 * 1024 * 1024 // len(LINE) + 1))
    if verb == "containerLogs":
        if "previous" in request.query:
            return web.Response(status=400, text='previous terminated container "c" not found\n')
        return web.Response(text=request.path_qs)
    if request.query.get("command") == "refuse" or verb == "portForward":
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


@dataclass
class SetClock:
    moment: datetime

    def now(self) -> datetime:
        return self.moment


@asynccontextmanager
async def kubelet(folder: Path) -> AsyncIterator[Kubelet]:
    """One that serves with a certificate of the cluster, and asks its clients for one."""
    async with reachable(folder, SystemClock()) as reach:
        yield reach()


@asynccontextmanager
async def reachable(folder: Path, clock: Clock) -> AsyncIterator[Callable[[], Kubelet]]:
    """The same, and a way to reach it by a server that has this clock."""
    files = ensure_certificates(folder, ["127.0.0.1"], SystemClock().now())
    key = KeyFile(folder / "kubelet.key").key()
    request = request_for(key, "node-1", "127.0.0.1")
    authority = SigningAuthority(folder, SystemClock().now)
    certificate = authority.sign(request, (DIGITAL_SIGNATURE, SERVER_AUTH), timedelta(hours=1))
    (folder / "kubelet.crt").write_bytes(certificate)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=files.authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / "kubelet.crt", folder / "kubelet.key")
    runner = web.ServerRunner(web.Server(handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    kubelets = Kubelets(KubeletTrust(folder, clock).context)
    try:
        yield partial(kubelets.at, "127.0.0.1", int(site.name.rpartition(":")[2]))
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


async def test_a_page_that_is_too_long_is_not_read_to_its_end(tmp_path: Path) -> None:
    """A node that says too much about its use says nothing."""
    async with kubelet(tmp_path) as node:
        with pytest.raises(NodeApiError, match="more than 4194304 bytes"):
            await node.use()


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
        with pytest.raises(NodeApiError, match="unable to upgrade connection: 404 no"):
            await node.forward(PodName("ns", "p", "uid"), 80)
    kubelets = Kubelets(KubeletTrust(tmp_path, SystemClock()).context)
    refused = r"dial tcp 127\.0\.0\.1:1: connection refused$"
    try:
        with pytest.raises(NodeApiError, match=r"containerLogs/ns/p/c.: " + refused):
            await kubelets.at("127.0.0.1", 1).logs(NAME, LogOptions())
        with pytest.raises(NodeApiError, match="error dialing backend: " + refused):
            await kubelets.at("127.0.0.1", 1).forward(PodName("ns", "p", "uid"), 80)
    finally:
        await kubelets.close()


async def test_a_server_that_runs_for_years_reaches_its_kubelets(tmp_path: Path) -> None:
    """It shows a new certificate before the old one expires; if there can be none, it goes on with the old one."""
    today = datetime.now(UTC)
    clock = SetClock(today - timedelta(days=400))
    async with reachable(tmp_path, clock) as reach:
        with pytest.raises(NodeApiError):
            await reach().logs(NAME, LogOptions())  # to the kubelet, it has expired
        clock.moment = today
        assert await text_of(reach(), LogOptions()) == "/containerLogs/ns/p/c"
        clock.moment = today + timedelta(days=350)
        (tmp_path / "ca.key").unlink()
        assert await text_of(reach(), LogOptions()) == "/containerLogs/ns/p/c"
