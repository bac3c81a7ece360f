"""Logs and commands of a real node, asked for by kubectl."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from drayman.apiserver.instance.folder import Folder
from drayman.apiserver.instance.node_access import write_node_certificates
from drayman.node.agent.running import NodeAgent
from drayman.node.agent.serving import ServingCertificates
from node.agent.world import NODE, World, container, world


async def kubectl(here: World, *words: str, fed: str = "") -> tuple[int, str, str]:
    """Its exit status and what it said."""
    process = await asyncio.create_subprocess_exec(
        *("kubectl", "--kubeconfig", str(here.cluster.kubeconfig), *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    output, errors = await process.communicate(fed.encode())
    assert process.returncode is not None
    return process.returncode, output.decode(), errors.decode()


def served(here: World, address: str = "127.0.0.1") -> NodeAgent:
    """An agent that the API server can reach."""
    root: Path = here.options.root
    root.mkdir(parents=True, exist_ok=True)
    folder = Folder(here.cluster.kubeconfig.parent)
    write_node_certificates(folder, root, NODE, address, datetime.now(UTC))
    certificates = ServingCertificates(root / "tls.crt", root / "tls.key", root / "ca.crt")
    options = replace(here.options, address=address, certificates=certificates)
    return NodeAgent(here.client, options)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
async def test_logs_and_commands() -> None:
    """Logs can be followed to the end, commands have input, output and an exit code, and refusals are in words."""
    async with world() as here, served(here):
        await here.pod("p", container("echo up; while [ ! -e $DONE ]; do sleep 0.05; done; echo end",
                                      env=[{"name": "DONE", "value": str(here.options.root / "done")}]))  # fmt: skip
        await here.phase("p", "Running")
        assert await kubectl(here, "exec", "-i", "p", "--", "cat", fed="hello") == (0, "hello", "")
        code, output, _ = await kubectl(here, "exec", "p", "--", "sh", "-c", "echo $DONE; exit 4")
        assert (code, output.strip()) == (4, str(here.options.root / "done"))
        following = asyncio.create_task(kubectl(here, "logs", "-f", "p"))
        (here.options.root / "done").touch()
        assert await following == (0, "up\nend\n", "")
        await here.phase("p", "Succeeded")
        assert await kubectl(here, "logs", "p", "--tail=1") == (0, "end\n", "")
        code, _, errors = await kubectl(here, "logs", "p", "--previous")
        assert code == 1
        assert "previous terminated container" in errors
