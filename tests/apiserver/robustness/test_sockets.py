"""Over real sockets: bytes that are no HTTP, clients that go away, watches by the hundred."""

from __future__ import annotations

import asyncio

import pytest
from robustness.hostile import CONFIG_MAPS, IS_LONG, config_map, hostile_target

from drayman.apiserver.http import Listener, RunningServer, start

WATCHES = 3_000 if IS_LONG else 300
MOST_EVENTS = 200
NO_HTTP = {
    "noise": b"\x16\x03\x01\x00\xff\x00\r\n\r\n",
    "a NUL in a header": b"GET / HTTP/1.1\r\nHost: x\r\nX: \x00\r\n\r\n",
    "a huge header": b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
    "a huge path": b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "a length that is none": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    "a chunk of no size": b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "a body beyond the limit": b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n"
    + b" " * 5_000_000,
    "a path with odd escapes": b"GET /api/v1/%ff%00%2e%2e/%zz HTTP/1.1\r\nHost: x\r\n\r\n",
}


async def connect(running: RunningServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(running.host, running.port)


@pytest.mark.parametrize("name", NO_HTTP)
async def test_bytes_that_are_no_request_are_refused(name: str) -> None:
    """The connection gets a 4xx or is closed, without a traceback, and the server goes on."""
    async with hostile_target() as target:
        running = await start(target.server, Listener())
        try:
            reader, writer = await connect(running)
            writer.write(NO_HTTP[name])
            line = await asyncio.wait_for(reader.readline(), 10)
            assert not line or line.split()[1].startswith(b"4"), line
            writer.close()
            assert not target.tracebacks.found
        finally:
            await running.stop()


async def test_watches_that_are_dropped_leave_nothing() -> None:
    """Clients that open a watch and vanish without reading are forgotten by the next events."""
    async with hostile_target() as target:
        running = await start(target.server, Listener())
        request = f"GET {CONFIG_MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        try:
            for _ in range(WATCHES // 100):
                opened = [await connect(running) for _ in range(100)]
                for reader, writer in opened:
                    writer.write(request)
                    assert b"200" in await reader.readline()
                for _, writer in opened:
                    writer.transport.abort()
            for number in range(MOST_EVENTS):
                await target.send("POST", CONFIG_MAPS, config_map(f"event{number}"))
                await asyncio.sleep(0.01)
                if not target.server.limits.watches:
                    break
            assert target.server.limits.watches == 0
            assert not target.tracebacks.found
        finally:
            await running.stop()
