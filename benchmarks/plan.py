"""What it takes to plan many pods on a large cluster, as a user has it: the whole command, reading the cluster included.

    plan.py [--nodes N] [--pods N]

Two clusters of N nodes with 8 GPUs each: one with nothing in use, and one that is nearly full, with some thirty thousand pods and claims to
be read. Each is asked over HTTP, from a server in a process of its own, and as a snapshot. CPU time counts, of the command and of the
server meanwhile: on a machine of its own the command takes less than both together. One JSON line per figure; the exit status is 1 if
a bar is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from drayman.api import codec
from drayman.apiserver.instance import Folder, Options, start
from drayman.apiserver.served.encoding import stored_form
from drayman.cluster.embedded.model import Key, Put
from drayman.placement.world import Objects, World
from drayman.simulate.snapshot import snapshot
from explain import build
from measure import report

BAR_S = 5.0
_TAKEN = 1_900_000_000.0
_BATCH = 1_000

_MANIFEST = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: gpus}}
spec: {{spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu, count: {count}}}}}]}}}}}}
---
apiVersion: batch/v1
kind: Job
metadata: {{name: sweep}}
spec:
  parallelism: {pods}
  completions: {pods}
  template:
    spec:
      restartPolicy: Never
      resourceClaims: [{{name: gpus, resourceClaimTemplateName: gpus}}]
      containers:
      - {{name: main, image: "example.com/image:1", resources: {{claims: [{{name: gpus}}], requests: {{cpu: "1"}}}}}}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5_000)
    parser.add_argument("--pods", type=int, default=1_000)
    parser.add_argument("--serve", metavar="FOLDER", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve(Path(given.serve)))
        return 0
    met = True
    full = build(given.nodes)
    empty = Objects(nodes=full.nodes, slices=full.slices, classes=full.classes)
    for name, objects, count in (("empty", empty, 2), ("nearly full", full, 1)):
        with tempfile.TemporaryDirectory() as folder:
            met &= measure(
                Path(folder), name, objects, _MANIFEST.format(pods=given.pods, count=count)
            )
    return 0 if met else 1


def measure(folder: Path, name: str, objects: Objects, manifest: str) -> bool:
    """One cluster, both ways."""
    saved, job = folder / "cluster.yaml", folder / "job.yaml"
    job.write_text(manifest)
    with saved.open("wb") as out:
        for text in snapshot(World(objects, _TAKEN)):
            out.write(b"---\n%b\n" % text)
    met = plan(name, objects, job, ["--snapshot", str(saved)], "snapshot", None)
    server = subprocess.Popen(
        [sys.executable, __file__, "--serve", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert server.stdout is not None
        kubeconfig = server.stdout.readline().decode().strip()
        return plan(name, objects, job, ["--kubeconfig", kubeconfig], "http", server.pid) and met
    finally:
        server.terminate()
        server.wait()


def plan(
    name: str, objects: Objects, job: Path, where: list[str], way: str, server: int | None
) -> bool:
    """One run of the command."""
    before, beside = resource.getrusage(resource.RUSAGE_CHILDREN), _cpu_of(server)
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "drayman", "plan", "-f", str(job), *where],
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    total = command + _cpu_of(server) - beside
    met = total <= BAR_S and done.returncode in (0, 1)
    report(
        bench="plan",
        cluster=name,
        read_from=way,
        nodes=len(objects.nodes),
        pods_there=len(objects.pods),
        answer=(done.stdout or done.stderr).splitlines()[0],
        command_s=command,
        with_server_s=total,
        wall_s=wall,
        bar_s=BAR_S,
        met=met,
    )
    return met


def _cpu_of(process: int | None) -> float:
    """The seconds of CPU that a process has used."""
    if process is None:
        return 0.0
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def serve(folder: Path) -> None:
    """An API server with the objects of a snapshot, until it is ended. Says where its kubeconfig is."""
    instance = await start(
        Options(folder=Folder(folder / "data"), durable=False, control_plane=None)
    )
    puts = []
    for line in (folder / "cluster.yaml").read_bytes().splitlines():
        if line.startswith(b"{"):
            value: dict[str, Any] = codec.parse_json(line)
            group, _, version = value["apiVersion"].rpartition("/")
            kind = instance.server.core.resources.find_kind(group, version, value["kind"])
            if kind is not None:
                metadata = value["metadata"]
                metadata.setdefault("uid", metadata["name"])
                key = Key(kind.storage_name, metadata.get("namespace", ""), metadata["name"])
                puts.append(Put(key, stored_form(value, kind.hub_kind), expected=0))
    for begun in range(0, len(puts), _BATCH):
        await instance.store.write(puts[begun : begun + _BATCH])
    print(instance.kubeconfig, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    sys.exit(main())
