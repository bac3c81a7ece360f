"""Informers and a real server that comes and goes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.following import Follower
from drayman.apiserver.instance import Folder, Instance, Options, start
from drayman.cluster import Backoff, HttpClient, Informer, ListOptions, Selection
from drayman.cluster.kube.locating import find_connection
from drayman.cluster.kube.retries import NO_RETRIES
from drayman.cluster.resources import CONFIG_MAPS, JsonObject
from drayman.testing.ports import kept_port

ROUNDS = 3


async def write(instance: Instance, round_: int) -> None:
    """Some creates, changes and deletes by another client."""
    async with HttpClient.from_environment(instance.kubeconfig) as client:
        for index in range(5):
            value: JsonObject = {"metadata": {"name": f"m{round_}-{index}"}, "data": {}}
            made = await client.create(CONFIG_MAPS, value, "default")
            await client.update(CONFIG_MAPS, made | {"data": {"x": "1"}})
        await client.delete(CONFIG_MAPS, f"m{round_}-0", "default")


async def truth(instance: Instance) -> dict[str, str]:
    async with HttpClient.from_environment(instance.kubeconfig) as client:
        page = await client.list(CONFIG_MAPS, "default", options=ListOptions())
    return {
        f"default/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
        for item in page.items
    }


@pytest.fixture
def port() -> Iterator[int]:
    """One for a server that comes and goes."""
    with kept_port() as kept:
        yield kept


async def test_informers_survive_restarts_without_a_missed_or_doubled_event(
    tmp_path: Path, port: int
) -> None:
    """Over restarts on the same data every create, change and delete is told exactly once, in order."""
    folder = Folder(tmp_path / "drayman")
    instance = await start(Options(folder=folder, port=port))
    client = HttpClient(find_connection(instance.kubeconfig), retries=NO_RETRIES)
    selection = Selection(CONFIG_MAPS, "default")
    informer = Informer(client, selection, backoff=Backoff(0.001, 0.01, random.Random(1)))
    follower = Follower()
    informer.add_handler(follower)
    try:
        async with client, informer:
            await informer.wait_synced()
            for round_ in range(ROUNDS):
                await write(instance, round_)
                await instance.stop()
                instance = await start(Options(folder=folder, port=port))
            await write(instance, ROUNDS)
            present = await truth(instance)
            await follower.until(lambda: follower.versions() == present)
    finally:
        await instance.stop()
    rounds = range(ROUNDS + 1)
    assert follower.told == [
        event
        for round_ in rounds
        for event in (
            *(
                (type_, f"m{round_}-{index}")
                for index in range(5)
                for type_ in ("ADDED", "MODIFIED")
            ),
            ("DELETED", f"m{round_}-0"),
        )
    ]
