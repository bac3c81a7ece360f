"""kubectl against a server with the controllers of workloads: what people watch, undo and drain with."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from controllers.workloads.stage import template
from drayman.api.core import Pod
from drayman.apiserver.instance import Folder, Options, start
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cluster import Client, InProcessClient
from drayman.cluster.errors import ConflictError, NotFoundError
from drayman.cluster.informer import Notice
from drayman.cluster.informers import Informers
from drayman.cluster.options import DeleteOptions
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import NODES, PODS, JsonObject
from drayman.controllers.workloads import CONTROLLERS
from patience import PATIENCE_S

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@dataclass(frozen=True)
class Cluster:
    client: Client
    kubeconfig: Path
    home: Path

    async def kubectl(self, *arguments: str, stdin: JsonObject | None = None) -> str:
        """What kubectl says. Fails the test where kubectl fails."""
        process = await asyncio.create_subprocess_exec(
            "kubectl",
            *arguments,
            env=os.environ | {"KUBECONFIG": str(self.kubeconfig), "HOME": str(self.home)},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        given = b"" if stdin is None else json.dumps(stdin).encode()
        try:
            output, _ = await asyncio.wait_for(process.communicate(given), PATIENCE_S)
        except TimeoutError:
            process.kill()
            raise AssertionError(f"kubectl {' '.join(arguments)} did not end") from None
        assert process.returncode == 0, output.decode()
        return output.decode()


class Kubelet:
    """Binds every pod to a node, runs it, and ends it when it is deleted."""

    def __init__(self, client: Client, informers: Informers) -> None:
        self._client = client
        self._news: asyncio.Queue[Pod] = asyncio.Queue()
        informers.informer(PODS).add_handler(self._heard)

    def _heard(self, notice: Notice[Pod]) -> None:
        if notice.type != "DELETED":
            self._news.put_nowait(notice.object)

    async def run(self) -> None:
        while True:
            pod = await self._news.get()
            # News may be old: another pod has the name by now, or this one is bound.
            with suppress(NotFoundError, ConflictError):
                await self._attend(pod)

    async def _attend(self, pod: Pod) -> None:
        name, namespace = pod.metadata.name, pod.metadata.namespace
        if pod.metadata.deletion_timestamp is not None:
            options = DeleteOptions(grace_period_seconds=0, uid=pod.metadata.uid)
            await self._client.delete(PODS, name, namespace, options=options)
        elif not pod.spec.node_name:
            await self._client.bind(name, namespace, "n1", uid=pod.metadata.uid)
        elif pod.status.phase == "Pending":
            ready = {
                "type": "Ready",
                "status": "True",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
            done = pod.metadata.labels.get("ends") == "at-once"
            status = {"phase": "Succeeded" if done else "Running", "conditions": [ready]}
            change = merge_patch({"metadata": {"uid": pod.metadata.uid}, "status": status})
            await self._client.patch(PODS, name, change, namespace, subresource="status")


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Cluster]:
    instance = await start(Options(folder=Folder(folder / "server"), durable=False))
    client = InProcessClient(ServerBackend(instance.server.core))
    informers = Informers(client)
    works = [Kubelet(client, informers), *(make(client, informers) for make in CONTROLLERS)]
    await informers.start()
    await informers.wait_synced()
    tasks = [asyncio.create_task(work.run()) for work in works]
    try:
        await client.create(NODES.as_values(), {"metadata": {"name": "n1"}})
        await client.patch(NODES, "n1", merge_patch({"spec": {"taints": None}}))
        (folder / "home").mkdir()
        yield Cluster(client, instance.kubeconfig, folder / "home")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        ended = [task for task in tasks if not task.cancelled()]
        assert not ended, f"{ended} ended by themselves"
        await informers.stop()
        await instance.stop()


def workload(api_version: str, kind: str, **spec: object) -> JsonObject:
    selector = {"matchLabels": {"app": "web"}}
    body = {"selector": selector, "template": template(app="web"), **spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web"}, "spec": body}


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
async def test_a_rollout_can_be_watched_and_undone(kind: str, tmp_path: Path) -> None:
    """rollout status ends, history has both revisions, undo brings the old image back."""
    more = {} if kind == "DaemonSet" else {"replicas": 2}
    target = f"{kind.lower()}/web"
    async with cluster(tmp_path) as here:
        await here.kubectl("apply", "-f", "-", stdin=workload("apps/v1", kind, **more))
        await here.kubectl("rollout", "status", target, "--timeout=150s")
        await here.kubectl("set", "image", target, "main=j")
        await here.kubectl("rollout", "status", target, "--timeout=150s")
        image = "jsonpath={.items[*].spec.containers[*].image}"
        assert set((await here.kubectl("get", "pods", "-o", image)).split()) == {"j"}
        history = await here.kubectl("rollout", "history", target)
        assert [line.split()[0] for line in history.splitlines() if line[:1].isdigit()] == [
            "1",
            "2",
        ]
        await here.kubectl("rollout", "undo", target)
        await here.kubectl("rollout", "status", target, "--timeout=150s")
        assert set((await here.kubectl("get", "pods", "-o", image)).split()) == {"i"}


async def test_drain_waits_for_the_budget(tmp_path: Path) -> None:
    """kubectl drain evicts every pod of a deployment, however small its budget, as replacements come up."""
    guard: JsonObject = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guard"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    async with cluster(tmp_path) as here:
        await here.kubectl("apply", "-f", "-", stdin=workload("apps/v1", "Deployment", replicas=2))
        await here.kubectl("apply", "-f", "-", stdin=guard)
        await here.kubectl("rollout", "status", "deployment/web", "--timeout=150s")
        jsonpath = "--for=jsonpath={.status.disruptionsAllowed}=1"
        await here.kubectl("wait", "pdb/guard", jsonpath, "--timeout=150s")
        before = await here.kubectl("get", "pods", "-o", "name")
        output = await here.kubectl("drain", "n1", "--timeout=150s")
        assert all(f"{name} evicted" in output for name in before.split())


async def test_a_job_can_be_waited_for(tmp_path: Path) -> None:
    """kubectl wait sees the job complete."""
    body = template(app="work", ends="at-once")
    body["spec"]["restartPolicy"] = "Never"
    job: JsonObject = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "work"},
        "spec": {"completions": 3, "parallelism": 2, "template": body},
    }
    async with cluster(tmp_path) as here:
        await here.kubectl("apply", "-f", "-", stdin=job)
        await here.kubectl("wait", "job/work", "--for=condition=Complete", "--timeout=150s")
        shown = await here.kubectl("get", "job", "work", "--no-headers")
        assert shown.split()[:3] == ["work", "Complete", "3/3"]
