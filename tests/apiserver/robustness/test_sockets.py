"""Over real sockets: bytes that are no HTTP, and headers that are too large or too many."""

from __future__ import annotations

import asyncio
import re

import pytest
from robustness.raw import PATIENCE_S, get, listening

from drayman.apiserver.serving.http import HEADER_LIMIT

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
    "a length beyond all limits": b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n"
    + b" " * 5_000_000,
    "a path with odd escapes": b"GET /api/v1/%ff%00%2e%2e/%zz HTTP/1.1\r\nHost: x\r\n\r\n",
    "a header beyond the limit": get("/version", b"X: " + b"a" * (HEADER_LIMIT + 1)),
    "a header of strange bytes": get("/api/v1/zz", b"User-Agent: \xff\xfe\xed\xa0\x80", b"X: \x80"),
}


@pytest.mark.parametrize("name", NO_HTTP)
async def test_bytes_that_are_no_request_are_refused(name: str) -> None:
    """The connection gets a 4xx or is closed, without a traceback, and the server goes on."""
    async with listening() as server:
        line = await server.ask(NO_HTTP[name])
        assert not line or line.split()[1].startswith(b"4"), line
        assert b" 200 " in await server.ask(get("/version"))


async def test_a_header_within_the_limit_is_taken() -> None:
    """What is refused is refused for its size."""
    async with listening() as server:
        assert b" 200 " in await server.ask(get("/version", b"X: " + b"a" * (HEADER_LIMIT // 2)))


async def test_headers_without_end_cannot_fill_memory() -> None:
    """A client that sends one header after another is refused at some point rather than listened to."""
    async with listening() as server:
        reader, writer = await server.connect()
        writer.write(b"GET /version HTTP/1.1\r\nHost: x\r\n")
        closed = asyncio.create_task(reader.read())
        sent = 0
        try:
            while not closed.done():
                writer.write(b"".join(b"X-%d: a\r\n" % (sent + n) for n in range(1_000)))
                sent += 1_000
                assert sent < 1_000_000, "a million headers were taken"
                await asyncio.sleep(0)
                await writer.drain()
        except ConnectionError:
            pass  # It was closed while there was more to send.
        answer = await asyncio.wait_for(asyncio.gather(closed, return_exceptions=True), PATIENCE_S)
        writer.transport.abort()
        if isinstance(answer[0], bytes) and answer[0]:
            assert re.match(rb"HTTP/1\.1 4\d\d ", answer[0])
        assert b" 200 " in await server.ask(get("/version"))
