"""Ports of pods on a real node, forwarded by kubectl and by the official Python client."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from drayman.testing.ports import kept_port
from node.agent.test_serving import served
from node.agent.world import NAMESPACE, World, container, running, world
from patience import PATIENCE_S

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
WAITS = "while :; do sleep 1; done"
WAYS = {
    "by SPDY in a WebSocket": {},
    "by SPDY": {"KUBECTL_PORT_FORWARD_WEBSOCKETS": "false"},
}


@asynccontextmanager
async def shouting() -> AsyncIterator[int]:
    """A port at which everything is said back in capitals once the other end has said everything; the first byte can ask for more."""
    talks: set[asyncio.Task[None]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.current_task())  # type: ignore[arg-type]
        if (first := await reader.readexactly(1)) == b"!":  # at once, and it hangs up
            writer.write(b"no")
        else:
            writer.write((first + await reader.read()).upper())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in talks:
            task.cancel()


@asynccontextmanager
async def forwarded(here: World, port: int, env: dict[str, str]) -> AsyncIterator[tuple[int, Any]]:
    """The near port, and kubectl."""
    words = ("port-forward", "pod/p", f":{port}")
    process = await asyncio.create_subprocess_exec(
        *("kubectl", "--kubeconfig", str(here.cluster.kubeconfig), *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **env},
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            said = (await process.stdout.readline()).decode()
        assert "Forwarding from 127.0.0.1:" in said, (
            said + (await process.communicate())[1].decode()
        )
        yield int(said.split("127.0.0.1:")[1].split()[0]), process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def said_back(port: int, data: bytes) -> bytes:
    """What comes back after everything was sent."""
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        writer.write_eof()
        found = await reader.read()
        writer.close()
        return found


@pytest.mark.parametrize("env", WAYS.values(), ids=WAYS)
async def test_connections_to_a_pod(env: dict[str, str]) -> None:
    """Several at once and one after the other, long ones in both directions, and each half ends on its own."""
    async with (
        world() as here,
        served(here),
        shouting() as port,
        running(here, container(WAITS)),
        forwarded(here, port, env) as (near, process),
    ):
        assert await said_back(near, b"hello") == b"HELLO"
        sent = [bytes([97 + index]) * (index * 300_000 + 1) for index in range(6)]
        got = await asyncio.gather(*(said_back(near, data) for data in sent))
        if got != [data.upper() for data in sent]:
            process.kill()
            pytest.fail(f"{[len(each) for each in got]} {(await process.communicate())[1]!r}")
        assert await said_back(near, b"!") == b"no"
        assert await said_back(near, b"again") == b"AGAIN"


@pytest.mark.parametrize("env", WAYS.values(), ids=WAYS)
async def test_a_port_on_which_nobody_listens(env: dict[str, str]) -> None:
    """The connection ends, and kubectl says why."""
    with kept_port() as port:
        async with (
            world() as here,
            served(here),
            running(here, container(WAITS)),
            forwarded(here, port, env) as (near, process),
        ):
            assert await said_back(near, b"") == b""
            async with asyncio.timeout(PATIENCE_S):
                said = (await process.stderr.readuntil(b"Connection refused")).decode()
    assert f"error forwarding port {port} to pod p" in said


ASKING = """
import json, sys
from kubernetes import client, config
from kubernetes.stream import portforward

path, namespace, port, nobody = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
core = client.CoreV1Api(config.new_client_from_config(path))


def opened(port):
    found = portforward(
        core.connect_get_namespaced_pod_portforward, "p", namespace, ports=str(port)
    )
    near = found.socket(port)
    near.setblocking(True)
    near.settimeout(60)
    return found, near


_, near = opened(port)
near.sendall(b"!")
said = near.recv(100).decode()
refused, far = opened(nobody)
assert far.recv(10) == b""
print(json.dumps([said, refused.error(nobody)]))
"""
"""In a process of its own, because the client leaves its sockets open."""


async def test_the_python_client() -> None:
    """By channels of a WebSocket; a failure is said on the channel for errors."""
    with kept_port() as nobody:
        async with (
            world() as here,
            served(here),
            shouting() as port,
            running(here, container(WAITS)),
        ):
            words = [here.cluster.kubeconfig, NAMESPACE, port, nobody]
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", ASKING, *map(str, words), stdout=subprocess.PIPE
            )
            output, _ = await process.communicate()
    said, error = json.loads(output)
    assert said == "no"
    assert f"error forwarding port {nobody} to pod p" in error
