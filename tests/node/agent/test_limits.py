"""Limits of containers on a real node: what the kernel enforces, what it counts, and what is said where it cannot."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from drayman.cluster import DeleteOptions
from drayman.cluster.resources import PODS, JsonObject
from drayman.driver_configs.cpu import format_cpus
from drayman.drivers.cpu.driver import INDIVIDUAL, CpuDriver
from drayman.drivers.kit.options import PluginOptions
from drayman.drivers.kit.plugin import Plugin
from drayman.node.agent.limiting import cpus_of
from drayman.node.agent.processes.attempts import Attempt, may_mount
from drayman.node.agent.processes.executing import run_inside
from drayman.node.agent.running import NodeAgent
from node.agent.world import NAMESPACE, NODE, World, alive, container, logs, world
from node.cgroups.real import needs_limits

FOREVER = "while :; do sleep 0.05; done"
HOG = f"exec {sys.executable} -c 'b = bytearray(400 << 20); print(len(b))'"


@needs_limits
async def test_too_much_memory() -> None:
    """A container that takes more memory than its limit is killed, and its status says why."""
    async with world() as here, here.agent():
        await here.pod("p", container(HOG, resources={"limits": {"memory": "48Mi"}}))
        failed = await here.phase("p", "Failed")
        ended = failed["status"]["containerStatuses"][0]["state"]["terminated"]
        assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


@needs_limits
async def test_containers_are_in_their_groups() -> None:
    """From its first moment a container is in groups that say its limits, and so are commands that are run in it. They end with it."""
    resources = {"limits": {"cpu": "500m", "memory": "64Mi"}}
    async with world() as here, here.agent() as agent:
        pod = await here.pod(
            "p", container(f"cat /proc/self/cgroup; {FOREVER}", resources=resources)
        )
        await here.phase("p", "Running")
        hierarchies = len(Path("/proc/self/cgroup").read_text().splitlines())
        # Its process is known before it is in its groups.
        while len(said := logs(agent, pod)) < hierarchies:
            await asyncio.sleep(0.02)
        attempt = attempt_of(agent, pod)
        leaves = [Path(group.path) for group in attempt.launch().cgroups if group.holds]
        assert leaves
        assert {leaf.name for leaf in leaves} == {"0"}
        for leaf in leaves:
            assert str(attempt.pid) in (leaf / "cgroup.procs").read_text().split()
        values = {
            value_of(leaves, "cpu.cfs_quota_us"),
            value_of(leaves, "cpu.max").partition(" ")[0],
        }
        assert "50000" in values
        memory = value_of(leaves, "memory.limit_in_bytes") or value_of(leaves, "memory.max")
        assert memory == str(64 << 20)
        inside = await run_inside(attempt, ("cat", "/proc/self/cgroup"))
        assert inside.text.splitlines() == said
        assert any(f"/drayman/{pod['metadata']['uid']}/main/0" in line for line in said)
        await here.client.delete(
            PODS, "p", NAMESPACE, options=DeleteOptions(grace_period_seconds=0)
        )
        while agent.workers:
            await asyncio.sleep(0.02)
        assert not [leaf for leaf in leaves if leaf.parent.parent.exists()]


@needs_limits
async def test_what_has_escaped_ends_too() -> None:
    """A daemon that has left its session is killed with its container, even after the process that looked after both was killed."""
    script = f"setsid sh -c '(setsid sleep 1006 & echo $!)'; {FOREVER}"
    async with world() as here, here.agent() as agent:
        pod = await here.pod("p", container(script))
        await here.phase("p", "Running")
        while not (said := logs(agent, pod)):
            await asyncio.sleep(0.02)
        attempt = attempt_of(agent, pod)
        os.kill(int((attempt.folder / "shim").read_text()), signal.SIGKILL)
        failed = await here.phase("p", "Failed")
        ended = failed["status"]["containerStatuses"][0]["state"]["terminated"]
        assert ended["reason"] == "ContainerStatusUnknown"
        assert not alive(int(said[0]))


async def test_cpus_of_a_claim() -> None:
    """A container with a claim for CPUs runs on those, and so do commands that are run in it."""
    cpu = max(os.sched_getaffinity(0))
    async with world() as here, here.agent() as agent, cpu_plugin(here):
        script = f"grep Cpus_allowed_list /proc/self/status; {FOREVER}"
        pod = await here.pod(
            "p",
            container(script, resources={"claims": [{"name": "cpus"}]}),
            resourceClaims=[{"name": "cpus", "resourceClaimName": "c"}],
        )
        device = next(
            each
            for each in CpuDriver(NODE, INDIVIDUAL).discover().devices
            if each.attributes["cpuID"].int_ == cpu
        )
        await here.cluster.allocate("c", CpuDriver.name, NODE, {"cpu": device.name})
        await here.reserve("c", pod["metadata"]["uid"])
        await here.phase("p", "Running")
        while not (said := logs(agent, pod)):
            await asyncio.sleep(0.02)
        assert said == [f"Cpus_allowed_list:\t{cpu}"]
        command = ("grep", "Cpus_allowed_list", "/proc/self/status")
        assert (await run_inside(attempt_of(agent, pod), command)).text.strip() == said[0]


def test_cpus_without_control_groups() -> None:
    """Where there are no groups, a container is asked to stay on its CPUs; several claims add up."""
    cpus = cpus_of({"DRA_CPUSET_a": "0-1", "DRA_CPUSET_b": "4", "OTHER": "7"})
    assert format_cpus(cpus) == "0-1,4"


HIDDEN = (
    "no hierarchy of control groups is mounted",
    "the control group of this process cannot be seen from here",
)
"""What is said of version 1, and of version 2."""


@pytest.mark.skipif(
    os.geteuid() != 0 or not may_mount(), reason="only root can hide the hierarchies"
)
async def test_where_nothing_can_be_enforced() -> None:
    """Containers run without limits, and a pod that has some gets an event that says so."""
    async with world() as here:
        options = ("--name", NODE, "--root-dir", str(here.options.root))
        cluster = ("--kubeconfig", str(here.cluster.kubeconfig))
        command = (sys.executable, "-m", "drayman", "node", "run", *options, *cluster)
        hidden = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
        agent = subprocess.Popen(
            ("unshare", "-m", "sh", "-c", hidden, "sh", *command),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            await here.pod("p", container("true", resources={"limits": {"memory": "64Mi"}}))
            await here.phase("p", "Succeeded")
        finally:
            agent.terminate()
            _, errors = await asyncio.to_thread(agent.communicate)
        (event,) = await here.events("LimitsNotEnforced")
        why = event["note"].removeprefix("container main: limits of memory are not enforced: ")
        assert why in HIDDEN
        assert errors.decode().count(why) == 1


def attempt_of(agent: NodeAgent, pod: JsonObject) -> Attempt:
    found = agent.workers[pod["metadata"]["uid"]].containers.attempt("main")
    assert found is not None
    return found


def value_of(leaves: list[Path], name: str) -> str:
    return next(
        ((leaf / name).read_text().strip() for leaf in leaves if (leaf / name).exists()), ""
    )


def cpu_plugin(here: World) -> Plugin:
    options = PluginOptions(
        plugin_dir=here.options.plugins_dir / CpuDriver.name,
        registry_dir=here.options.registry_dir,
        cdi_dir=here.options.cdi_dir,
    )
    return Plugin(CpuDriver(NODE, INDIVIDUAL), here.client, options)
