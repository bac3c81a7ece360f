"""A node that is started before its cluster."""

from __future__ import annotations

import asyncio

import pytest

from cluster.fake_apiserver import Answer, Drop, FakeApiServer, status
from drayman.cli.node_agent import has_answered
from drayman.cluster.kube.connection import Connection
from patience import PATIENCE_S


async def said_to(fault: Drop | Answer, capsys: pytest.CaptureFixture[str]) -> tuple[bool, str]:
    """Whether a node takes what a server does for an answer, and what it says before it is stopped."""
    stop, said = asyncio.Event(), ""
    async with FakeApiServer().running() as server, asyncio.timeout(PATIENCE_S):
        server.inject(fault, times=1000)
        asking = asyncio.create_task(has_answered(Connection(server.url), "node-a", stop))
        while not said and not asking.done():
            await asyncio.sleep(0.01)
            said = capsys.readouterr().err
        stop.set()
        return await asking, said


@pytest.mark.parametrize(
    ("fault", "is_away"),
    [
        pytest.param(Drop(), True, id="it hangs up"),
        pytest.param(Answer(503, status(503, "ServiceUnavailable")), True, id="it is not ready"),
        pytest.param(Answer(403, status(403, "Forbidden")), False, id="it refuses"),
    ],
)
def test_a_cluster_that_gives_no_answer_is_waited_for(
    capsys: pytest.CaptureFixture[str], fault: Drop | Answer, is_away: bool
) -> None:
    """As long as it takes; what an answer means is found out by whoever needs one."""
    answered, said = asyncio.run(said_to(fault, capsys))
    assert (not answered, "waiting for the cluster" in said) == (is_away, is_away)
