"""Pods with GPUs on a node of this machine, in a cluster of their own that is gone afterwards."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from drayman.apiserver.instance import Folder, Options, start
from drayman.cli.node_agent import joined, running_node
from drayman.cluster import HttpClient, ListOptions
from drayman.cluster.errors import NotFoundError
from drayman.cluster.resources import (
    DEVICE_CLASSES,
    EVENTS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from drayman.drivers.kit import Driver
from drayman.node.agent.running import AgentOptions, AtEnd

NODE = "this-machine"
NAMESPACE = "default"
HEAD = {"apiVersion": "resource.nvidia.com/v1beta1"}
COMMAND_S = 30.0
START_S = 90.0
END_S = 60.0
LOOK_S = 0.2
PASSING = ("FailedScheduling", "NotActedOn", "DeviceHooksSkipped")
"""Warnings after which a pod may well run."""
_PODS, _CLAIMS = PODS.as_values(), RESOURCE_CLAIMS.as_values()


class StepError(Exception):
    """A step that did not come out, and why."""


@dataclass(frozen=True)
class GpuCluster:
    """A cluster whose only node is this machine."""

    client: HttpClient
    kubeconfig: Path
    pods: Path
    """Where the node keeps what is about pods."""
    driver: str

    async def published(self) -> None:
        """Returns when the driver has published its devices."""
        while not (await self.client.list_all(RESOURCE_SLICES, options=ListOptions())).items:
            await asyncio.sleep(LOOK_S)

    async def claim(self, name: str, kind: str, config: Any = None) -> None:
        """A claim for one device of a type: gpu or mig."""
        device_class = {
            "metadata": {"name": f"{kind}.nvidia.com"},
            "spec": {"selectors": [{"cel": {"expression": self._is(kind)}}]},
        }
        try:
            await self.client.get(DEVICE_CLASSES, f"{kind}.nvidia.com")
        except NotFoundError:
            await self.client.create(DEVICE_CLASSES.as_values(), device_class)
        request = {"name": "gpu", "exactly": {"deviceClassName": f"{kind}.nvidia.com"}}
        opaque = {"opaque": {"driver": self.driver, "parameters": config}}
        devices = {"requests": [request]} | ({"config": [opaque]} if config else {})
        value: dict[str, Any] = {"metadata": {"name": name}, "spec": {"devices": devices}}
        await self.client.create(_CLAIMS, value, NAMESPACE)

    def _is(self, kind: str) -> str:
        return f"device.driver == '{self.driver}' && device.attributes['{self.driver}'].type == '{kind}'"

    async def pod(self, name: str, claim: str, command: Sequence[str]) -> None:
        """A pod that runs a program of the host with the devices of a claim, if one is named."""
        container: dict[str, Any] = {"name": "main", "image": "host", "command": list(command)}
        spec: dict[str, Any] = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        }
        if claim:
            container["resources"] = {"claims": [{"name": "gpu"}]}
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
        value: dict[str, Any] = {"metadata": {"name": name}, "spec": spec}
        await self.client.create(_PODS, value, NAMESPACE)

    async def reached(self, name: str, *phases: str) -> str:
        """The phase of a pod, once it is one of these. Raises StepError if something keeps it from starting."""
        end = monotonic() + START_S
        while True:
            pod: Any = await self.client.get(_PODS, name, NAMESPACE)
            phase = str(pod["status"].get("phase", ""))
            if phase in phases:
                return phase
            told = await self._warnings(name)
            fatal = [note for reason, note in told if reason not in PASSING]
            if phase == "Failed":
                fatal.append(_end_of(pod) or await self.logs(name) or "the pod has failed")
            if not fatal and monotonic() > end:
                fatal = [note for _, note in told] or [f"it is {phase}, and nobody says why"]
            if fatal:
                raise StepError(" ".join(fatal[-1].split()))
            await asyncio.sleep(LOOK_S)

    async def _warnings(self, name: str) -> list[tuple[str, str]]:
        """Reason and text of what is said about a pod."""
        found = (await self.client.list_all(EVENTS, NAMESPACE, options=ListOptions())).items
        return [
            (str(each["reason"]), str(each["note"]))
            for each in found
            if each["type"] == "Warning" and each.get("regarding", {}).get("name") == name
        ]

    async def logs(self, name: str) -> str:
        """What a pod has said: by kubectl, or where there is none, from the files of the node."""
        if shutil.which("kubectl"):
            return await self.kubectl("logs", name)
        pod: Any = await self.client.get(_PODS, name, NAMESPACE)
        files = sorted((self.pods / pod["metadata"]["uid"]).rglob("log"))
        lines = [line for file in files for line in file.read_text().splitlines()]
        return "\n".join(line.split(" ", 3)[3] for line in lines)

    async def kubectl(self, *arguments: str) -> str:
        """What it prints. Raises StepError."""
        if shutil.which("kubectl") is None:
            raise StepError("kubectl is not installed")
        process = await asyncio.create_subprocess_exec(
            "kubectl",
            *arguments,
            env={**os.environ, "KUBECONFIG": str(self.kubeconfig)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(COMMAND_S):
                said, errors = await process.communicate()
        except TimeoutError:
            raise StepError(f"kubectl {arguments[0]} did not end") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        text = said.decode(errors="replace").strip()
        if process.returncode:
            why = errors.decode(errors="replace").strip()
            raise StepError(f"kubectl {arguments[0]}: {f'{text} {why}'.strip()}")
        return text

    async def remove(self, pods: Sequence[str], claim: str) -> None:
        """Returns when nothing is left of them. Raises StepError if something stays."""
        for resource, names in ((_PODS, pods), (_CLAIMS, [claim] if claim else [])):
            for name in names:
                try:
                    async with asyncio.timeout(END_S):
                        await self.client.delete(resource, name, NAMESPACE)
                        while True:
                            await self.client.get(resource, name, NAMESPACE)
                            await asyncio.sleep(LOOK_S)
                except NotFoundError:
                    continue
                except TimeoutError:
                    told = [note for _, note in await self._warnings(name)]
                    raise StepError(f"{name} does not go away: {told[-1:] or ''}") from None


def _end_of(pod: Any) -> str:
    """Why its container could not be started."""
    states = [each.get("state", {}) for each in pod["status"].get("containerStatuses", ())]
    return " ".join(str(state.get("terminated", {}).get("message") or "") for state in states)


@asynccontextmanager
async def gpu_cluster(driver: Driver, folder: Path) -> AsyncIterator[GpuCluster]:
    """Nothing of it is left at the end."""
    cluster = Folder(folder / "cluster")
    instance = await start(Options(folder=cluster, durable=False))
    try:
        options = AgentOptions(NODE, folder / "n", "127.0.0.1", at_end=AtEnd.REMOVE)
        async with (
            running_node(joined(cluster, options), options, [driver]),
            HttpClient.from_environment(instance.kubeconfig) as client,
        ):
            yield GpuCluster(client, instance.kubeconfig, options.pods_dir, driver.name)
    finally:
        await instance.stop()
