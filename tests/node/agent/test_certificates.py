"""A node that asks for its certificate."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

from cluster.certificates import Authority
from drayman.cluster.recording import EventRecorder
from drayman.cluster.resources import SIGNING_REQUESTS
from drayman.node.agent.api.answering import AgentApi
from drayman.node.agent.api.server import NodeServer, ServerOptions
from node.simulated.world import connected
from patience import PATIENCE_S


async def announce() -> None:
    """Nobody wants to know."""


async def test_a_node_that_ends_while_it_asks_leaves_nothing_under_way(tmp_path: Path) -> None:
    """Nobody has approved its request."""
    options = ServerOptions("n", "127.0.0.1", 0, tmp_path, Authority().pem(), approval_s=PATIENCE_S)
    async with connected() as client, asyncio.timeout(PATIENCE_S):
        recorder = EventRecorder(client, "test")
        server = NodeServer(client, recorder, options, cast(AgentApi, None), announce)
        before = asyncio.all_tasks()
        running = asyncio.create_task(server.run())
        while not (await client.list_all(SIGNING_REQUESTS)).items:
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait((running,))
        assert asyncio.all_tasks() == before
