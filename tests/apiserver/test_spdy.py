"""SPDY at the API server: clients as they should be, and clients as they should not be."""

from __future__ import annotations

import asyncio
import json
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_streams import SIMULATED, with_pod
from test_subresources import NS

from building import Harness
from drayman.apiserver.serving.http import Listener, RunningServer, start
from drayman.node.spdy.frames import Data, Ping, SynStream, encoded
from drayman.node.spdy.headers import DICTIONARY, HeaderWriter
from drayman.node.streams.multiplexing import Stream, multiplexed
from drayman.node.streams.takeover import RawSocket
from patience import PATIENCE_S

PORTS = "portforward.k8s.io"


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[Harness, RunningServer]]:
    harness = await with_pod(SIMULATED)
    server = await start(harness.server, Listener())
    try:
        yield harness, server
    finally:
        await server.stop()


async def dialed(server: RunningServer, path: str, *protocols: str) -> tuple[RawSocket, str]:
    """A connection after its upgrade, and what was answered to that."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    offers = "".join(f"X-Stream-Protocol-Version: {each}\r\n" for each in protocols)
    head = f"POST {NS}/pods/p/{path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"
    writer.write(f"{head}{offers}Content-Length: 0\r\n\r\n".encode())
    answer = (await reader.readuntil(b"\r\n\r\n")).decode()
    return RawSocket(reader, writer), answer


async def all_of(stream: Stream) -> bytes:
    found = b""
    while data := await stream.read():
        found += data
    return found


@pytest.mark.parametrize(
    ("protocols", "agreed", "end"),
    [
        (("v3.channel.k8s.io", "v4.channel.k8s.io"), "v4.channel.k8s.io", "json"),
        (("v2.channel.k8s.io", "channel.k8s.io"), "v2.channel.k8s.io", "words"),
        (("channel.k8s.io",), "channel.k8s.io", "words"),
    ],
)
async def test_versions_of_commands(protocols: tuple[str, ...], agreed: str, end: str) -> None:
    """The best one that is offered; the newest says how a command ended as a Status, the others in words."""
    async with serving() as (harness, server):
        path = "exec?command=a&command=b&stdin=true&stdout=true"
        socket, answer = await dialed(server, path, *protocols)
        assert answer.startswith("HTTP/1.1 101 ")
        assert f"X-Stream-Protocol-Version: {agreed}\r\n" in answer
        async with asyncio.timeout(PATIENCE_S), multiplexed(socket, is_client=True) as streams:
            kinds = ("error", "stdin", "stdout")
            error, fed, output = [await streams.open({"streamType": kind}) for kind in kinds]
            await fed.write(b"hello")
            await fed.end()
            assert await all_of(output) == b"a bhello"
            said = await all_of(error)
        words = b"command terminated with non-zero exit code: exit status 2"
        assert (
            (json.loads(said)["details"]["causes"][0]["message"] == "2")
            if end == "json"
            else said == words
        )
        assert harness.server.limits.sessions.taken == 0


@pytest.mark.parametrize("way", ["spdy", "tunnel"])
async def test_a_port_of_a_simulated_pod(way: str) -> None:
    """Nothing listens there, and the stream for errors says so."""
    async with serving() as (_, server), asyncio.timeout(PATIENCE_S):
        if way == "spdy":
            socket, _ = await dialed(server, "portforward", PORTS)
            async with multiplexed(socket, is_client=True) as streams:
                headers = {"port": "80", "requestID": "1"}
                error = await streams.open({"streamType": "error", **headers})
                data = await streams.open({"streamType": "data", **headers})
                assert await all_of(error) == b"nothing listens on port 80 of p"
                assert await all_of(data) == b""
                return
        async with (
            aiohttp.ClientSession(server.url) as client,
            client.ws_connect(
                f"{NS}/pods/p/portforward", protocols=(f"SPDY/3.1+{PORTS}",)
            ) as opened,
        ):
            writer = HeaderWriter()
            for number, kind in ((1, "error"), (3, "data")):
                block = writer.block({"streamType": kind, "port": "80"})
                for byte in encoded(SynStream(number, block)):  # a message is any piece
                    await opened.send_bytes(bytes((byte,)))
            said = b""
            while b"nothing listens on port 80 of p" not in said:
                said += await opened.receive_bytes()


@pytest.mark.parametrize(
    "headers",
    [
        {"streamType": "data", "port": "0", "requestID": "1"},
        {"streamType": "data", "port": "65536", "requestID": "1"},
        {"streamType": "data", "port": "x", "requestID": "1"},
        {"streamType": "data", "requestID": "1"},
        {"streamType": "other", "port": "80", "requestID": "1"},
        {"port": "80"},
    ],
    ids=str,
)
async def test_streams_that_mean_nothing_are_reset(headers: dict[str, str]) -> None:
    """One by one; the connection goes on."""
    async with serving() as (_, server), asyncio.timeout(PATIENCE_S):
        socket, _ = await dialed(server, "portforward", PORTS)
        async with multiplexed(socket, is_client=True) as streams:
            stream = await streams.open(headers)
            with pytest.raises(ConnectionError):
                await stream.read()
            good = {"port": "80", "requestID": "2"}
            error = await streams.open({"streamType": "error", **good})
            await streams.open({"streamType": "data", **good})
            assert await all_of(error) == b"nothing listens on port 80 of p"


def bomb() -> bytes:
    """A few kilobytes of headers that would be many megabytes."""
    compressing = zlib.compressobj(zdict=DICTIONARY)
    whole = struct.pack(">II", 1, 1) + b"a" + struct.pack(">I", 2**24) + bytes(2**24)
    return encoded(SynStream(1, compressing.compress(whole) + compressing.flush(zlib.Z_SYNC_FLUSH)))


HOSTILE = {
    "not a frame": b"GET / HTTP/1.1\r\n\r\n" * 20,
    "a bomb": bomb(),
    "data without a stream": struct.pack(">II", 0, 5) + b"hello",
    "half a frame, and gone": encoded(Data(1, bytes(1000)))[:500],
    "an endless frame": struct.pack(">II", 1, 2**24 - 1),
    "thousands of pings": encoded(Ping(1)) * 50_000,
    "data of nobody": encoded(Data(77, bytes(1000))) * 500,
    "nothing": b"",
}


@pytest.mark.parametrize("path", ["portforward", "exec?command=a&stdin=true&stdout=true"])
@pytest.mark.parametrize("sent", HOSTILE.values(), ids=HOSTILE)
async def test_hostile_clients_leave_nothing_behind(sent: bytes, path: str) -> None:
    """Neither a session nor a task: each is ended, by the server or by its leaving."""
    async with serving() as (harness, server), asyncio.timeout(PATIENCE_S):
        before = {task.get_name() for task in asyncio.all_tasks()}
        protocol = PORTS if path == "portforward" else "v4.channel.k8s.io"
        socket, _ = await dialed(server, path, protocol)
        await socket.send(sent)
        await socket.close(0)
        while harness.server.limits.sessions.taken or len(server.connections):
            await asyncio.sleep(0.01)
        while lingering := [task for task in asyncio.all_tasks() if task.get_name() not in before]:
            await asyncio.wait(lingering)


pieces = st.one_of(
    st.binary(max_size=60), st.sampled_from([encoded(Ping(1)), encoded(Data(1, b"x", True))])
)


@settings(deadline=None, max_examples=20)
@given(st.lists(pieces, max_size=6))
def test_any_bytes_end_in_an_orderly_way(sent: list[bytes]) -> None:
    """Whatever a client sends."""

    async def talk() -> None:
        async with serving() as (harness, server), asyncio.timeout(PATIENCE_S):
            socket, _ = await dialed(server, "portforward", PORTS)
            try:
                for piece in sent:
                    await socket.send(piece)
            except ConnectionError:
                pass
            await socket.close(0)
            while harness.server.limits.sessions.taken:
                await asyncio.sleep(0.01)

    asyncio.run(talk())
