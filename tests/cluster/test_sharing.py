"""Within a process an object is decoded once: who writes it, who reads it and who watches it get the same struct."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.core import Namespace
from drayman.api.errors import DecodeError
from drayman.api.meta import ObjectMeta
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cluster import (
    Change,
    Client,
    CreateWrite,
    InProcessClient,
    PartsWrite,
    Resource,
    WatchOptions,
)
from drayman.cluster.embedded import Store
from drayman.cluster.embedded.model import DecodedValues, Key, Stored
from drayman.cluster.resources import NAMESPACES, StructCodec
from patience import PATIENCE_S


@asynccontextmanager
async def embedded() -> AsyncIterator[InProcessClient]:
    with Store.open(None) as store:
        core = make_server(store).core
        await create_first_objects(core)
        yield InProcessClient(ServerBackend(core))


async def first_change(client: Client, resource: Resource, since: str) -> object:
    """What a watcher is told first."""
    options = WatchOptions(resource_version=since)
    async with (
        asyncio.timeout(PATIENCE_S),
        client.watch(resource, options=options) as events,
    ):
        async for event in events:
            assert isinstance(event, Change)
            return event.object
    raise AssertionError("the watch ended")


async def test_writers_readers_and_watchers_share_an_object() -> None:
    """The answer to a write, a read of the same version and the event of every watch are one and the same struct."""
    async with embedded() as client:
        since = (await client.list(NAMESPACES)).resource_version
        made = await client.create(NAMESPACES, Namespace(metadata=ObjectMeta(name="x")))
        assert await client.get(NAMESPACES, "x") is made
        assert await first_change(client, NAMESPACES, since) is made
        assert await first_change(client, NAMESPACES, since) is made
        assert made in (await client.list(NAMESPACES)).items


async def test_a_transaction_answers_with_what_watchers_are_told() -> None:
    """An object that a transaction writes twice is one change, answered and told as the transaction leaves it."""
    async with embedded() as client:
        since = (await client.list(NAMESPACES)).resource_version
        value = Namespace(metadata=ObjectMeta(name="x"))
        labels = PartsWrite(NAMESPACES, "x", None, {("metadata", "labels"): {"a": "b"}})
        created, labelled = await client.write_many([CreateWrite(NAMESPACES, value), labels])
        assert created is labelled
        assert isinstance(labelled, Namespace)
        assert labelled.metadata.labels["a"] == "b"
        assert await first_change(client, NAMESPACES, since) is labelled


async def test_plain_values_are_the_readers_own() -> None:
    """Decoded JSON may be changed by whoever asked for it, and nobody else sees that."""
    values = NAMESPACES.as_values()
    async with embedded() as client:
        since = (await client.list(values)).resource_version
        made = await client.create(values, {"metadata": {"name": "x"}})
        made["metadata"]["name"] = "changed"
        read = await client.get(values, "x")
        assert read["metadata"]["name"] == "x"
        read["metadata"]["name"] = "changed"
        told = await first_change(client, values, since)
        assert told["metadata"]["name"] == "x"  # type: ignore[index]


NAMED = [
    Stored(Key("namespaces", "", f"n{n}"), n, b'{"metadata":{"name":"n%d"}}' % n) for n in range(6)
]
READERS = [StructCodec(Namespace), StructCodec(Namespace)]
LOOKS = st.lists(st.tuples(st.sampled_from(NAMED), st.sampled_from((*READERS, None))), max_size=40)


@given(LOOKS, st.integers(0, 100))
def test_what_was_forgotten_is_read_anew(
    looks: list[tuple[Stored, StructCodec[Namespace] | None]], limit: int
) -> None:
    """However little may stay decoded, an object reads as its bytes say, to every reader."""
    decoded = DecodedValues(limit)
    kept = {one.key: Stored(one.key, one.revision, one.data, decoded) for one in NAMED}
    for one, reader in looks:
        name = one.key.name
        if reader is None:
            assert kept[one.key].value == {"metadata": {"name": name}}
        else:
            assert kept[one.key].read(reader) == reader.decode(one.data)
            assert kept[one.key].read(reader).metadata.name == name


def test_an_object_that_cannot_be_read_is_refused_each_time() -> None:
    """What a reader objects to is not remembered, and is no matter for readers that accept it."""
    stored = Stored(Key("namespaces", "", "n"), 1, b'{"metadata":{"name":7}}')
    for _ in range(2):
        with pytest.raises(DecodeError):
            stored.read(READERS[0])
    assert stored.value == {"metadata": {"name": 7}}
