"""Drivers that run in the process of a node."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

import pytest

from drayman.apiserver.instance import Folder, Options, start
from drayman.cli.node_agent import find_drivers, joined, running_node
from drayman.node.agent.running import AgentOptions, AtEnd
from drayman.plugins import calling, registry
from drayman.plugins.calling import Connection
from drayman.plugins.model import PluginInfo


async def _introduce_slowly(connection: Connection) -> PluginInfo:
    await asyncio.sleep(0.5)
    return await calling.introduce(connection)


async def test_a_node_that_runs_knows_its_drivers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody who has waited for it is told that a driver is not registered."""
    monkeypatch.setattr(registry, "introduce", _introduce_slowly)
    with tempfile.TemporaryDirectory(prefix="own") as name:  # the paths of sockets must not be long
        root = Path(name)
        folder = Folder(root / "cluster")
        instance = await start(Options(folder=folder, durable=False))
        try:
            options = AgentOptions("n", root / "n", "127.0.0.1", at_end=AtEnd.REMOVE)
            drivers = find_drivers(["gpu.example.com", "dra.cpu"], "n")
            async with running_node(joined(folder, options), options, drivers) as agent:
                with pytest.raises(StopIteration):  # there is nothing to wait for
                    agent.has_registered([driver.name for driver in drivers]).send(None)
        finally:
            await instance.stop()
