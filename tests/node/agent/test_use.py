"""What a real node and its containers use, as `kubectl top` shows it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import time
from pathlib import Path

import msgspec
import pytest

from drayman.cluster.resources import JsonObject
from drayman.node.agent.api.measuring import by_session, measure, of_machine
from drayman.node.agent.processes.attempts import Attempt, Launch
from drayman.node.cgroups.layout import Group
from drayman.node.cgroups.use import cpu_seconds, working_set
from drayman.node.streams.use import ContainerKey
from node.agent.test_serving import kubectl, served
from node.agent.test_vanishing_clients import has_started
from node.agent.world import NODE, container, world

BUSY = "while :; do :; done"
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")


def both_run(pod: JsonObject) -> bool:
    return sum(map(has_started, pod["status"].get("containerStatuses", ()))) == 2


@needs_kubectl
async def test_kubectl_top() -> None:
    """Nodes and pods are shown with what they use, pods also by container, by namespace and by label."""
    async with world() as here, served(here):
        await here.pod("p", container(BUSY), container("sleep 1007", "idle"))
        await here.pod("ended", container("true"))
        await here.until("p", both_run)
        await here.phase("ended", "Succeeded")
        code, output, errors = await kubectl(here, "top", "nodes")
        assert (code, errors) == (0, "")
        assert output.splitlines()[1].split()[0] == NODE
        code, output, _ = await kubectl(here, "top", "pods", "-A", "--containers")
        rows = [line.split() for line in output.splitlines()[1:]]
        assert sorted(row[:3] for row in rows) == [
            ["default", "p", "idle"],
            ["default", "p", "main"],
        ]
        assert (await kubectl(here, "top", "pods", "-l", "no=such"))[1] == ""
        code, output, _ = await kubectl(here, "get", "pods.metrics.k8s.io", "p", "-o", "json")
        found = json.loads(output)
        assert found["kind"] == "PodMetrics"
        assert float(found["window"].rstrip("s")) > 0
        usage = {each["name"]: each["usage"] for each in found["containers"]}
        assert int(usage["main"]["cpu"].rstrip("n")) > int(usage["idle"]["cpu"].rstrip("n"))
        assert usage["idle"]["memory"].endswith("Ki")
        code, _, errors = await kubectl(
            here, "get", "--raw", "/apis/metrics.k8s.io/v1beta1/nodes/x"
        )
        assert 'nodes.metrics.k8s.io "x" not found' in errors


@needs_kubectl
async def test_nodes_that_say_nothing() -> None:
    """A node without an agent to ask is left out, and kubectl says that nothing is known."""
    async with world() as here, here.agent():
        code, _, errors = await kubectl(here, "top", "nodes")
        assert (code, errors) == (1, "error: metrics not available yet\n")


async def test_without_control_groups(tmp_path: Path) -> None:
    """What the processes of a container use is found from the processes."""
    attempt = Attempt(tmp_path / "0")
    attempt.start(
        Launch(argv=("sh", "-c", f"(exec sleep 1008) & {BUSY}"), env={"PATH": "/usr/bin:/bin"})
    )
    try:
        while attempt.pid is None or by_session().get(attempt.pid, (0, 0))[0] < 0.05:
            await asyncio.sleep(0.01)
        assert by_session()[attempt.pid].memory > 0
    finally:
        attempt.signal(signal.SIGKILL)
        await attempt.wait()


def test_a_container_whose_groups_are_being_removed(tmp_path: Path) -> None:
    """Whatever its files answer then, it is left out, and the others are measured."""
    attempts = {}
    for name in ("going", "there"):
        groups, folder = tmp_path / name, tmp_path / f"{name}-run"
        folder.mkdir()
        groups.mkdir()
        launch = Launch(argv=("x",), env={}, cgroups=(Group(str(groups), holds=True),))
        (folder / "start.json").write_bytes(msgspec.json.encode(launch))
        attempts[ContainerKey("ns", "p", name)] = Attempt(folder)
    (tmp_path / "going" / "cpuacct.usage").mkdir()
    for file, text in (
        ("cpuacct.usage", "7000000000"),
        ("memory.current", "9"),
        ("memory.stat", ""),
    ):
        (tmp_path / "there" / file).write_text(text)
    found = measure(attempts).containers
    assert {key.container: (use.cpu_s, use.memory) for key, use in found.items()} == {
        "there": (7.0, 9)
    }


def test_the_machine() -> None:
    """The machine has used no more CPU time than has passed on its CPUs, and less memory than it has."""
    found = of_machine()
    assert 0 < found.cpu_s <= time.clock_gettime(time.CLOCK_BOOTTIME) * (os.cpu_count() or 1) * 1.5
    assert 0 < found.memory < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    "files",
    [
        {
            "cpu.stat": "usage_usec 1500000\nuser_usec 1\n",
            "memory.current": "4096\n",
            "memory.stat": "anon 1\ninactive_file 1024\n",
        },
        {
            "cpu.stat": "nr_periods 0\n",
            "cpuacct.usage": "1500000000\n",
            "memory.usage_in_bytes": "4096\n",
            "memory.stat": "inactive_file 7\ntotal_inactive_file 1024\n",
        },
    ],
    ids=["version 2", "version 1"],
)
def test_what_groups_count(tmp_path: Path, files: dict[str, str]) -> None:
    """Both versions tell CPU time and memory; files that could be dropped are no use."""
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    groups = (Group(str(tmp_path.parent)), Group(str(tmp_path), holds=True))
    assert (cpu_seconds(groups), working_set(groups)) == (1.5, 3072)
    assert (cpu_seconds(()), working_set(())) == (None, None)
