"""Requests to a node that make no sense: the answer says why, and the log of the node has nothing to say."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import quote

import aiohttp
import pytest

from drayman.node.agent.running import NodeAgent
from drayman.node.streams.kubelet import Kubelet, Kubelets
from drayman.node.streams.model import ContainerName, NodeApiError, StreamOptions
from node.agent.test_serving import served
from node.agent.test_vanishing_clients import trusted
from node.agent.world import NAMESPACE, World, container, running, world
from node.streams.talking import Collected

OUTPUT = StreamOptions(stdout=True, stderr=True)
EARLY, LATE = "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"
NO_SUCH_YEAR = "the query makes no sense: sinceTime: {} is not in the years 1 to 9999 of UTC"
REFUSED = {
    f"containerLogs/default/p/main?sinceTime={quote(EARLY)}": NO_SUCH_YEAR.format(EARLY),
    f"containerLogs/default/p/main?sinceTime={quote(LATE)}": NO_SUCH_YEAR.format(LATE),
    "containerLogs/default/p/main?sinceSeconds=-99999999999999": (
        "the query makes no sense: sinceSeconds: -99999999999999 is less than 0"
    ),
    "exec/default/p/main?output=1": "you must specify a command: the query has no `command`",
}


@asynccontextmanager
async def asked(here: World, agent: NodeAgent) -> AsyncIterator[Kubelet]:
    """The node, as the API server asks it."""
    context = trusted(here)
    kubelets = Kubelets(lambda: context)
    try:
        yield kubelets.at("127.0.0.1", agent.port)
    finally:
        await kubelets.close()


async def test_a_request_that_makes_no_sense(caplog: pytest.LogCaptureFixture) -> None:
    """It is refused before anything begins, and the parameter is named."""
    async with world() as here, served(here) as agent, running(here, container("exec sleep 600")):
        caplog.clear()
        context = trusted(here)
        async with aiohttp.ClientSession(f"https://127.0.0.1:{agent.port}") as client:
            for path, why in REFUSED.items():
                async with client.get(f"/{path}", ssl=context) as answer:
                    assert (answer.status, await answer.text()) == (400, why)
        assert not [each for each in caplog.records if each.levelno > logging.INFO]


async def test_a_command_that_makes_no_sense(caplog: pytest.LogCaptureFixture) -> None:
    """A session that has begun ends with the reason, too."""
    streams = Collected()
    async with (
        world() as here,
        served(here) as agent,
        running(here, container("exec sleep 600")) as pod,
        asked(here, agent) as node,
    ):
        caplog.clear()
        name = ContainerName(NAMESPACE, "p", pod["metadata"]["uid"], "main")
        with pytest.raises(NodeApiError) as refused:
            await node.execute(name, ("echo", "a\0b"), OUTPUT, streams)
        assert (refused.value.code, str(refused.value)) == (
            400,
            "command[1] has a NUL character, which no program can be given",
        )
        for options in (OUTPUT, replace(OUTPUT, tty=True)):
            assert await node.execute(name, ("",), options, streams) == 127
        assert not [each for each in caplog.records if each.levelno > logging.INFO]
    why = 'exec: "": executable file not found in $PATH'
    assert (streams.errors.decode(), streams.output.decode()) == (f"{why}\n", f"{why}\r\n")
