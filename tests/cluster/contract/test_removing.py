"""Objects are given up and deleted in one write: what holds them goes first, and they go with it."""

from __future__ import annotations

import asyncio

import pytest

from cluster.contract.clusters import Cluster
from cluster.contract.conftest import Open
from cluster.contract.test_parts import (
    ALLOCATION,
    CLAIMS,
    FINALIZERS,
    PROTECTION,
    RESERVED,
    allocation,
    claim,
    consumer,
    write,
)
from drayman.cluster import CreateWrite, PartsWrite, RemoveWrite
from drayman.cluster.errors import ConflictError, NotFoundError
from drayman.cluster.resources import CONFIG_MAPS, JsonObject
from drayman.cluster.writes import Parts

OTHER = "example.com/other"
FREE: Parts = {FINALIZERS: None, ALLOCATION: None, RESERVED: None}


async def held(cluster: Cluster, name: str, *finalizers: str) -> JsonObject:
    """A claim in use, under these finalizers."""
    await cluster.client.create(CLAIMS, claim(name), cluster.namespace)
    parts = {
        FINALIZERS: list(finalizers),
        ALLOCATION: allocation(),
        RESERVED: [consumer("1")],
    }
    return await write(cluster, CLAIMS, name, parts)


async def remove(cluster: Cluster, found: JsonObject, parts: Parts = FREE) -> None:
    meta = found["metadata"]
    last = PartsWrite(
        CLAIMS,
        meta["name"],
        cluster.namespace,
        parts,
        uid=meta["uid"],
        resource_version=meta["resourceVersion"],
    )
    assert await cluster.client.write_many([RemoveWrite(last)]) == (None,)


async def is_there(cluster: Cluster, name: str) -> bool:
    try:
        await cluster.client.get(CLAIMS, name, cluster.namespace)
    except NotFoundError:
        return False
    return True


async def until_gone(cluster: Cluster, name: str) -> None:
    """A cluster may have a controller that was about to remove the object too, and whose write is still under way."""
    for _ in range(500):
        if not await is_there(cluster, name):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"{name} is still there")


async def test_an_object_goes_with_its_last_finalizer(open_cluster: Open) -> None:
    """Whether it was waiting for that or nobody had deleted it before."""
    async with open_cluster() as cluster:
        await remove(cluster, await held(cluster, "plain", PROTECTION))
        await until_gone(cluster, "plain")
        await held(cluster, "marked", PROTECTION)
        await cluster.client.delete(CLAIMS, "marked", cluster.namespace)
        marked = await cluster.client.get(CLAIMS, "marked", cluster.namespace)
        await remove(cluster, marked)
        await until_gone(cluster, "marked")


async def test_an_object_that_others_hold_is_marked(open_cluster: Open) -> None:
    """It has lost what was taken from it, and goes when the others let it."""
    async with open_cluster() as cluster:
        found = await held(cluster, "c", PROTECTION, OTHER)
        await remove(cluster, found, {**FREE, FINALIZERS: [OTHER]})
        left = await cluster.client.get(CLAIMS, "c", cluster.namespace)
        assert left["metadata"]["finalizers"] == [OTHER]
        assert left["metadata"]["deletionTimestamp"]
        assert not left.get("status")
        await write(cluster, CLAIMS, "c", {FINALIZERS: None})
        await until_gone(cluster, "c")


@pytest.mark.parametrize("wrong", [{"uid": "another"}, {"resourceVersion": "1"}])
async def test_only_the_object_that_is_meant_goes(
    open_cluster: Open, wrong: dict[str, str]
) -> None:
    """Another object of the same name, or one that has changed, stays as it is."""
    async with open_cluster() as cluster:
        found = await held(cluster, "c", PROTECTION)
        with pytest.raises(ConflictError):
            await remove(cluster, {"metadata": found["metadata"] | wrong})
        assert await cluster.client.get(CLAIMS, "c", cluster.namespace) == found


async def test_what_is_not_there_cannot_be_removed(open_cluster: Open) -> None:
    """The refusal says so."""
    async with open_cluster() as cluster:
        with pytest.raises(NotFoundError):
            await cluster.client.write_many(
                [RemoveWrite(PartsWrite(CLAIMS, "missing", cluster.namespace, FREE))]
            )


async def test_the_last_change_may_be_any(open_cluster: Open) -> None:
    """Also one that adds something, or that is about other fields than finalizers and status."""
    async with open_cluster() as cluster:
        await cluster.client.create(
            CONFIG_MAPS, {"metadata": {"name": "m"}, "data": {"a": "1"}}, cluster.namespace
        )
        last = PartsWrite(CONFIG_MAPS, "m", cluster.namespace, {("data", "a"): "2"})
        await cluster.client.write_many([RemoveWrite(last)])
        with pytest.raises(NotFoundError):
            await cluster.client.get(CONFIG_MAPS, "m", cluster.namespace)


async def test_a_removal_is_part_of_a_transaction(open_cluster: Open) -> None:
    """Where there are transactions, it does not happen if what comes with it is refused."""
    async with open_cluster() as cluster:
        if not cluster.atomic:
            pytest.skip("there are no transactions over HTTP")
        found = await held(cluster, "c", PROTECTION)
        last = PartsWrite(CLAIMS, "c", cluster.namespace, FREE)
        missing = PartsWrite(CLAIMS, "missing", cluster.namespace, FREE)
        with pytest.raises(NotFoundError):
            await cluster.client.write_many(
                [
                    RemoveWrite(last),
                    CreateWrite(CLAIMS, claim("new"), cluster.namespace),
                    missing,
                ]
            )
        assert await cluster.client.get(CLAIMS, "c", cluster.namespace) == found
        assert not await is_there(cluster, "new")
