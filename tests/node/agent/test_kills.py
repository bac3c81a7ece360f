"""A node whose agent is killed at any moment: no device stays prepared after its pod is gone, and nothing runs on."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path

from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import NODES, PODS
from node.agent.world import DRIVER, NAMESPACE, NODE, World, container, world
from rounds import rounds

SCRIPT = "echo up; while :; do sleep 0.05; done"


def start(here: World) -> subprocess.Popen[bytes]:
    """The command as it is typed."""
    options = ("--name", NODE, "--root-dir", str(here.options.root), "--driver", DRIVER)
    cluster = ("--kubeconfig", str(here.cluster.kubeconfig))
    return subprocess.Popen(
        (sys.executable, "-m", "drayman", "node", "run", *options, *cluster),
        stdout=subprocess.DEVNULL,
    )


async def test_nothing_stays_behind() -> None:
    """Pods are deleted and agents killed in any order; the last agent clears up."""
    chance = random.Random(18)
    async with world() as here:
        agent = start(here)
        try:
            # Starting an agent takes a second, so there are few rounds unless many are asked for.
            for number in range(rounds(10) if rounds(100) > 100 else 3):
                name = f"p{number}"
                pod = await here.pod(
                    name,
                    container(SCRIPT, resources={"claims": [{"name": "gpu"}]}),
                    resourceClaims=[{"name": "gpu", "resourceClaimName": f"c{number}"}],
                )
                await here.claim(f"c{number}", f"gpu-{number % 8}", pod["metadata"]["uid"])
                await _some_moment(here, name, chance)
                force = DeleteOptions(grace_period_seconds=0 if chance.random() < 0.5 else None)
                steps = [0, 1]
                chance.shuffle(steps)
                for step in steps:
                    if step:
                        await here.client.delete(PODS, name, NAMESPACE, options=force)
                    else:
                        agent.kill()
                        agent.wait()
                agent = start(here)
                await here.gone(name)
                await _cleared(here)
                await here.reserve(f"c{number}")
                await here.cluster.remove_claim(f"c{number}")
        finally:
            agent.kill()
            agent.wait()


async def _some_moment(here: World, name: str, chance: random.Random) -> None:
    """At once, when the node has begun with the pod, or when it runs."""
    match chance.randrange(3):
        case 1:
            await here.until(name, lambda pod: pod["status"].get("startTime"))
        case 2:
            await here.phase(name, "Running")
        case _:
            await here.client.list_all(NODES)


async def _cleared(here: World) -> None:
    """Returns when neither a pod, nor a claim, nor a device is left."""
    root: Path = here.options.root
    async with asyncio.timeout(60):
        while True:
            claims = root / "claims.json"
            is_held = claims.exists() and b'"uid"' in claims.read_bytes()
            folders = (here.options.pods_dir, here.options.cdi_dir)
            left = [each for folder in folders if folder.exists() for each in folder.iterdir()]
            if not is_held and not left and not _processes(root):
                return
            await asyncio.sleep(0.05)


def _processes(root: Path) -> list[Path]:
    """Processes that look after containers of the node."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(word.startswith(bytes(root / "pods")) for word in words):
            found.append(process)
    return found
