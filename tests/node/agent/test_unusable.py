"""Texts that the API server accepts, as that of Kubernetes does, and of which no system can make anything."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from drayman.cluster.options import DeleteOptions
from drayman.cluster.resources import CONFIG_MAPS, PODS, JsonObject
from node.agent.world import NAMESPACE, container, world
from patience import PATIENCE_S

NUL = "has a NUL character, which the system cannot take"
DISK: JsonObject = {"name": "disk", "emptyDir": {}}


def running(*words: str) -> dict[str, Any]:
    return {"exec": {"command": list(words)}}


@dataclass(frozen=True)
class Case:
    want: str
    main: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)


def mounted(**more: str) -> dict[str, Any]:
    return {"volumeMounts": [{"name": "disk", "mountPath": "/nowhere/disk", **more}]}


FROM_FILE = {"configMapKeyRef": {"name": "binary", "key": "key"}}
CASES = [
    Case(f"container main: command[1] {NUL}", {"command": ["echo", "a\0b"]}),
    Case(f"container main: args[0] {NUL}", {"args": ["a\0b"]}),
    Case(f"container main: workingDir {NUL}", {"workingDir": "/tmp/\0"}),
    Case(f"container main: terminationMessagePath {NUL}", {"terminationMessagePath": "/dev/\0"}),
    Case(f"container main: volumeMounts[0].mountPath {NUL}", mounted(mountPath="/nowhere/\0")),
    Case(f"container main: volumeMounts[0].subPath {NUL}", mounted(subPath="a\0b")),
    Case(f"container main: volumeMounts[0].subPathExpr {NUL}", mounted(subPathExpr="a\0b")),
    Case(f"container main: variable A {NUL}", {"env": [{"name": "A", "value": "a\0b"}]}),
    Case(f"container main: variable A {NUL}", {"env": [{"name": "A", "valueFrom": FROM_FILE}]}),
    Case(f"container main: livenessProbe.exec.command[0] {NUL}", {"livenessProbe": running("\0")}),
    Case(
        f"container main: lifecycle.preStop.exec.command[1] {NUL}",
        {"lifecycle": {"preStop": running("echo", "\0")}},
    ),
    Case(
        "container main: command[0] is empty, and is to be the program that is run",
        {"command": [""]},
    ),
    Case(
        "container main: command[0] is empty, and is to be the program that is run",
        {"command": ["$(NONE)"], "env": [{"name": "NONE", "value": ""}]},
    ),
    Case(
        f"volume host: hostPath.path {NUL}",
        spec={"volumes": [DISK, {"name": "host", "hostPath": {"path": "/tmp/\0"}}]},
    ),
]


async def test_texts_of_which_nothing_can_be_made() -> None:
    """The container waits for a better spec; its status and an event name container and field, and no worker fails."""
    async with world() as here, here.agent() as agent:
        settings: JsonObject = {"metadata": {"name": "binary"}, "binaryData": {"key": "AAE="}}
        await here.client.create(CONFIG_MAPS, settings, NAMESPACE)
        pods = [
            await here.pod(
                f"p{number}", container("true") | case.main, **{"volumes": [DISK], **case.spec}
            )
            for number, case in enumerate(CASES)
        ]
        for pod, case in zip(pods, CASES, strict=True):
            name = pod["metadata"]["name"]
            found = await here.until(name, lambda pod: "message" in str(pod["status"]))
            waiting = found["status"]["containerStatuses"][0]["state"]["waiting"]
            assert waiting == {"reason": "CreateContainerConfigError", "message": case.want}
        wanted = {case.want for case in CASES}
        async with asyncio.timeout(PATIENCE_S):
            while not {event["note"] for event in await here.events("Failed")} >= wanted:
                await asyncio.sleep(0.02)
        assert agent.workers.keys() == {pod["metadata"]["uid"] for pod in pods}
        for pod in pods:
            await here.client.delete(
                PODS, pod["metadata"]["name"], NAMESPACE, options=DeleteOptions()
            )


@pytest.mark.parametrize("path", ["/status/\0", "/a b"])
async def test_a_path_of_a_url_may_have_any_character(path: str) -> None:
    """It is quoted there, as by a kubelet."""
    probe = {"httpGet": {"port": 1, "path": path}, "initialDelaySeconds": 60}
    async with world() as here, here.agent():
        await here.pod("p", container("true", readinessProbe=probe))
        await here.phase("p", "Succeeded")
