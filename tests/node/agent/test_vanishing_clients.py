"""Clients that are killed, or whose machine is gone, leave no tracebacks in the log of a node."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import shutil
import socket
import ssl
import struct
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from drayman.apiserver.instance.folder import Folder
from drayman.apiserver.security.kubelets import KubeletTrust
from drayman.cluster.resources import JsonObject
from node.agent.test_forwarding import WAYS, forwarded
from node.agent.test_serving import served
from node.agent.world import World, container, running, world
from patience import PATIENCE_S

CHATTERS = "while :; do echo chatter; sleep 0.02; done"
UPGRADE = "Connection: Upgrade\r\n"
WEBSOCKET = (
    f"{UPGRADE}Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: "
)
SPDY = f"{UPGRADE}Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: "
HALF = "GET /containerLogs/default/p/main?fol"
COMMAND = (
    "/exec/default/p/main?output=1&input=1&command=sh&command=-c&command=while+:;do+echo+a;done"
)
REQUESTS = {
    "logs": "GET /containerLogs/default/p/main?follow=true HTTP/1.1\r\n",
    "logs that say no more": "GET /containerLogs/default/p/quiet?follow=true HTTP/1.1\r\n",
    "exec by WebSocket": f"GET {COMMAND} HTTP/1.1\r\n{WEBSOCKET}v5.channel.k8s.io\r\n",
    "exec by SPDY": f"POST {COMMAND} HTTP/1.1\r\n{SPDY}v4.channel.k8s.io\r\n",
    "attach by WebSocket": "GET /attach/default/p/main?output=1&input=1 HTTP/1.1\r\n"
    f"{WEBSOCKET}v5.channel.k8s.io\r\n",
    "ports by WebSocket": f"GET /portForward/default/p?port=PORT HTTP/1.1\r\n{WEBSOCKET}v4.channel.k8s.io\r\n",
    "ports by SPDY": f"POST /portForward/default/p HTTP/1.1\r\n{SPDY}portforward.k8s.io\r\n",
    "half a request": HALF,
}
SPDY_ONLY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false"}


class Clock:
    def now(self) -> datetime:
        return datetime.now(UTC)


def trusted(here: World) -> ssl.SSLContext:
    """How the API server shows itself to nodes."""
    return KubeletTrust(Folder(here.cluster.kubeconfig.parent).certificates, Clock()).context()


def asks_and_vanishes(port: int, tls: ssl.SSLContext, request: str) -> bytes:
    """The beginning of the answer. The connection is not closed, but reset."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as below:
        below.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with tls.wrap_socket(below, server_hostname="127.0.0.1") as client:
            client.sendall(request.encode())
            if request == HALF:
                return b""
            client.sendall(b"Host: node\r\n\r\n")
            return client.recv(1000)


def under_way() -> set[asyncio.Task[Any]]:
    """What somebody works on; connections that wait for a request are nothing of that sort."""
    found = asyncio.all_tasks() - {asyncio.current_task()}
    return {each for each in found if "RequestHandler.start" not in repr(each)}


async def has_settled(before: set[asyncio.Task[Any]]) -> None:
    """Returns when nothing is under way that was not before."""
    async with asyncio.timeout(PATIENCE_S):
        while under_way() - before:
            await asyncio.sleep(0.02)
    gc.collect()  # what nobody has asked about is told then


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged, with tracebacks; not what befell heartbeats meanwhile, which a slow machine may miss."""
    shown = logging.Formatter()
    about = [each for each in caplog.records if not each.name.endswith(".registering")]
    return [shown.format(each) for each in about if each.levelno > logging.DEBUG]


@asynccontextmanager
async def two_containers(here: World) -> AsyncIterator[None]:
    """One that goes on writing, and one that does not."""
    quiet = container("echo chatter; exec sleep 1009", "quiet")
    async with running(here, container(CHATTERS), quiet):
        await here.until("p", lambda pod: all(map(has_started, pod["status"]["containerStatuses"])))
        yield


def has_started(status: JsonObject) -> bool:
    return bool(status.get("started"))


@asynccontextmanager
async def hushed() -> AsyncIterator[int]:
    """A port at which somebody listens and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
async def test_a_client_whose_connection_is_reset(
    request_: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is left of it, not even a line."""
    async with (
        world() as here,
        served(here) as agent,
        hushed() as port,
        two_containers(here),
    ):
        text = request_.replace("PORT", str(port))
        before = under_way()
        tls = trusted(here)
        caplog.clear()
        answer = await asyncio.to_thread(asks_and_vanishes, agent.port, tls, text)
        assert answer.startswith((b"HTTP/1.1 101 ", b"HTTP/1.1 200 ")) or text == HALF
        await has_settled(before)
        assert lines(caplog) == []


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
@pytest.mark.parametrize(
    "words",
    [
        ("logs", "-f", "p", "-c", "main"),
        ("logs", "-f", "p", "-c", "quiet"),
        ("exec", "-i", "p", "-c", "main", "--", "sh", "-c", CHATTERS),
        ("attach", "-i", "p", "-c", "main"),
    ],
    ids=["logs", "quiet logs", "exec", "attach"],
)
@pytest.mark.parametrize("env", [{}, SPDY_ONLY], ids=["by WebSocket", "by SPDY"])
async def test_a_kubectl_that_is_killed(
    words: tuple[str, ...], env: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """Neither its node nor the API server has more to say of it than a line."""
    async with world() as here, served(here), two_containers(here):
        before = under_way()
        caplog.clear()
        process = await asyncio.create_subprocess_exec(
            *("kubectl", "--kubeconfig", str(here.cluster.kubeconfig), *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **env},
        )
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            assert await process.stdout.readline() == b"chatter\n"
        process.kill()
        await process.wait()
        await has_settled(before)
        assert len(lines(caplog)) <= 1
        assert "Traceback" not in "".join(lines(caplog))


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
@pytest.mark.parametrize("env", WAYS.values(), ids=WAYS)
async def test_a_port_forward_that_is_killed(
    env: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """While somebody uses it."""
    async with (
        world() as here,
        served(here),
        hushed() as port,
        two_containers(here),
    ):
        before = under_way()
        caplog.clear()
        async with forwarded(here, port, env) as (near, process):
            with socket.create_connection(("127.0.0.1", near)) as client:
                client.sendall(b"hello")
                process.kill()
                await process.wait()
        await has_settled(before)
        assert len(lines(caplog)) <= 1
        assert "Traceback" not in "".join(lines(caplog))
