"""A real node: what preparing a claim adds to the start of a pod, and how long a hundred pods take to start together.

    node.py [--pods 100] [--rounds 20]

API server, driver and agent share this process, and containers are processes, each with a small one that looks after it. Time runs from
the binding of a pod until a watch says that it runs. Pods without and with a claim take turns, each alone on the node; what a claim adds
is the difference of the medians, and stands beside what the disk needs to make one small file durable. One JSON line per figure. The exit
status is 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from drayman.cluster import WatchOptions, merge_patch
from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import PODS, RESOURCE_CLAIMS, JsonObject
from drayman.cluster.watching import Change
from drayman.drivers.example.drivers import ExampleGpuDriver
from drayman.drivers.kit.options import PluginOptions
from drayman.drivers.kit.plugin import Plugin
from drayman.node.agent.running import AgentOptions, AtEnd, NodeAgent
from drayman.testing import TestCluster
from measure import percentile, report

CLAIM_BAR_MS = 20.0
TOGETHER_BAR_S = 15.0
NODE = "node-1"
NAMESPACE = "default"
_PODS = PODS.as_values()
_CLAIMS = RESOURCE_CLAIMS.as_values()


def pod(name: str, claim: str = "") -> JsonObject:
    container: dict[str, Any] = {"name": "main", "image": "host", "command": ["sleep", "600"]}
    spec: dict[str, Any] = {"restartPolicy": "Never", "containers": [container]}
    if claim:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
        container["resources"] = {"claims": [{"name": "gpu"}]}
    return {"metadata": {"name": name}, "spec": spec}


async def reserve(cluster: TestCluster, claim: str, made: JsonObject) -> None:
    meta = made["metadata"]
    users = [{"resource": "pods", "name": meta["name"], "uid": meta["uid"]}]
    patch = merge_patch({"status": {"reservedFor": users}})
    await cluster.client.patch(_CLAIMS, claim, patch, NAMESPACE, subresource="status")


async def running(cluster: TestCluster, names: Sequence[str]) -> None:
    """Returns when all of these pods run."""
    left = set(names)
    async with cluster.client.watch(_PODS, NAMESPACE, options=WatchOptions()) as changes:
        async for change in changes:
            if isinstance(change, Change) and change.object["status"].get("phase") == "Running":
                left.discard(change.object["metadata"]["name"])
                if not left:
                    return


async def started_ms(cluster: TestCluster, name: str, device: str = "") -> float:
    """From the moment at which a pod is bound until it runs; with a claim for a device, if one is given."""
    claim = f"of-{name}" if device else ""
    if device:
        await cluster.allocate(claim, ExampleGpuDriver.name, NODE, {"gpu": device})
    made = await cluster.client.create(_PODS, pod(name, claim), NAMESPACE)
    if device:
        await reserve(cluster, claim, made)
    begun = time.perf_counter()
    await cluster.client.bind(name, NAMESPACE, NODE, uid=made["metadata"]["uid"])
    await running(cluster, [name])
    took = (time.perf_counter() - begun) * 1e3
    now = DeleteOptions(grace_period_seconds=0)
    await cluster.client.delete(PODS, name, NAMESPACE, options=now)
    return took


async def bound(cluster: TestCluster, name: str) -> None:
    made = await cluster.client.create(_PODS, pod(name), NAMESPACE)
    await cluster.client.bind(name, NAMESPACE, NODE, uid=made["metadata"]["uid"])


def durable_ms(folder: Path, files: int = 50) -> float:
    """What the disk takes to make one small file durable."""
    times = []
    for number in range(files):
        begun = time.perf_counter()
        descriptor = os.open(folder / f"file-{number}", os.O_CREAT | os.O_WRONLY)
        os.write(descriptor, b"x" * 1000)
        os.fsync(descriptor)
        os.close(descriptor)
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


async def measure(folder: Path, pods: int, rounds: int) -> bool:
    async with TestCluster(folder) as cluster:
        options = AgentOptions(NODE, folder / "n", registry_interval_s=0.02, at_end=AtEnd.REMOVE)
        agent = NodeAgent(cluster.client, options)
        await agent.register()
        plugin = PluginOptions(
            plugin_dir=options.plugins_dir / ExampleGpuDriver.name,
            registry_dir=options.registry_dir,
            cdi_dir=options.cdi_dir,
        )
        async with Plugin(ExampleGpuDriver(NODE, gpus=rounds), cluster.client, plugin), agent:
            await started_ms(cluster, "first")
            plain, claiming = [], []
            for number in range(rounds):
                plain.append(await started_ms(cluster, f"plain-{number}"))
                claiming.append(await started_ms(cluster, f"claiming-{number}", f"gpu-{number}"))
            added = statistics.median(claiming) - statistics.median(plain)
            report(
                figure="a claim",
                added_ms=added,
                without_ms=statistics.median(plain),
                with_ms=statistics.median(claiming),
                p90_ms=percentile(claiming, 0.9),
                durable_file_ms=durable_ms(folder),
                bar_ms=CLAIM_BAR_MS,
            )
            names = [f"together-{number}" for number in range(pods)]
            begun = time.perf_counter()
            await asyncio.gather(*(bound(cluster, name) for name in names))
            await running(cluster, names)
            together = time.perf_counter() - begun
            report(figure="together", pods=pods, seconds=together, bar_s=TOGETHER_BAR_S)
    return added < CLAIM_BAR_MS and together < TOGETHER_BAR_S


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pods", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="node") as name:
        sys.exit(not asyncio.run(measure(Path(name), options.pods, options.rounds)))


if __name__ == "__main__":
    main()
