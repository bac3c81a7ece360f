"""The server for clients in the same process: what a batch answers, and how it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from building import CountingIds, Harness, config
from calls import counted_calls
from drayman.apiserver.protocol.errors import StatusError
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.backend import MOST_AT_ONCE, ServerBackend
from drayman.apiserver.verbs.batch import Batch
from drayman.cluster.backend import BackendWrite, Target
from drayman.cluster.embedded import Delete, Key, Put
from drayman.cluster.embedded.store import Store
from drayman.cluster.errors import StatusError as RefusedError
from drayman.cluster.options import DeleteOptions, GetOptions, WatchOptions, WriteOptions
from drayman.cluster.patches import MERGE_PATCH

CONFIG = Target("", "v1", "configmaps", "ns")


def text(revision: int) -> bytes:
    return b'{"metadata":{"uid":"u","resourceVersion":"%d"}}' % revision


async def backend_with(*names: str) -> tuple[Harness, ServerBackend]:
    harness = Harness()
    await harness.namespace()
    backend = ServerBackend(harness.server.core)
    for name in names:
        await backend.create(CONFIG, config(name), WriteOptions())
    return harness, backend


def version(document: Any) -> str:
    return str(document.value["metadata"]["resourceVersion"])


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (Put(Key("leases.coordination.k8s.io", "ns", "n"), text, expected=0), "AlreadyExists"),
        (Put(Key("leases.coordination.k8s.io", "ns", "n"), text, expected=7), "Conflict"),
        (Delete(Key("leases.coordination.k8s.io", "ns", "n"), text, expected=7), "Conflict"),
        (Delete(Key("leases.coordination.k8s.io", "ns", "other"), text), "Conflict"),
    ],
    ids=["create", "update", "delete", "delete-absent"],
)
async def test_a_batch_that_somebody_else_was_ahead_of(operation: Any, reason: str) -> None:
    """It is answered with 409 about the object, and nothing of it is written."""
    harness = Harness()
    batch = Batch(harness.store)
    first = Put(Key("configmaps", "ns", "first"), text, expected=0)
    await batch.write([first, operation])
    await harness.store.write([Put(Key("leases.coordination.k8s.io", "ns", "n"), text)])
    with pytest.raises(StatusError) as refused:
        await batch.commit()
    error = refused.value
    assert (error.code, error.reason) == (409, reason)
    assert error.subject is not None
    assert error.subject.qualified == "leases.coordination.k8s.io"
    assert harness.store.get(first.key) is None


async def test_a_batch_shows_its_own_writes() -> None:
    """Within a batch an object is as its latest write left it, in lists too, and the store is untouched."""
    harness = Harness()
    keys = [Key("configmaps", namespace, name) for namespace in ("a", "b") for name in ("x", "y")]
    await harness.store.write([Put(key, text) for key in keys])
    batch = Batch(harness.store)
    assert batch.list("configmaps") == harness.store.list("configmaps")
    new = Key("configmaps", "a", "w")
    await batch.write([Delete(keys[0], text), Put(new, text, expected=0)])
    assert [stored.key for stored in batch.list("configmaps")] == [new, *keys[1:]]
    assert [stored.key for stored in batch.list("configmaps", "a")] == [new, keys[1]]
    assert batch.latest(keys[0]) is None
    await batch.write([Put(keys[0], text, expected=0)])
    assert [stored.key for stored in batch.list("configmaps", "a")] == [new, *keys[:2]]
    assert [stored.key for stored in harness.store.list("configmaps")] == keys
    await batch.commit()
    assert len(harness.store.list("configmaps")) == 5


async def test_every_answer_of_a_batch_has_its_real_version() -> None:
    """Also that of a write which changes nothing after one that did."""
    harness, backend = await backend_with("one")
    target = CONFIG._replace(name="one")
    patch = BackendWrite("patch", target, {"data": {"key": "value"}}, MERGE_PATCH)
    changed, unchanged, created = await backend.write_many(
        [
            patch,
            patch,
            BackendWrite("create", CONFIG, config("two")),
        ]
    )
    now = await backend.get(target, GetOptions())
    assert version(changed) == version(unchanged) == version(now)
    assert int(version(created)) == harness.store.revision == int(version(now)) + 1


async def test_names_made_up_in_a_batch_differ() -> None:
    """Two objects of one batch with the same beginning get names of their own."""
    _, backend = await backend_with()
    body: dict[str, Any] = {**config(""), "metadata": {"generateName": "c-"}}
    made = await backend.write_many([BackendWrite("create", CONFIG, body) for _ in range(20)])
    assert len({document.value["metadata"]["name"] for document in made}) == 20


async def test_others_have_their_turn_during_a_very_large_batch() -> None:
    """A write of another client to the same object in such a break refuses the batch."""
    harness, backend = await backend_with("one")
    patch = BackendWrite(
        "patch", CONFIG._replace(name="one"), {"data": {"a": "batch"}}, MERGE_PATCH
    )
    made = [BackendWrite("create", CONFIG, config(f"c{n}")) for n in range(3 * MOST_AT_ONCE)]
    batch = asyncio.create_task(backend.write_many([patch, *made]))
    await asyncio.sleep(0)
    assert not batch.done()
    other = {"data": {"a": "other"}}
    await backend.patch(CONFIG._replace(name="one"), MERGE_PATCH, other, WriteOptions())
    with pytest.raises(RefusedError) as refused:
        await batch
    assert refused.value.code == 409
    assert len(harness.store.list("configmaps")) == 1


async def test_a_batch_of_ordinary_size_has_no_break() -> None:
    """So a write that comes after it does not disturb it."""
    _, backend = await backend_with("one")
    target = CONFIG._replace(name="one")
    writes = [
        BackendWrite("patch", target, {"data": {"a": str(number)}}, MERGE_PATCH)
        for number in range(MOST_AT_ONCE)
    ]
    batch = asyncio.create_task(backend.write_many(writes))
    await asyncio.sleep(0)
    await backend.patch(target, MERGE_PATCH, {"data": {"b": "other"}}, WriteOptions())
    await batch
    found = await backend.get(target, GetOptions())
    assert found.value["data"] == {"a": str(MOST_AT_ONCE - 1), "b": "other"}


async def test_a_precondition_in_a_batch() -> None:
    """The wrong uid or version refuses the whole batch; a deletion before it is not written either."""
    harness, backend = await backend_with("one", "two")
    before = harness.store.revision
    for options in (DeleteOptions(uid="other"), DeleteOptions(resource_version="1")):
        with pytest.raises(RefusedError) as refused:
            await backend.write_many(
                [
                    BackendWrite("delete", CONFIG._replace(name="one"), options=DeleteOptions()),
                    BackendWrite("delete", CONFIG._replace(name="two"), options=options),
                ]
            )
        assert refused.value.code == 409
    assert harness.store.revision == before


@pytest.mark.parametrize("media", ["", "application/json", "application/yaml", "text/plain", "x"])
async def test_a_patch_of_no_known_type(media: str) -> None:
    """It is refused with 415, as over HTTP, and nothing is written."""
    harness, backend = await backend_with("one")
    before = harness.store.revision
    with pytest.raises(RefusedError) as refused:
        await backend.patch(CONFIG._replace(name="one"), media, {}, WriteOptions())
    assert refused.value.code == 415
    assert harness.store.revision == before


async def test_a_store_that_cannot_write_is_an_error_of_the_server() -> None:
    """Clients in the same process see the 500 that others see, not an exception of the store."""
    harness, backend = await backend_with()
    harness.store.close()
    with pytest.raises(RefusedError) as refused:
        await backend.create(CONFIG, config("late"), WriteOptions())
    assert refused.value.code == 500
    assert "the store is closed" in str(refused.value)


async def test_a_watch_of_a_closed_store_is_an_error_of_the_server() -> None:
    """A client in the same process that resumes its watch at the end learns it like any other refusal."""
    harness, backend = await backend_with("one")
    harness.store.close()
    with pytest.raises(RefusedError, match="the store is closed"):
        async with backend.watch(CONFIG, WatchOptions()) as events:
            _ = [event async for event in events]


async def test_generated_names_within_a_batch_differ() -> None:
    """The second object does not get the name that the first one has only got in the batch."""
    harness, backend = await backend_with()
    ends = iter(["aaaaa", "aaaaa", "bbbbb"])
    harness.server.core.ids = GivenEnds(ends)
    body = {**config(""), "metadata": {"generateName": "g-"}}
    write = BackendWrite("create", CONFIG, body, options=WriteOptions())
    made = await backend.write_many([write, write])
    assert [document.value["metadata"]["name"] for document in made] == ["g-aaaaa", "g-bbbbb"]


class GivenEnds(CountingIds):
    """Ids that give generated names these ends."""

    def __init__(self, ends: Iterator[str]) -> None:
        super().__init__()
        self._ends = ends

    def suffix(self) -> str:
        return next(self._ends)


def large_claim(name: str, mark: str) -> dict[str, Any]:
    """A claim with a hundred selectors that no other claim has."""
    selectors = [
        {"cel": {"expression": f"device.driver != '{mark}-{number}'"}} for number in range(25)
    ]
    requests = [
        {"name": f"r{n}", "exactly": {"deviceClassName": "c", "selectors": selectors}}
        for n in range(4)
    ]
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim"}
    return {**kind, "metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}


async def test_selectors_of_claims_in_a_batch_are_compiled_beside_the_event_loop() -> None:
    """A transaction is decided without a break, and other requests would wait until all selectors of its claims are compiled."""
    core = make_server(Store.open(None)).core
    backend = ServerBackend(core)
    kind = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}
    await backend.create(Target("", "v1", "namespaces"), kind, WriteOptions())
    target = Target("resource.k8s.io", "v1", "resourceclaims", "ns")
    counts = []
    for names, mark in (("ab", "first"), ("cd", "first"), ("ef", "second")):
        writes = [BackendWrite("create", target, large_claim(name, mark)) for name in names]
        with counted_calls() as work:
            await backend.write_many(writes)
        counts.append(work.count)
    _, known, unknown = counts  # the first batch of all sets more up
    assert unknown < 6 * known
    assert len(core.store.list("resourceclaims.resource.k8s.io")) == 6
