"""The shell around the server: what arrives on a socket and what leaves it."""

from __future__ import annotations

import asyncio
import gc
import gzip
import io
import json
import socket
import ssl
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from building import Harness, config
from cluster.certificates import Authority
from drayman.apiserver.protocol.access import ADMIN, AccessDecision, Attributes, Grant, User
from drayman.apiserver.protocol.errors import unauthorized
from drayman.apiserver.protocol.exchange import Request
from drayman.apiserver.protocol.limits import BODY_LIMIT, SMALL_BODY, ServerLimits
from drayman.apiserver.protocol.shares import Shares
from drayman.apiserver.serving.http import (
    MOST_WARNINGS,
    WARNING_LIMIT,
    WARNINGS_LIMIT,
    Listener,
    RunningServer,
    start,
)
from drayman.cluster.kube.connection import Trust, tls_context
from patience import PATIENCE_S

LARGE = "x" * 200_000
LARGE_ENOUGH = 2 * SMALL_BODY


@asynccontextmanager
async def running(harness: Harness) -> AsyncIterator[tuple[RunningServer, aiohttp.ClientSession]]:
    server = await start(harness.server, Listener())
    try:
        async with aiohttp.ClientSession(server.url, auto_decompress=False) as session:
            yield server, session
    finally:
        await server.stop()


async def test_every_answer_has_the_headers_clients_look_at() -> None:
    """An id, no caching, the media type, and a newline at the end of the JSON."""
    harness = Harness()
    async with running(harness) as (_, session), session.get("/api/v1/pods") as response:
        assert response.headers["Audit-Id"]
        assert response.headers["Cache-Control"] == "no-cache, private"
        assert response.headers["Content-Type"] == "application/json"
        assert (await response.read()).endswith(b"}\n")


async def test_warnings_are_quoted() -> None:
    """Each in a header of its own."""
    harness = Harness()
    base = await harness.namespace()
    body = {**config("a"), 'what"ever': 1}
    async with (
        running(harness) as (_, session),
        session.post(f"{base}/configmaps", json=body) as response,
    ):
        warning = response.headers.getall("Warning")
    assert warning == ['299 - "unknown field \\"what\\\\\\"ever\\""']


async def test_many_short_warnings_are_few_headers() -> None:
    """Clients give up on an answer with a hundred headers; the last one says how many warnings are left out."""
    harness = Harness()
    base = await harness.namespace()
    body = {**config("a"), **{f"x{number}": 1 for number in range(60)}}
    async with (
        running(harness) as (_, session),
        session.post(f"{base}/configmaps", json=body) as response,
    ):
        warnings = response.headers.getall("Warning")
    assert len(warnings) == MOST_WARNINGS
    assert warnings[-1] == f'299 - "{60 - MOST_WARNINGS + 1} more warnings are left out"'


async def test_warnings_without_end_are_cut() -> None:
    """Where they are too long together, each is cut and the last ones are left out, so that clients can read the headers."""
    harness = Harness()
    base = await harness.namespace()
    body = {**config("a"), **{f"{number:04d}{'x' * 400}": 1 for number in range(2_000)}}
    async with (
        running(harness) as (_, session),
        session.post(f"{base}/configmaps", json=body) as response,
    ):
        warnings = response.headers.getall("Warning")
    *shown, last = warnings
    assert len(shown) == WARNINGS_LIMIT // WARNING_LIMIT
    assert "more warnings are left out" in last
    assert all(len(warning) < WARNING_LIMIT + 20 for warning in warnings)


async def test_of_several_headers_of_a_name_the_first_counts() -> None:
    """But the groups of an impersonated user are all of them."""
    harness = Harness()
    seen: list[dict[str, str]] = []

    class Recording:
        async def authenticate(self, request: Request) -> User:
            seen.append(dict(request.headers))
            return ADMIN

    harness.server.authenticator = Recording()
    headers = [
        ("Authorization", "Bearer a"),
        ("Authorization", "Bearer b"),
        ("Impersonate-Group", "g"),
        ("Impersonate-Group", "h"),
    ]
    async with running(harness) as (_, session), session.get("/version", headers=headers):
        pass
    assert (seen[0]["authorization"], seen[0]["impersonate-group"]) == ("Bearer a", "g\nh")


async def test_large_answers_are_compressed_for_those_who_ask() -> None:
    """And only for those."""
    harness = Harness()
    base = await harness.namespace()
    await harness.json("POST", f"{base}/configmaps", config("a", k=LARGE))
    async with running(harness) as (_, session):
        for accepted, compressed in (("gzip", True), ("identity", False)):
            headers = {"Accept-Encoding": accepted}
            async with session.get(f"{base}/configmaps/a", headers=headers) as response:
                data = await response.read()
                assert (response.headers.get("Content-Encoding") == "gzip") is compressed
            text = gzip.decompress(data) if compressed else data
            assert json.loads(text)["data"]["k"] == LARGE


async def test_a_body_beyond_the_limit_is_refused() -> None:
    """413, and the connection is good for another request."""
    harness = Harness()
    base = await harness.namespace()
    async with running(harness) as (_, session):
        body = json.dumps(config("a", k="x" * BODY_LIMIT)).encode()
        headers = {"Content-Type": "application/json"}
        async with session.post(
            f"{base}/configmaps", data=io.BytesIO(body), headers=headers
        ) as response:
            status, answer = response.status, await response.json()
        async with session.get("/healthz") as response:
            assert await response.text() == "ok"
    assert (status, answer["message"]) == (413, f"Request entity too large: limit is {BODY_LIMIT}")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
async def test_bodies_are_taken_as_they_are(encoding: str) -> None:
    """As Kubernetes takes them: a compressed body is not JSON. A small one could become very large."""
    harness = Harness()
    base = await harness.namespace()
    async with (
        running(harness) as (_, session),
        session.post(
            f"{base}/configmaps",
            data=gzip.compress(json.dumps(config("a")).encode()),
            headers={"Content-Type": "application/json", "Content-Encoding": encoding},
        ) as response,
    ):
        answer = json.loads(await response.read())
    assert (response.status, answer["kind"]) == (400, "Status")
    assert not harness.store.list("configmaps")


async def test_bodies_beyond_what_may_be_held_at_once_are_told_to_come_again() -> None:
    """429 for large ones; small ones get through."""
    harness = Harness()
    base = await harness.namespace()
    harness.server.limits = ServerLimits(body_bytes=Shares(LARGE_ENOUGH))
    async with running(harness) as (_, session):
        for size, status in ((LARGE_ENOUGH, 429), (10, 201)):
            body = config(f"a{size}", k="x" * size)
            async with session.post(f"{base}/configmaps", json=body) as response:
                assert response.status == status
    assert harness.server.limits.body_bytes.taken == 0


async def test_a_watch_streams_and_ends_with_the_server() -> None:
    """Events come as lines while the request is open."""
    harness = Harness()
    base = await harness.namespace()
    server = await start(harness.server, Listener())
    async with (
        aiohttp.ClientSession(server.url) as session,
        session.get(f"{base}/configmaps?watch=1") as response,
    ):
        await harness.json("POST", f"{base}/configmaps", config("a"))
        event = json.loads(await response.content.readline())
        await server.stop()
        with pytest.raises(aiohttp.ClientError):
            await response.content.readline()
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
    assert harness.store.watchers == 0


@pytest.mark.parametrize("connection", ["keep-alive", "close"])
def test_no_connection_outlives_its_server(connection: str, tmp_path: Path) -> None:
    """Not even that of a client that does not agree to the end of TLS."""
    authority = Authority()
    trusted = tls_context(Trust(ca=authority.pem()), None)

    def ask(server: RunningServer) -> ssl.SSLSocket:
        plain = socket.create_connection((server.host, server.port), PATIENCE_S)
        client = trusted.wrap_socket(plain, server_hostname=server.host)
        head = f"GET /version HTTP/1.1\r\nHost: x\r\nConnection: {connection}\r\n\r\n"
        client.sendall(head.encode())
        assert client.recv(1)
        return client

    async def serve() -> ssl.SSLSocket:
        tls = authority.server(tmp_path, "127.0.0.1")
        server = await start(Harness().server, Listener(tls=tls))
        client = await asyncio.to_thread(ask, server)
        await server.stop()
        return client

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        client = asyncio.run(serve())
        gc.collect()
    client.close()
    assert [str(each.message) for each in seen] == []


class Nobody:
    """Takes nobody for anybody."""

    async def authenticate(self, request: Request) -> User:
        raise unauthorized()


class Nothing:
    """Allows nothing."""

    def authorize(self, user: User, attributes: Attributes) -> AccessDecision:
        return AccessDecision(allowed=False)

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        return iter(())


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_large_body_of_a_refused_request_is_not_waited_for(status: int) -> None:
    """The answer comes while the body, which is announced, has not been sent."""
    harness = Harness()
    await harness.namespace()
    if status == 401:
        harness.server.authenticator = Nobody()
    if status == 403:
        harness.server.core.authorizer = Nothing()
    resource = "nonsense" if status == 404 else "configmaps"
    head = f"POST /api/v1/namespaces/ns/{resource} HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n"
    async with running(harness) as (server, _):
        reader, writer = await asyncio.open_connection(server.host, server.port)
        writer.write(head.encode())
        line = await asyncio.wait_for(reader.readline(), PATIENCE_S)
        writer.transport.abort()
    assert int(line.split()[1]) == status
    assert harness.server.limits.body_bytes.taken == 0
