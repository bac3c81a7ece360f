"""Clients that keep the server waiting, and more of them than there is room for."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from robustness.hostile import CONFIG_MAP, CONFIG_MAPS, JSON, hostile_target
from robustness.raw import PATIENCE_S, Connection, get, listening, until

from cluster.certificates import Authority
from drayman.apiserver.serving.accepting import MOST_CONNECTIONS, RESERVED_FILES, most_connections
from drayman.apiserver.serving.http import LOWEST_RATE, Listener, start

MOMENT_S = 0.2
SOME_TIME_S = 3.0
LENGTH = 4 * LOWEST_RATE
HEAD = (
    f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\nContent-Length: {LENGTH}\r\n\r\n"
).encode()


async def is_cut(connection: Connection) -> bool:
    """Whether the server ends a connection, without having sent anything on it."""
    try:
        return await asyncio.wait_for(connection[0].read(), PATIENCE_S) == b""
    except ConnectionError:
        return True


async def answer(connection: Connection, request: bytes) -> bytes:
    """The first line of the answer to a request on an open connection. The rest of the answer is read as well."""
    reader, writer = connection
    writer.write(request)
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
    length = int(head.lower().partition(b"content-length: ")[2].split()[0])
    await asyncio.wait_for(reader.readexactly(length), PATIENCE_S)
    return head.partition(b"\r\n")[0]


@pytest.mark.parametrize("sent", [b"", b"GET /version HTTP/1.1\r\nHost"], ids=["nothing", "a part"])
async def test_a_client_that_does_not_send_a_request_is_disconnected(sent: bytes) -> None:
    """Whether it sends nothing or a part of a head."""
    async with listening() as server:
        server.target.server.limits.head_s = MOMENT_S
        connection = await server.connect()
        connection[1].write(sent)
        assert await is_cut(connection)


async def test_a_client_that_sends_its_head_byte_by_byte_is_disconnected() -> None:
    """Each byte is progress, but the head has to be complete in time."""
    async with listening() as server:
        server.target.server.limits.head_s = MOMENT_S
        reader, writer = await server.connect()
        cut = asyncio.create_task(is_cut((reader, writer)))
        writer.write(b"GET /version HTTP/1.1\r\nX: ")
        while not cut.done():
            writer.write(b"a")
            await asyncio.sleep(0.01)
        assert await cut


async def test_a_connection_between_two_requests_is_kept() -> None:
    """For much longer than a head may take."""
    async with listening() as server:
        server.target.server.limits.head_s = SOME_TIME_S
        kept = await server.connect()
        assert b" 200 " in await answer(kept, get("/version"))
        assert await is_cut(await server.connect())
        assert b" 200 " in await answer(kept, get("/version"))


async def test_the_second_head_has_to_be_complete_in_time_too() -> None:
    """From its first byte on."""
    async with listening() as server:
        server.target.server.limits.head_s = SOME_TIME_S
        connection = await server.connect()
        assert b" 200 " in await answer(connection, get("/version"))
        connection[1].write(b"GET /ver")
        assert await is_cut(connection)


async def test_a_client_that_does_not_shake_hands_is_disconnected(tmp_path: Path) -> None:
    """Over TLS, waiting begins before there is anything to read."""
    tls = Authority().server(tmp_path, "127.0.0.1")
    async with listening() as server:
        server.target.server.limits.head_s = MOMENT_S
        secure = await start(server.target.server, Listener(tls=tls))
        connection = await asyncio.open_connection(secure.host, secure.port)
        assert await is_cut(connection)
        connection[1].close()
        await secure.stop()


async def test_a_body_that_does_not_come_is_given_up() -> None:
    """The client gets a 408, and what it announced no longer counts."""
    async with listening() as server:
        limits = server.target.server.limits
        limits.body_s = MOMENT_S
        reader, writer = await server.connect()
        writer.write(HEAD + b"{")
        assert b" 408 " in await asyncio.wait_for(reader.readline(), PATIENCE_S)
        await until(lambda: limits.body_bytes.taken == 0, "the end of the request")


async def test_a_body_that_comes_slowly_but_steadily_is_read() -> None:
    """What has arrived extends the time for the rest."""
    async with listening() as server:
        server.target.server.limits.body_s = MOMENT_S
        reader, writer = await server.connect()
        writer.write(HEAD + b" " * (LENGTH - 2))  # This earns four seconds.
        other_reader, other_writer = await server.connect()
        other_writer.write(HEAD + b"{")
        assert b" 408 " in await asyncio.wait_for(other_reader.readline(), PATIENCE_S)
        writer.write(b"{}")
        line = await asyncio.wait_for(reader.readline(), PATIENCE_S)
        assert b" 422 " in line or b" 400 " in line, line


async def test_a_client_that_leaves_in_the_middle_of_a_body_is_no_error() -> None:
    """Nothing is logged, and nothing is left of it."""
    async with listening() as server:
        limits = server.target.server.limits
        _, writer = await server.connect()
        writer.write(HEAD + b"{")
        await until(lambda: limits.body_bytes.taken == LENGTH, "the reading of the body")
        writer.transport.abort()
        await until(lambda: limits.body_bytes.taken == 0, "the end of the request")


async def test_the_client_that_was_silent_longest_makes_room(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A new client is served where there is no room; one that is being answered keeps its connection."""
    async with listening(most_connections=3) as server:
        status, watch = await server.watch(CONFIG_MAPS)
        assert status == 200
        first, second = await server.connect(), await server.connect()
        for connection in (first, second, first):  # So the second one is silent longest.
            assert b" 200 " in await answer(connection, get("/version"))
        with caplog.at_level(logging.WARNING):
            third = await server.connect()
            assert b" 200 " in await answer(third, get("/version"))
        assert await is_cut(second)
        for connection in (first, third):
            assert b" 200 " in await answer(connection, get("/version"))
        assert len(caplog.records) == 1
        assert not watch[0].at_eof()


async def test_no_client_is_served_while_all_connections_are_being_answered() -> None:
    """A new one is refused, and served once another one has gone."""
    async with listening(most_connections=2) as server:
        watches = [await server.watch(CONFIG_MAPS) for _ in range(2)]
        assert await is_cut(await server.connect())
        watches[0][1][1].transport.abort()
        await until(lambda: server.watches == (1, 1), "the end of a watch")
        assert b" 200 " in await server.ask(get(CONFIG_MAP))


async def test_a_server_that_stops_while_a_client_connects() -> None:
    """In whatever moment it does, the connection does not stay open."""
    async with hostile_target() as target:
        before = set(os.listdir("/proc/self/fd"))
        for moments in range(20):
            running = await start(target.server, Listener())
            with socket.create_connection((running.host, running.port)):
                for _ in range(moments):
                    await asyncio.sleep(0)
                await running.stop()
            del running
            gc.collect()  # what nobody has closed says so
        assert set(os.listdir("/proc/self/fd")) <= before
        assert not target.tracebacks.found, target.tracebacks.found


def test_there_are_fewer_connections_than_files() -> None:
    """So that the store finds a file descriptor when it needs one."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 0 < most_connections() <= min(MOST_CONNECTIONS, max(1, soft - RESERVED_FILES))


FEW_FILES = """
import asyncio, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.http import Listener, start
from drayman.cluster.embedded.store import Store

async def main():
    server = await start(make_server(Store.open(None)), Listener(most_connections=10_000))
    print(server.port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    await server.stop()

asyncio.run(main())
"""


def test_a_server_without_file_descriptors_goes_on() -> None:
    """It closes silent connections, says so without a traceback, and serves new clients."""
    with subprocess.Popen(
        [sys.executable, "-c", FEW_FILES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
            client.sendall(get("/version"))
            assert b" 200 " in client.recv(100)
        _, errors = process.communicate("end\n", timeout=PATIENCE_S)
        for each in silent:
            each.close()
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert "no connection can be accepted for a moment: Too many open files" in errors
