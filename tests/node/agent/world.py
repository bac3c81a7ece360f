"""A cluster without scheduler and controllers, a real node, and a driver on it. Pods are bound by whoever makes them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
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
from drayman.node.agent.running import AgentOptions, NodeAgent
from drayman.testing import TestCluster

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
            asyncio.timeout(60),
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
        async with asyncio.timeout(60):
            while True:
                try:
                    await self.client.get(_PODS, name, NAMESPACE)
                except NotFoundError:
                    return
                await asyncio.sleep(0.02)

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
        yield World(cluster, options)


def container(script: str, name: str = "main", **more: Any) -> JsonObject:
    return {"name": name, "image": "host", "command": ["sh", "-c", script], **more}


def logs(agent: NodeAgent, pod: JsonObject, name: str = "main") -> list[str]:
    """What a container wrote."""
    attempt = agent.workers[pod["metadata"]["uid"]].containers.attempt(name)
    assert attempt is not None
    return [line.split(" ", 3)[3] for line in attempt.log.read_text().splitlines()]
