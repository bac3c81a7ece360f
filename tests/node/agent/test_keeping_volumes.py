"""Volumes of pods that run: what changes reaches them, and tokens are renewed before they expire."""

from __future__ import annotations

import asyncio
import json
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from drayman.cluster import merge_patch
from drayman.cluster.client import Token
from drayman.cluster.resources import CONFIG_MAPS, PODS, SERVICE_ACCOUNTS, JsonObject
from drayman.node.agent.reading import SECRETS
from drayman.node.agent.running import NodeAgent
from drayman.node.agent.volumes import keeping
from node.agent.world import NAMESPACE, World, container, logs, running, world
from patience import PATIENCE_S

_PODS = PODS.as_values()
SLEEPER = container("while :; do sleep 0.1; done")
SOURCES = [
    {"configMap": {"name": "settings"}},
    {"secret": {"name": "key", "optional": True}},
    {
        "downwardAPI": {
            "items": [{"path": "team", "fieldRef": {"fieldPath": "metadata.labels['team']"}}]
        }
    },
]


@asynccontextmanager
async def town() -> AsyncIterator[tuple[World, NodeAgent]]:
    """A node that looks again all the time, and a ConfigMap."""
    async with world() as found:
        here = replace(found, options=replace(found.options, look_again_s=0.02))
        value: JsonObject = {"metadata": {"name": "settings"}, "data": {"depth": "1"}}
        await here.client.create(CONFIG_MAPS, value, NAMESPACE)
        async with here.agent() as agent:
            yield here, agent


def folder(agent: NodeAgent, pod: JsonObject, volume: str) -> Path:
    return agent.workers[pod["metadata"]["uid"]].folder / "volumes" / volume


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.02)


def text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


async def test_changes_reach_containers_that_run() -> None:
    """Changed and new keys, an optional Secret that comes later, and labels of the pod; what is gone is gone."""
    volumes = [{"name": "v", "projected": {"sources": SOURCES}}]
    async with town() as (here, agent), running(here, SLEEPER, volumes=volumes) as pod:
        shown = folder(agent, pod, "v")
        assert (text(shown / "depth"), text(shown / "team")) == ("1", "")
        client = here.client
        patch = merge_patch({"data": {"depth": "2", "width": "3"}})
        await client.patch(CONFIG_MAPS, "settings", patch, NAMESPACE)
        await until(lambda: (text(shown / "depth"), text(shown / "width")) == ("2", "3"))
        secret: JsonObject = {"metadata": {"name": "key"}, "stringData": {"key": "s3"}}
        await client.create(SECRETS, secret, NAMESPACE)
        await until(lambda: text(shown / "key") == "s3")
        patch = merge_patch({"metadata": {"labels": {"team": "red"}}})
        await client.patch(_PODS, "p", patch, NAMESPACE)
        await until(lambda: text(shown / "team") == "red")
        patch = merge_patch({"data": {"width": None}})
        await client.patch(CONFIG_MAPS, "settings", patch, NAMESPACE)
        await until(lambda: not (shown / "width").exists())


async def test_what_is_missing_later_leaves_the_files_alone() -> None:
    """An event says so, and it ends when the ConfigMap is back."""
    volumes = [{"name": "v", "configMap": {"name": "settings"}}]
    async with town() as (here, agent), running(here, SLEEPER, volumes=volumes) as pod:
        shown = folder(agent, pod, "v")
        await here.client.delete(CONFIG_MAPS, "settings", NAMESPACE)
        assert await here.notes("FailedMount") == {
            'volumes are not brought up to date: configmap "settings" not found'
        }
        assert text(shown / "depth") == "1"
        value: JsonObject = {"metadata": {"name": "settings"}, "data": {"depth": "4"}}
        await here.client.create(CONFIG_MAPS, value, NAMESPACE)
        await until(lambda: text(shown / "depth") == "4")


async def test_a_container_that_is_restarted_has_the_variables_of_today() -> None:
    """They are read again at each start."""
    reference = {"configMapKeyRef": {"name": "settings", "key": "depth"}}
    variable = {"name": "DEPTH", "valueFrom": reference}
    script = "echo depth $DEPTH; [ $DEPTH = 2 ] || { sleep 0.5; exit 1; }; exec sleep 600"
    async with town() as (here, agent):
        each = container(script, env=[variable])
        pod = await here.pod("p", each, restartPolicy="OnFailure", terminationGracePeriodSeconds=0)
        await here.phase("p", "Running")
        patch = merge_patch({"data": {"depth": "2"}})
        await here.client.patch(CONFIG_MAPS, "settings", patch, NAMESPACE)
        await until(lambda: "depth 2" in logs(agent, pod))


TOKEN = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}


async def test_a_token_is_renewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """When most of its time is over, by one for the same account. One that lasts is left alone."""
    ask = keeping.request_token
    given: list[str] = []

    async def brief_at_first(*args: Any) -> Token:
        found = await ask(*args)
        given.append(found.value)
        # The server gives none for less than ten minutes.
        return Token(found.value, 0.0) if len(given) == 1 else found

    monkeypatch.setattr(keeping, "request_token", brief_at_first)
    sources = [TOKEN, *SOURCES]
    spec = {"volumes": [{"name": "v", "projected": {"sources": sources}}]}
    async with town() as (here, agent):
        account: JsonObject = {"metadata": {"name": "default"}}
        await here.client.create(SERVICE_ACCOUNTS.as_values(), account, NAMESPACE)
        async with running(here, SLEEPER, serviceAccountName="default", **spec) as pod:
            shown = folder(agent, pod, "v")
            await until(lambda: len(given) > 1 and text(shown / "token") == given[1])
            assert subject(given[0]) == subject(given[1])
            patch = merge_patch({"data": {"depth": "2"}})
            await here.client.patch(CONFIG_MAPS, "settings", patch, NAMESPACE)
            await until(lambda: text(shown / "depth") == "2")
            assert text(shown / "token") == given[-1]
            assert len(given) == 2


def subject(token: str) -> str:
    """Whom a token is for."""
    payload = token.split(".")[1]
    return str(json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["sub"])
