"""A node whose processes are killed at any moment: no device stays prepared after its pod is gone, and nothing runs on."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import NODES, PODS, JsonObject
from drayman.node.cgroups.finding import mounts_of
from node.agent.world import DRIVER, NAMESPACE, NODE, World, container, marked, world
from patience import PATIENCE_S
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
    """Pods are deleted, agents and shims are killed, in any order; the last agent clears up."""
    chance = random.Random(18)
    async with world() as here:
        agent = start(here)
        try:
            # Starting an agent takes a second, so there are few rounds unless many are asked for.
            for number in range(rounds(10) if rounds(100) > 100 else 4):
                name, mark = f"p{number}", secrets.token_hex(8)
                pod = await here.pod(
                    name,
                    container(
                        SCRIPT,
                        env=[{"name": "MARK", "value": mark}],
                        resources={"claims": [{"name": "gpu"}]},
                    ),
                    resourceClaims=[{"name": "gpu", "resourceClaimName": f"c{number}"}],
                )
                uid = pod["metadata"]["uid"]
                await here.claim(f"c{number}", f"gpu-{number % 8}", uid)
                await _some_moment(here, pod, chance)
                force = DeleteOptions(grace_period_seconds=0 if chance.random() < 0.5 else None)
                steps = ["delete", "kill the agent", *(["kill the shim"] * chance.randrange(2))]
                chance.shuffle(steps)
                for step in steps:
                    match step:
                        case "delete":
                            await here.client.delete(PODS, name, NAMESPACE, options=force)
                        case "kill the agent":
                            agent.kill()
                            agent.wait()
                        case _:
                            _kill_shim(here, uid)
                agent = start(here)
                await here.gone(name)
                await _cleared(here, uid, mark)
                await here.reserve(f"c{number}")
                await here.cluster.remove_claim(f"c{number}")
        finally:
            agent.kill()
            agent.wait()


async def _some_moment(here: World, pod: JsonObject, chance: random.Random) -> None:
    """At once, when the node has begun with the pod, when it has begun with the container, or when that runs."""
    name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
    match chance.randrange(4):
        case 1:
            await here.until(name, lambda pod: pod["status"].get("startTime"))
        case 2:
            await here.phase(name, "Running")
        case 3:
            async with asyncio.timeout(PATIENCE_S):
                while not _shim_file(here, uid).exists():
                    await asyncio.sleep(0)
        case _:
            await here.client.list_all(NODES)


def _shim_file(here: World, uid: str) -> Path:
    return here.options.pods_dir / uid / "containers/main/0/shim"


def _kill_shim(here: World, uid: str) -> None:
    """If there is one yet, or still."""
    with suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int(_shim_file(here, uid).read_text()), signal.SIGKILL)


async def _cleared(here: World, uid: str, mark: str) -> None:
    """Returns when neither a pod, nor a claim, nor a device, nor a process, nor a control group is left."""
    root: Path = here.options.root
    async with asyncio.timeout(PATIENCE_S):
        while True:
            claims = root / "claims.json"
            is_held = claims.exists() and b'"uid"' in claims.read_bytes()
            folders = (here.options.pods_dir, here.options.cdi_dir)
            left = [each for folder in folders if folder.exists() for each in folder.iterdir()]
            processes = marked(here.options.pods_dir, mark)
            if not is_held and not left and not processes and not _control_groups(uid):
                return
            await asyncio.sleep(0.05)


def _control_groups(uid: str) -> list[Path]:
    """Of a pod, in all hierarchies."""
    tops = [Path(mount.point) for mount in mounts_of(Path("/proc/self/mountinfo").read_text())]
    # Not by rglob, which fails where others remove theirs meanwhile.
    walked = (Path(place) / uid for top in tops for place, _, _ in os.walk(top))
    return [group for group in walked if group.parent.name == "drayman" and group.exists()]
