"""Every example that a command's help shows works as it is written there."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner

from cli.explain.manifests import deployment, job, pod, pod_spec, template
from cli.small_trace import write_trace
from drayman.api.custom_groups import KaiQueue
from drayman.api.kueue import KUEUE_VERSION, ClusterQueue, LocalQueue, ResourceFlavor
from drayman.api.kueue_workload import Workload
from drayman.cli.main import COMMANDS, cli
from drayman.cluster import HttpClient
from drayman.cluster.resources import (
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    typed,
)

CLAIM: Final = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: claim
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.nvidia.com
"""
SLICE: Final = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "slice"},
    "spec": {
        "driver": "gpu.nvidia.com",
        "nodeName": "node",
        "pool": {"name": "node", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}}}],
    },
}
PROBLEM: Final = json.dumps({"name": "p", "node": {"metadata": {"name": "n"}}, "claims": []})
DEVICE: Final = {"name": "d", "driver": "gpu.nvidia.com", "device": {"name": "gpu-0"}}
SLICES: Final = {"apiVersion": "v1", "kind": "List", "items": [SLICE]}
QUOTA: Final = {
    "coveredResources": ["cpu"],
    "flavors": [{"name": "f", "resources": [{"name": "cpu", "nominalQuota": "1"}]}],
}
TEMPLATE: Final = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "2"}}}],
    }
}
QUEUES: Final[list[dict[str, Any]]] = [
    {"apiVersion": KUEUE_VERSION, "kind": "ResourceFlavor", "metadata": {"name": "f"}},
    {
        "apiVersion": KUEUE_VERSION,
        "kind": "ClusterQueue",
        "metadata": {"name": "team-a"},
        "spec": {"namespaceSelector": {}, "resourceGroups": [QUOTA]},
    },
    {
        "apiVersion": KUEUE_VERSION,
        "kind": "LocalQueue",
        "metadata": {"name": "user-queue", "namespace": "team-a"},
        "spec": {"clusterQueue": "team-a"},
    },
    {
        "apiVersion": KUEUE_VERSION,
        "kind": "Workload",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {
            "queueName": "user-queue",
            "podSets": [{"name": "main", "count": 1, "template": TEMPLATE}],
        },
    },
]
QUEUE_KINDS: Final = {
    each.__name__: each for each in (ResourceFlavor, ClusterQueue, LocalQueue, Workload)
}
ABOUT_A_RUNNING_CLUSTER: Final = ("down", "status", "kubeconfig")
ABOUT_SIMULATED_NODES: Final = ("node", "device", "map", "top", "migrate")
"""Their examples follow from one another."""
ABOUT_WHAT_WAITS: Final = ("explain", "defrag", "queues", "queue")
ABOUT_PLANS: Final = ("plan", "capacity", "snapshot", "quota")


def examples(command: str) -> list[str]:
    """The command lines under "Examples:" in the help of a command, continuation lines joined."""
    arguments = [command, "--help"] if command else ["--help"]
    text = CliRunner().invoke(cli, arguments, prog_name="drayman").output
    block = text.split("Examples:\n")[1].split("\n\n")[0]
    lines = re.sub(r"\\\n\s*", " ", block).splitlines()
    return [line.strip().split("   ")[0].strip() for line in lines]


def executable(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The files that the examples name, and the programs: ours, and stand-ins for those of others."""
    (tmp_path / "claim.yaml").write_text(CLAIM)
    (tmp_path / "more.json").write_text(json.dumps(SLICES))
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "claim.yml").write_text(CLAIM)
    (tmp_path / "slices.yaml").write_text(json.dumps(SLICE))
    (tmp_path / "prices.yaml").write_text("instanceTypes: {example: 1}")
    write_trace(tmp_path / "traces")
    (tmp_path / "slices.json").write_text(json.dumps(SLICES))
    (tmp_path / "devices.json").write_text(json.dumps([DEVICE]))
    (tmp_path / "vectors.jsonl").write_text('{"id": "v", "expression": "true"}\n')
    (tmp_path / "new.yaml").write_text(
        "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
    )
    (tmp_path / "quota.jsonl").write_text('{"name": "empty", "steps": [{"settle": "now"}]}')
    (tmp_path / "queues.jsonl").write_text('{"name": "empty"}')
    (tmp_path / "fuzz.jsonl").write_text(PROBLEM)
    (tmp_path / "fuzz.jsonl.gz").write_bytes(gzip.compress(PROBLEM.encode()))
    (tmp_path / "table.json.gz").write_bytes(gzip.compress(f"[{PROBLEM}]".encode()))
    (tmp_path / ".kube").mkdir()
    programs = tmp_path / "bin"
    programs.mkdir()
    start = [sys.executable, "-c", "from drayman.cli.main import main; main()"]
    executable(programs / "drayman", f'exec {shlex.join(start)} "$@"')
    plugin = [sys.executable, "-c", "from drayman.cli.main import plugin; plugin()"]
    executable(programs / "kubectl-drayman", f'exec {shlex.join(plugin)} "$@"')
    executable(programs / "helm", "cat claim.yaml")
    executable(programs / "kubectl", "cat slices.yaml")
    return tmp_path


def start(line: str, folder: Path) -> subprocess.Popen[str]:
    """Run an example in a shell, with the programs of the folder and a state directory there."""
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    script = f"set -o pipefail; {line.replace('COMMAND', 'validate')}"
    return subprocess.Popen(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def works(line: str, folder: Path) -> None:
    """The example exits 0, one that serves for ever once it is asked to, and says nothing of errors."""
    with start(line, folder) as process:
        if line.startswith("drayman up") and "--detach" not in line:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("Kubernetes API")
            process.terminate()
        if line.startswith("drayman node run"):
            assert process.stdout is not None
            assert process.stdout.readline().startswith("node/")
            process.terminate()
        output, errors = process.communicate()
    assert process.returncode == 0, (line, output, errors)
    assert "error:" not in errors
    assert all(len(shown) <= 80 for shown in errors.splitlines())


def on_this_machine(line: str, folder: Path) -> str:
    """The example with a port that is surely free, and a directory that surely can be written."""
    if line.startswith("drayman up") and "--port" not in line:
        line = f"{line} --port 0"
    if "--driver" in line:
        line = (
            f"{line} --ephemeral"  # sockets of drivers need a shorter path than that of the folder
        )
    return line.replace("/srv/drayman", str(folder / "srv"))


def serve_beside_a_cluster(found: list[str], folder: Path) -> None:
    """Each example finds the cluster, says so, and ends when it is asked to."""
    settings = folder / ".kube" / "config"
    works(f"drayman up --detach --port 0 --no-scheduler --kubeconfig {settings}", folder)
    try:
        for line in found:
            if "|" in line:  # what kubectl makes of it, a test of the scheduler's rights shows
                works(line.partition("|")[0], folder)
                continue
            with start(line.replace("prod.yaml", str(settings)), folder) as process:
                assert process.stderr is not None
                assert process.stderr.readline().startswith("scheduling pods of")
                process.terminate()
                process.communicate()
            assert process.returncode == 0, line
    finally:
        works("drayman down", folder)


async def submit_what_is_explained(kubeconfig: Path) -> None:
    """The pod, the claim, the job, the deployment and the group of the examples."""
    claim = {**template("gpus"), "kind": "ResourceClaim"}
    claim["spec"] = claim["spec"]["spec"]
    kinds = {
        "Pod": PODS,
        "Job": JOBS,
        "Deployment": DEPLOYMENTS,
        "ResourceClaim": RESOURCE_CLAIMS,
        "ResourceClaimTemplate": RESOURCE_CLAIM_TEMPLATES,
    }
    async with HttpClient.from_environment(kubeconfig) as client:
        await client.create(NAMESPACES.as_values(), {"metadata": {"name": "team-a"}})
        await client.create(kinds["ResourceClaim"].as_values(), claim, "team-a")
        web = deployment("web", pod_spec("one"), replicas=2)
        for body in (template("one"), pod("trainer", "one"), job("sweep", "one", pods=2), web):
            await client.create(kinds[body["kind"]].as_values(), body, "default")
        spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        ring = {"metadata": {"name": "ring"}, "spec": spec}
        await client.create(POD_GROUPS.as_values(), ring, "default")
        for body in QUEUES:
            resource = typed(QUEUE_KINDS[body["kind"]])
            namespace = body["metadata"].get("namespace")
            await client.create(resource.as_values(), body, namespace)
        of_kai = {"metadata": {"name": "team-a"}, "spec": {"resources": {"gpu": {"quota": 1}}}}
        await client.create(typed(KaiQueue).as_values(), of_kai)


def explain_what_is_there(found: list[str], folder: Path) -> None:
    """Each example gives an answer, whatever it is; one that goes on does so until it is interrupted."""
    settings = folder / ".kube" / "config"
    works(f"drayman up --detach --port 0 --profile example=1 --kubeconfig {settings}", folder)
    try:
        asyncio.run(submit_what_is_explained(settings))
        works("drayman snapshot > cluster.yaml", folder)
        for line in found:
            with start(line.replace("kubectl drayman", "kubectl-drayman"), folder) as process:
                assert process.stdout is not None
                assert process.stdout.readline()
                if "--watch" in line:
                    process.send_signal(signal.SIGINT)
                _, errors = process.communicate()
            assert process.returncode in ((130,) if "--watch" in line else (0, 1)), (line, errors)
            assert errors.strip() == ""
    finally:
        works("drayman down", folder)


def plan_on_a_cluster(found: list[str], folder: Path) -> None:
    """Each example gives an answer, on the cluster or on what was saved of it."""
    settings = folder / ".kube" / "config"
    manifests = "\n---\n".join(map(json.dumps, (template("one"), job("sweep", "one", pods=2))))
    (folder / "job.yaml").write_text(manifests)
    (folder / "app").mkdir()
    (folder / "app" / "job.yaml").write_text(manifests)
    (folder / "claim.yaml").write_text(CLAIM.replace("gpu.nvidia.com", "gpu.example.com"))
    executable(folder / "bin" / "helm", "cat job.yaml")
    works(f"drayman up --detach --port 0 --profile example=1 --kubeconfig {settings}", folder)
    try:
        works("drayman snapshot > cluster.yaml", folder)
        for line in found:
            # Where nothing else runs, the context of an example is that of the file.
            with start(
                line.replace("--context staging", f"--kubeconfig {settings}"), folder
            ) as process:
                output, errors = process.communicate()
            assert process.returncode in (0, 1), (line, errors)
            assert errors.strip() == ""
            assert output or ">" in line
    finally:
        works("drayman down", folder)


@pytest.mark.parametrize("command", ["", *COMMANDS], ids=["drayman", *COMMANDS])
def test_examples_of_the_help_work(command: str, folder: Path) -> None:
    """Each does what it is there for; those about a running cluster find one."""
    found = examples(command)
    assert found
    if command in ABOUT_SIMULATED_NODES:
        work_in_turn(found, folder)
        return
    if command == "logs":
        read_logs(found, folder)
        return
    if command == "scheduler":
        serve_beside_a_cluster(found, folder)
        return
    if command in ABOUT_PLANS:
        plan_on_a_cluster(found, folder)
        return
    if command in ABOUT_WHAT_WAITS:
        explain_what_is_there(found, folder)
        return
    for line in found:
        line = on_this_machine(line, folder)
        if command not in ABOUT_A_RUNNING_CLUSTER:
            works(line, folder)
            continue
        option = f"--data-dir {folder / 'srv'}" if str(folder / "srv") in line else ""
        works(f"drayman up --detach --port 0 {option}", folder)
        try:
            works(line, folder)
        finally:
            start(f"drayman down {option}", folder).communicate()


def read_logs(lines: list[str], folder: Path) -> None:
    """The examples on a cluster; one that follows goes on until it is interrupted, with what is logged meanwhile."""
    works("drayman up --detach --port 0 --profile example=1", folder)
    try:
        for line in lines:
            if " -f" not in line:
                works(line, folder)
                continue
            with start(
                line.replace("--tail 0", "--tail 1").replace("scheduler", ""), folder
            ) as process:
                assert process.stdout is not None
                assert process.stdout.readline().endswith(" is ready\n")
                process.send_signal(signal.SIGINT)
                process.communicate()
            assert process.returncode == 130
    finally:
        start("drayman down", folder).communicate()


def work_in_turn(lines: list[str], folder: Path) -> None:
    """The examples on one cluster of simulated nodes, one after the other."""
    works("drayman up --detach --port 0 --profile example=2", folder)
    try:
        for line in lines:
            works(line, folder)
    finally:
        start("drayman down", folder).communicate()
