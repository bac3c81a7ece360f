"""Logs of pods and commands in them, as requests to the API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from test_subresources import NS, POD, binding, built_in

from building import Harness, decoded
from drayman.apiserver.protocol.exchange import StreamingResponse
from drayman.apiserver.protocol.shares import Shares
from drayman.apiserver.serving.http import Listener, start
from drayman.apiserver.serving.pacing import Pace
from drayman.node.streams.model import (
    Connection,
    ContainerName,
    LogOptions,
    NodeApiError,
    PodName,
    StreamOptions,
    Streams,
)

UPGRADE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-protocol": "v5.channel.k8s.io",
}
SPDY = {"connection": "Upgrade", "upgrade": "SPDY/3.1"}
CHANNELS = {**UPGRADE, "sec-websocket-protocol": "v4.channel.k8s.io"}
SIMULATED = {"metadata": {"name": "n", "labels": {"drayman.dev/simulated": "true"}}}


class Parrot:
    """A node that repeats what it is asked for."""

    async def logs(self, name: ContainerName, options: LogOptions) -> AsyncIterator[bytes]:
        if options.previous:
            raise NodeApiError(400, "there was none before")

        async def chunks() -> AsyncIterator[bytes]:
            yield f"{name.container} of {name.pod}: {options.tail}\n".encode()

        return chunks()

    async def execute(
        self,
        name: ContainerName,
        command: tuple[str, ...],
        options: StreamOptions,
        streams: Streams,
    ) -> int:
        await streams.write(" ".join(command).encode())
        while data := await streams.read():
            await streams.write(data)
        return len(command)

    async def attach(self, name: ContainerName, options: StreamOptions, streams: Streams) -> int:
        raise NodeApiError(404, "unable to upgrade connection: gone")

    async def forward(self, pod: PodName, port: int) -> Connection:
        raise NodeApiError(500, f"nothing listens on port {port} of {pod.name}")


async def with_pod(node: dict[str, Any] | None = None) -> Harness:
    harness = await built_in()
    harness.server.core.nodes.simulated = Parrot()
    await harness.json("POST", f"{NS}/pods", POD)
    await harness.json("POST", f"{NS}/pods/p/binding", binding())
    if node is not None:
        await harness.json("POST", "/api/v1/nodes", node)
    return harness


async def test_a_log_is_plain_text() -> None:
    """Of the only container, with the options of the query."""
    harness = await with_pod(SIMULATED)
    answer = await harness.answer("GET", f"{NS}/pods/p/log", tailLines="3")
    assert isinstance(answer, StreamingResponse)
    assert (answer.status, answer.content_type) == (200, "text/plain")
    assert [chunk async for chunk in answer.chunks] == [b"c of p: 3\n"]


LOG_ERRORS = [
    ("tailLines=-1", 422, 'PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0'),
    ("sinceSeconds=0", 422, 'PodLogOptions "p" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0'),
    ("limitBytes=0", 422, 'PodLogOptions "p" is invalid: limitBytes: Invalid value: 0: must be greater than 0'),
    ("sinceTime=abc", 400, 'parsing time "abc" as "2006-01-02T15:04:05Z07:00": cannot parse "abc" as "2006"'),
    ("sinceTime=9999-12-31T23:59:59-14:00", 400, "sinceTime: 9999-12-31T23:59:59-14:00 is not in the years 1 to 9999 of UTC"),
    ("stream=Foo", 422, 'PodLogOptions "p" is invalid: stream: Forbidden: may not be specified'),
    ("container=zz", 400, "container zz is not valid for pod p"),
    ("previous=true", 400, "there was none before"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "status", "message"), LOG_ERRORS, ids=[row[0] for row in LOG_ERRORS])  # fmt: skip
async def test_a_log_that_cannot_be_is_refused(query: str, status: int, message: str) -> None:
    """With the words of the real server, or of the node."""
    harness = await with_pod(SIMULATED)
    name, _, value = query.partition("=")
    answer = await harness.send("GET", f"{NS}/pods/p/log", **{name: value})
    assert (answer.status, decoded(answer)["message"]) == (status, message)


NODES: list[tuple[str, dict[str, Any] | None, int, str]] = [
    ("unknown", None, 404, 'nodes "n" not found'),
    ("without an address", {"metadata": {"name": "n"}}, 503, "no agent runs on node n: it has no address"),
]  # fmt: skip


@pytest.mark.parametrize(("node", "status", "message"), [row[1:] for row in NODES], ids=[row[0] for row in NODES])  # fmt: skip
async def test_a_node_that_cannot_be_reached_is_named(
    node: dict[str, Any] | None, status: int, message: str
) -> None:
    """For logs and for commands."""
    harness = await with_pod(node)
    for part in ("log", "exec"):
        answer = await harness.send("GET", f"{NS}/pods/p/{part}")
        assert (answer.status, decoded(answer)["message"]) == (status, message)


UPGRADES = [
    ("exec", {}, 400, "Upgrade request required"),
    ("exec", {**UPGRADE, "upgrade": "h2c"}, 400, "h2c is not served: WebSocket and SPDY/3.1 are"),
    ("exec", SPDY, 400, "X-Stream-Protocol-Version is required"),
    ("exec", {**SPDY, "x-stream-protocol-version": "v9"}, 403, "unable to negotiate protocol"),
    ("exec", {**UPGRADE, "sec-websocket-protocol": "v9"}, 400, "unable to negotiate protocol"),
    ("exec", UPGRADE, 400, "you must specify at least 1 of stdin, stdout, stderr"),
    ("portforward", UPGRADE, 400, "unable to negotiate protocol"),
    ("portforward", SPDY, 400, "X-Stream-Protocol-Version is required"),
    ("portforward", CHANNELS, 400, "the query has no usable `ports`: there are 0 ports"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "headers", "status", "message"), UPGRADES)
async def test_what_cannot_become_a_session_is_refused(
    part: str, headers: dict[str, str], status: int, message: str
) -> None:
    """Before anything is upgraded, so that clients can show why."""
    harness = await with_pod(SIMULATED)
    answer = await harness.send("GET", f"{NS}/pods/p/{part}", None, headers)
    assert answer.status == status
    assert message in decoded(answer)["message"]


async def test_a_user_gets_a_share_of_the_sessions() -> None:
    """429 beyond it, as for watches."""
    harness = await with_pod(SIMULATED)
    harness.server.limits.sessions = Shares(0)
    answer = await harness.send("GET", f"{NS}/pods/p/exec", None, UPGRADE)
    assert answer.status == 429


@asynccontextmanager
async def session(
    harness: Harness, path: str, *protocols: str
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    server = await start(harness.server, Listener())
    try:
        async with (
            aiohttp.ClientSession(server.url) as client,
            client.ws_connect(f"{NS}/pods/p/{path}", protocols=protocols) as socket,
        ):
            yield socket
    finally:
        await server.stop()


async def test_a_command_is_followed_over_a_socket() -> None:
    """In the best protocol that the client offers; it is recorded when it ends, with what it took."""
    harness = await with_pod(SIMULATED)
    path = "exec?command=a&command=b&stdin=true&stdout=true"
    async with session(harness, path, "v4.channel.k8s.io", "v5.channel.k8s.io") as socket:
        assert socket.protocol == "v5.channel.k8s.io"
        assert await socket.receive_bytes() == b"\x01"
        assert await socket.receive_bytes() == b"\x01a b"
        await socket.send_bytes(b"\x00hello")
        assert await socket.receive_bytes() == b"\x01hello"
        assert harness.server.limits.sessions.taken == 1
        await socket.send_bytes(b"\xff\x00")
        status = await socket.receive_bytes()
        assert json.loads(status[1:])["details"]["causes"][0]["message"] == "2"
        assert (await socket.receive()).data == 1000
    assert harness.server.limits.sessions.taken == 0


async def test_a_node_that_refuses_says_so_on_the_socket() -> None:
    """The connection is a socket by then."""
    harness = await with_pod(SIMULATED)
    async with session(harness, "attach?stdout=true", "v4.channel.k8s.io") as socket:
        assert await socket.receive_bytes() == b"\x01"
        status = json.loads((await socket.receive_bytes())[1:])
    assert status["message"] == "Internal error occurred: unable to upgrade connection: gone"


async def test_a_server_that_stops_ends_its_sessions() -> None:
    """It does not wait for clients that stay."""
    harness = await with_pod(SIMULATED)
    server = await start(harness.server, Listener())
    path = f"{NS}/pods/p/exec?command=a&stdin=true&stdout=true"
    async with (
        aiohttp.ClientSession(server.url) as client,
        client.ws_connect(path, protocols=("v5.channel.k8s.io",)) as socket,
    ):
        assert await socket.receive_bytes() == b"\x01"
        await server.stop()
        assert harness.server.limits.sessions.taken == 0


def served_at(port: int) -> dict[str, Any]:
    addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
    endpoints = {"kubeletEndpoint": {"Port": port}}
    return {"status": {"addresses": addresses, "daemonEndpoints": endpoints}}


async def test_an_agent_in_this_process_answers_for_its_node() -> None:
    """Without a connection between two ends of one process; a node of that name that is served at another port is another agent's."""
    harness = await with_pod({"metadata": {"name": "n"}, **served_at(4321)})
    nodes = harness.server.core.nodes
    for port, status in ((4321, 200), (4322, 503)):
        with nodes.serving("n", port, Parrot()):
            answer = await harness.answer("GET", f"{NS}/pods/p/log", tailLines="3")
            assert answer.status == status
    assert (await harness.send("GET", f"{NS}/pods/p/log")).status == 503


async def test_streams_of_a_user_take_turns_with_other_work() -> None:
    """Where each piece takes all the time there is, each of a hundred streams has an iteration of the event loop of its own."""
    harness = await with_pod(SIMULATED)
    harness.server.pace = Pace(budget_s=0.0)
    streams = []
    for _ in range(100):
        answer = await harness.answer("GET", f"{NS}/pods/p/log")
        assert isinstance(answer, StreamingResponse)
        streams.append(answer.chunks)
    iterations = 0

    async def count() -> None:
        nonlocal iterations
        while True:
            await asyncio.sleep(0)
            iterations += 1

    async def read(chunks: AsyncIterator[bytes]) -> None:
        assert [chunk async for chunk in chunks]

    counting = asyncio.create_task(count())
    await asyncio.gather(*map(read, streams))
    counting.cancel()
    assert iterations >= len(streams)
