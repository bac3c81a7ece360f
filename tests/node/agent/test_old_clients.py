"""Commands by SPDY, as kubectl before 1.31 runs them: on a real node, through the API server."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess

import pytest

from drayman.node.agent.processes.sessions import processes_of
from node.agent.test_serving import served
from node.agent.test_terminals import WAITS, screen
from node.agent.world import World, container, running, world
from patience import PATIENCE_S

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
SPDY = {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS": "false"}


async def kubectl(here: World, *words: str, fed: bytes = b"") -> tuple[int | None, bytes, bytes]:
    process = await asyncio.create_subprocess_exec(
        *("kubectl", "--kubeconfig", str(here.cluster.kubeconfig), *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **SPDY},
    )
    async with asyncio.timeout(PATIENCE_S):
        output, errors = await process.communicate(fed)
    return process.returncode, output, errors


async def test_commands_by_spdy() -> None:
    """Input to its end, both outputs, exit codes, and much of everything."""
    async with world() as here, served(here), running(here, container(WAITS)):
        assert await kubectl(here, "exec", "-i", "p", "--", "cat", fed=b"hello") == (
            0,
            b"hello",
            b"",
        )
        said = await kubectl(here, "exec", "p", "--", "sh", "-c", "echo a; echo b >&2; exit 4")
        assert said == (4, b"a\n", b"b\ncommand terminated with exit code 4\n")
        much = os.urandom(700_000)
        assert await kubectl(here, "exec", "-i", "p", "--", "cat", fed=much) == (0, much, b"")


async def test_a_terminal_by_spdy() -> None:
    """With its size, also when that changes."""
    async with (
        world() as here,
        served(here),
        running(here, container(WAITS)),
        screen(here, "exec", "-it", "p", "--", "sh", "-i", **SPDY) as shown,
    ):
        # The size comes a moment after the shell, as with a kubelet.
        shown.type(
            "until [ \"$(stty size)\" = '24 80' ]; do :; done; echo at $(tty) $(stty size)\n"
        )
        await shown.shows("at /dev/pts/")
        shown.resize(100, 30)
        shown.type("until [ \"$(stty size)\" = '30 100' ]; do :; done; echo now $(stty size)\n")
        await shown.shows("now 30 100")
        shown.type("exit 5\n")
        async with asyncio.timeout(PATIENCE_S):
            await shown.process.wait()
        assert shown.process.returncode == 5


@pytest.mark.parametrize("env", [SPDY, {}], ids=["by SPDY", "by WebSocket"])
async def test_a_client_that_vanishes_before_its_input_is_read(env: dict[str, str]) -> None:
    """The command does not read it, so that nobody reads the connection either; it ends all the same."""
    async with world() as here, served(here), running(here, container(WAITS)):
        words = ("exec", "-i", "p", "--", "sh", "-c", "echo $$; exec sleep 1000")
        with open("/dev/zero", "rb") as endless:
            process = await asyncio.create_subprocess_exec(
                *("kubectl", "--kubeconfig", str(here.cluster.kubeconfig), *words),
                stdin=endless,
                stdout=subprocess.PIPE,
                env={**os.environ, **env},
            )
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            session = int(await process.stdout.readline())
        assert await processes_of(session) == [session]
        process.kill()
        await process.wait()
        async with asyncio.timeout(PATIENCE_S):
            while await processes_of(session):
                await asyncio.sleep(0.05)
