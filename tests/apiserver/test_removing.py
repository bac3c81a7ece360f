"""In the same process, the last change of an object and its deletion are one event."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cluster import CreateWrite, InProcessClient, PartsWrite, RemoveWrite, WriteOptions
from drayman.cluster.backend import BackendWrite, PartsBody, Target
from drayman.cluster.embedded import Event, EventType, Key, Store
from drayman.cluster.resources import RESOURCE_CLAIMS

CLAIMS = RESOURCE_CLAIMS.as_values()
STORED = "resourceclaims.resource.k8s.io"
TARGET = Target("resource.k8s.io", "v1", "resourceclaims", "default", "c")
PROTECTION = "resource.kubernetes.io/delete-protection"
RESULT = {"request": "r", "driver": "gpu.example.com", "pool": "node-a", "device": "d"}
IN_USE: dict[tuple[str, ...], Any] = {
    ("metadata", "finalizers"): [PROTECTION],
    ("status", "allocation"): {"devices": {"results": [RESULT]}},
    ("status", "reservedFor"): [{"resource": "pods", "name": "p", "uid": "u"}],
}
FREE: dict[tuple[str, ...], Any] = dict.fromkeys(IN_USE)


async def events_of(*writes: Any) -> tuple[Store, list[Event]]:
    """What watchers see of a claim in use when these are written."""
    store = Store.open(None)
    server = make_server(store)
    await create_first_objects(server.core)
    client = InProcessClient(ServerBackend(server.core))
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [request]}}}
    await client.create(CLAIMS, claim, "default")
    await client.write_all([PartsWrite(CLAIMS, "c", "default", IN_USE)])
    with closing(store.watch(STORED, since=store.revision)) as changes:
        for write in writes:
            await client.write_all([write])
        return store, list(changes.pending())


async def test_one_event_with_the_last_form() -> None:
    """Watchers see the claim go, without what was taken from it and otherwise as it was."""
    store, events = await events_of(RemoveWrite(PartsWrite(CLAIMS, "c", "default", FREE)))
    (event,) = events
    assert event.type is EventType.DELETED
    assert event.previous is not None
    before, last = event.previous.value, event.stored.value
    assert last["status"] == {}
    assert last["spec"] == before["spec"]
    assert {**last["metadata"], "finalizers": [PROTECTION]} == {
        **before["metadata"],
        "resourceVersion": str(event.revision),
    }
    assert store.get(Key(STORED, "default", "c")) is None


async def test_an_addition_is_validated() -> None:
    """A last change that is more than taking something away is checked as any other, and written before the deletion."""
    label = PartsWrite(CLAIMS, "c", "default", {**FREE, ("metadata", "labels"): {"a": "b"}})
    _, events = await events_of(RemoveWrite(label))
    assert [event.type for event in events] == [EventType.MODIFIED, EventType.DELETED]
    wrong = PartsWrite(CLAIMS, "c", "default", {**FREE, ("metadata", "labels"): {"a": "!"}})
    with pytest.raises(Exception, match="Invalid value"):
        await events_of(RemoveWrite(wrong))


async def test_a_dry_run_removes_nothing() -> None:
    """It only tells whether that would be allowed."""
    store, _ = await events_of()
    server = make_server(store)
    await ServerBackend(server.core).write_many(
        [BackendWrite("remove", TARGET, PartsBody(FREE), "", WriteOptions(dry_run=True))]
    )
    found = store.get(Key(STORED, "default", "c"))
    assert found is not None
    assert found.value["metadata"]["finalizers"] == [PROTECTION]


async def test_an_object_of_the_same_transaction() -> None:
    """What a batch has made it can remove again."""
    store, _ = await events_of()
    client = InProcessClient(ServerBackend(make_server(store).core))
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    claim = {"metadata": {"name": "d"}, "spec": {"devices": {"requests": [request]}}}
    await client.write_all(
        [
            CreateWrite(CLAIMS, claim, "default"),
            RemoveWrite(PartsWrite(CLAIMS, "d", "default", FREE)),
        ]
    )
    assert store.get(Key(STORED, "default", "d")) is None
