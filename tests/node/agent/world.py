"""A cluster without scheduler and controllers, a real node, and a driver on it. Pods are bound by whoever makes them."""

from __future__ import annotations

import asyncio
import signal
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drayman.cluster import ListOptions, WatchOptions, merge_patch
from drayman.cluster.client import Client
from drayman.cluster.errors import NotFoundError
from drayman.cluster.resources import EVENTS, PODS, RESOURCE_CLAIMS, JsonObject
from drayman.cluster.watching import Change
from drayman.drivers.example.drivers import ExampleGpuDriver
from drayman.drivers.kit.options import PluginOptions
from drayman.drivers.kit.plugin import Plugin
from drayman.node.agent.processes.attempts import Attempt, Launch, attempts_of
from drayman.node.agent.running import AgentOptions, NodeAgent
from drayman.node.agent.volumes.empty_dirs import unmount_all
from drayman.testing import TestCluster
from patience import PATIENCE_S

NODE = "node-1"
DRIVER = ExampleGpuDriver.name
NAMESPACE = "default"
_PODS = PODS.as_values()
_CLAIMS = RESOURCE_CLAIMS.as_values()


@dataclass(frozen=True)
class World:
    cluster: TestCluster
    options: AgentOptions

    @property
    def client(self) -> Client:
        return self.cluster.client

    @property
    def shared(self) -> Path:
        """A folder of the machine that tests and containers both see."""
        return self.options.root.parent

    def agent(self) -> NodeAgent:
        return NodeAgent(self.client, self.options)

    def plugin(self) -> Plugin:
        options = PluginOptions(
            plugin_dir=self.options.plugins_dir / DRIVER,
            registry_dir=self.options.registry_dir,
            cdi_dir=self.options.cdi_dir,
        )
        return Plugin(ExampleGpuDriver(NODE), self.client, options)

    async def pod(self, name: str, *containers: JsonObject, **spec: Any) -> JsonObject:
        """A pod that is bound to the node."""
        value: JsonObject = {
            "metadata": {"name": name},
            "spec": {
                "nodeName": NODE,
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 5,
                "containers": list(containers),
                **spec,
            },
        }
        return await self.client.create(_PODS, value, NAMESPACE)

    async def claim(self, name: str, device: str, *pods: str) -> str:
        """A claim for a device, reserved for pods of these uids; returns its uid."""
        made = await self.cluster.allocate(name, DRIVER, NODE, {"gpu": device})
        await self.reserve(name, *pods)
        return made.metadata.uid

    async def reserve(self, name: str, *pods: str) -> None:
        users = [{"resource": "pods", "name": uid, "uid": uid} for uid in pods]
        patch = merge_patch({"status": {"reservedFor": users}})
        await self.client.patch(_CLAIMS, name, patch, NAMESPACE, subresource="status")

    async def until(self, name: str, holds: Callable[[JsonObject], object]) -> JsonObject:
        """The pod as soon as it is as wanted."""
        options = WatchOptions(field_selector=f"metadata.name={name}")
        async with (
            asyncio.timeout(PATIENCE_S),
            self.client.watch(_PODS, NAMESPACE, options=options) as changes,
        ):
            async for change in changes:
                if isinstance(change, Change) and holds(change.object):
                    return change.object
        raise AssertionError("the watch has ended")

    async def phase(self, name: str, phase: str) -> JsonObject:
        return await self.until(name, lambda pod: pod["status"].get("phase") == phase)

    async def gone(self, name: str) -> None:
        """Returns when a pod does not exist any more."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    await self.client.get(_PODS, name, NAMESPACE)
                except NotFoundError:
                    return
                await asyncio.sleep(0.02)

    async def notes(self, reason: str) -> set[str]:
        """What events of a reason say, when there are some."""
        async with asyncio.timeout(PATIENCE_S):
            while not (found := await self.events(reason)):
                await asyncio.sleep(0.02)
        return {event["note"] for event in found}

    async def events(self, reason: str) -> list[JsonObject]:
        found = (await self.client.list_all(EVENTS, NAMESPACE, options=ListOptions())).items
        return [event for event in found if event["reason"] == reason]


@asynccontextmanager
async def world() -> AsyncIterator[World]:
    """In a folder with a short path, because there are sockets below."""
    with tempfile.TemporaryDirectory(prefix="node") as name:
        async with _world(Path(name)) as here:
            yield here


@asynccontextmanager
async def _world(folder: Path) -> AsyncIterator[World]:
    async with TestCluster(folder) as cluster:
        options = AgentOptions(NODE, folder / "n", registry_interval_s=0.02)
        try:
            yield World(cluster, options)
        finally:
            await _end_containers(options)


async def _end_containers(options: AgentOptions) -> None:
    """Containers and volumes in memory outlive their agent, and would outlive the test."""
    for folder in options.pods_dir.glob("*/containers/*"):
        for attempt in attempts_of(folder):
            with suppress(
                FileNotFoundError
            ):  # an agent that has just ended may have been about to remove it
                while attempt.settle() is None:
                    attempt.signal(signal.SIGKILL)
                    await asyncio.sleep(0.01)
    for folder in options.pods_dir.glob("*/volumes"):
        unmount_all(folder)


def container(script: str, name: str = "main", **more: Any) -> JsonObject:
    return {"name": name, "image": "host", "command": ["sh", "-c", script], **more}


def logs(agent: NodeAgent, pod: JsonObject, name: str = "main") -> list[str]:
    """What a container wrote so far."""
    attempt = agent.workers[pod["metadata"]["uid"]].containers.attempt(name)
    assert attempt is not None
    text = attempt.log.read_text() if attempt.log.exists() else ""
    return [line.split(" ", 3)[3] for line in text.splitlines()]


async def is_up(here: World, pod: JsonObject) -> JsonObject:
    """The pod when its program has said so: that comes after it counts as running, and it takes signals from then on."""
    running = await here.phase(pod["metadata"]["name"], "Running")
    (attempt,) = attempts_of(here.options.pods_dir / pod["metadata"]["uid"] / "containers/main")
    async with asyncio.timeout(PATIENCE_S):
        while not (attempt.log.exists() and " up\n" in attempt.log.read_text()):
            await asyncio.sleep(0.02)
    return running


def alive(pid: int) -> bool:
    """Whether a process runs: one that has ended and waits to be reaped does not."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


@asynccontextmanager
async def attempted(folder: Path, launch: Launch) -> AsyncIterator[Attempt]:
    """A start of a container, of which nothing is left when the context is."""
    attempt = Attempt(folder)
    attempt.start(launch)
    try:
        yield attempt
    finally:
        waiting = asyncio.create_task(attempt.wait())
        while not waiting.done():
            attempt.signal(signal.SIGKILL)  # its process may not have been there yet
            await asyncio.wait((waiting,), timeout=0.05)


def marked(folder: Path, mark: str) -> list[int]:
    """Processes that look after a container below a folder, or belong to one: those have the mark in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        looks_after = any(word.startswith(bytes(folder)) for word in words)
        if looks_after or f"MARK={mark}".encode() in variables:
            found.append(int(process.name))
    return found


@asynccontextmanager
async def running(here: World, *containers: JsonObject, **spec: Any) -> AsyncIterator[JsonObject]:
    """A pod `p` with containers that run until the context is left."""
    await here.pod("p", *containers, **spec)
    try:
        yield await here.phase("p", "Running")
    finally:
        await here.client.delete(_PODS, "p", NAMESPACE)
        await here.gone("p")
