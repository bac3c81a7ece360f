"""Clients of a node's server that say nothing, or too little, do not keep it from others."""

from __future__ import annotations

import asyncio
import resource
import shutil
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from cluster.certificates import Authority
from drayman.node.agent.api.accepting import LIMITS, Acceptor, Limits, accepting
from node.agent.test_serving import a_pod, kubectl, served
from node.agent.world import world
from patience import PATIENCE_S

LOCAL = "127.0.0.1"
NEVER_S = 1000.0
Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass
class Site:
    """A server that answers at once, or only when it is told to."""

    port: int
    server: web.Server
    tls: ssl.SSLContext
    """Of a client that is let in."""
    told: asyncio.Event
    busy: set[RequestHandler]
    """Connections with a request under way."""

    async def connected(self) -> Client:
        async with asyncio.timeout(PATIENCE_S):
            return await asyncio.open_connection(LOCAL, self.port, ssl=self.tls)

    async def reaches(self, count: int) -> None:
        """Returns when the server has so many connections."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.server.connections) != count:
                await asyncio.sleep(0.01)

    async def works_on(self, count: int) -> None:
        """Returns when so many connections have a request under way."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.busy) != count:
                await asyncio.sleep(0.01)

    def silent(self) -> socket.socket:
        return socket.create_connection((LOCAL, self.port), timeout=PATIENCE_S)


async def answer(client: Client, path: str = "/") -> bytes:
    """The first line of it."""
    reader, writer = client
    writer.write(f"GET {path} HTTP/1.1\r\nHost: node\r\n\r\n".encode())
    async with asyncio.timeout(PATIENCE_S):
        return await reader.readline()


async def is_hung_up(client: socket.socket) -> bool:
    """Returns when the server has closed a connection, with or without a last word of TLS."""

    def ended() -> bool:
        with suppress(ConnectionResetError):
            while client.recv(1000):
                pass
        return True

    return await asyncio.to_thread(ended)


@asynccontextmanager
async def site(folder: Path, limits: Limits) -> AsyncIterator[Site]:
    authority = Authority()
    told = asyncio.Event()
    busy: set[RequestHandler] = set()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        busy.add(request.protocol)
        if request.path == "/slow":
            await told.wait()
        busy.discard(request.protocol)
        return web.Response(text="ok")

    files = [folder / "client.crt", folder / "client.key"]
    for path, data in zip(files, authority.issue("client"), strict=True):
        path.write_bytes(data)
    trust = ssl.create_default_context(cadata=authority.pem().decode())
    trust.verify_flags &= ~ssl.VERIFY_X509_STRICT
    trust.load_cert_chain(*files)
    server = web.Server(handle, keepalive_timeout=limits.idle_s)
    runner = web.ServerRunner(server, shutdown_timeout=1)
    await runner.setup()
    tls = authority.server(folder, LOCAL, clients=True)
    acceptor = Acceptor(server, tls, lambda each: each not in busy, limits)
    async with accepting(acceptor, LOCAL, 0) as port:
        yield Site(port, server, trust, told, busy)
        told.set()
    await runner.cleanup()


async def test_who_says_nothing_is_hung_up_on(tmp_path: Path) -> None:
    """Also in the middle of a handshake, and after one."""
    async with site(tmp_path, Limits(handshake_s=3.0, idle_s=0.1)) as here:
        with here.silent() as nothing, here.silent() as half:
            half.sendall(b"\x16\x03\x01\x02\x00\x01\x00")  # the beginning of a ClientHello
            assert await is_hung_up(nothing)
            assert await is_hung_up(half)
        reader, writer = await here.connected()
        async with asyncio.timeout(PATIENCE_S):
            assert await reader.read() == b""
        writer.close()


async def test_the_oldest_handshake_makes_way(tmp_path: Path) -> None:
    """However many begin one, those that finish theirs are served, and no more than a few are kept."""
    limits = Limits(handshakes=4, handshake_s=NEVER_S)
    async with site(tmp_path, limits) as here:
        with ExitStack() as end:
            silent = [end.enter_context(here.silent()) for _ in range(50)]
            client = await here.connected()
            assert await answer(client) == b"HTTP/1.1 200 OK\r\n"
            for each in silent[: 50 - limits.handshakes]:
                assert await is_hung_up(each)
            client[1].close()
            silent[-1].setblocking(False)
            with pytest.raises(BlockingIOError):
                silent[-1].recv(1)


async def test_idle_connections_make_way(tmp_path: Path) -> None:
    """For one with a request, the one that was made first goes; those that wait for an answer stay."""
    async with site(tmp_path, Limits(connections=3, idle_s=NEVER_S)) as here:
        busy = await here.connected()
        slow = asyncio.create_task(answer(busy, "/slow"))
        await here.works_on(1)
        idle = [await here.connected(), await here.connected()]
        await here.reaches(3)
        late = await here.connected()
        assert await answer(late) == b"HTTP/1.1 200 OK\r\n"
        with suppress(ConnectionResetError):
            assert await idle[0][0].read() == b""
        assert await answer(idle[1]) == b"HTTP/1.1 200 OK\r\n"
        here.told.set()
        assert await slow == b"HTTP/1.1 200 OK\r\n"
        for _, writer in (busy, late, *idle):
            writer.close()


async def test_a_connection_too_many_is_turned_away(tmp_path: Path) -> None:
    """Where all others are at work; later, there is room again."""
    async with site(tmp_path, Limits(connections=2)) as here:
        busy = [await here.connected() for _ in range(2)]
        answers = [asyncio.create_task(answer(each, "/slow")) for each in busy]
        await here.works_on(2)
        with here.silent() as turned:
            assert await is_hung_up(turned)
        here.told.set()
        assert await asyncio.gather(*answers) == [b"HTTP/1.1 200 OK\r\n"] * 2
        late = await here.connected()
        assert await answer(late) == b"HTTP/1.1 200 OK\r\n"
        for _, writer in (*busy, late):
            writer.close()


async def test_a_process_without_descriptors_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing can be accepted for a moment, which one line says, and then it can again."""
    async with site(tmp_path, Limits()) as here:
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        client = socket.socket()
        client.setblocking(False)
        with client:
            free = client.fileno()
            resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, before[1]))
            try:
                await asyncio.get_running_loop().sock_connect(client, (LOCAL, here.port))
                async with asyncio.timeout(PATIENCE_S):
                    while not caplog.records:
                        await asyncio.sleep(0.01)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, before)
        late = await here.connected()
        assert await answer(late) == b"HTTP/1.1 200 OK\r\n"
        late[1].close()
    said = {record.getMessage() for record in caplog.records if record.levelname != "DEBUG"}
    assert said == {"no connection can be accepted for a moment: Too many open files"}
    assert not any(record.exc_info for record in caplog.records)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
async def test_a_node_that_is_flooded(caplog: pytest.LogCaptureFixture) -> None:
    """By clients that say nothing and by those that are no clients: the API server still gets through, and the log says nothing of them."""
    async with world() as here, served(here) as agent, a_pod(here):
        with ExitStack() as end:
            for number in range(LIMITS.handshakes + 50):
                client = end.enter_context(socket.create_connection((LOCAL, agent.port)))
                if number % 2:
                    client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert await kubectl(here, "logs", "p") == (0, "up\n", "")
    talk = ("asyncio", "aiohttp", "drayman.node.agent.api", "drayman.node.streams")
    about = [each for each in caplog.records if each.name.startswith(talk)]
    assert [each.getMessage() for each in about if each.levelname != "DEBUG"] == []


class Failing(Acceptor):
    async def run(self, _listening: socket.socket) -> None:
        raise RuntimeError("out of order")


async def test_an_acceptor_that_fails_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """When it happens: a node that takes no connections any more should not keep that to itself."""
    server = web.Server(web.Response)
    acceptor = Failing(server, Authority().server(tmp_path, LOCAL), lambda _: True, Limits())
    async with accepting(acceptor, LOCAL, 0), asyncio.timeout(PATIENCE_S):
        while not caplog.records:
            await asyncio.sleep(0.01)
    assert caplog.messages == ["the acceptor of the node has failed"]
    assert "out of order" in caplog.text
