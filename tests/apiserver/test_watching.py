"""Watches."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import Any

from building import Harness, config, decoded
from drayman.apiserver.protocol.exchange import Response, StreamingResponse
from drayman.apiserver.verbs.patches import MERGE_PATCH


async def events(harness: Harness, path: str, count: int, **query: str) -> list[Any]:
    """The first events of a watch, which is then closed."""
    answer = await harness.answer("GET", path, **{"watch": "1", "timeoutSeconds": "30", **query})
    assert isinstance(answer, StreamingResponse)
    found: list[Any] = []
    async with aclosing(answer.chunks) as chunks:  # type: ignore[type-var]
        async for chunk in chunks:
            found += [json.loads(line) for line in chunk.splitlines()]
            if len(found) >= count:
                break
    return found


async def test_a_watch_tells_every_change_after_its_version() -> None:
    """In order, each with the version it made."""
    harness = Harness()
    base = await harness.namespace()
    start = str(harness.store.revision)
    await harness.json("POST", f"{base}/configmaps", config("a"))
    await harness.json("PUT", f"{base}/configmaps/a", config("a", k="v"))
    await harness.json("DELETE", f"{base}/configmaps/a")
    found = await events(harness, f"{base}/configmaps", 3, resourceVersion=start)
    assert [event["type"] for event in found] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in found]
    assert versions == sorted(set(versions))


async def test_a_watch_without_version_begins_with_what_is_there() -> None:
    """As additions."""
    harness = Harness()
    base = await harness.namespace()
    for name in ("a", "b"):
        await harness.json("POST", f"{base}/configmaps", config(name))
    found = await events(harness, f"{base}/configmaps", 2)
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in found] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
    ]


async def test_what_stops_matching_is_deleted_for_the_watcher() -> None:
    """In its last matching state, at the version of the change."""
    harness = Harness()
    base = await harness.namespace()
    body = config("a")
    body["metadata"]["labels"] = {"on": "1"}
    start = (await harness.json("POST", f"{base}/configmaps", body))["metadata"]["resourceVersion"]
    headers = {"content-type": MERGE_PATCH}
    for value in ("0", "1"):
        change = {"metadata": {"labels": {"on": value}}}
        last = decoded(await harness.send("PATCH", f"{base}/configmaps/a", change, headers))
    found = await events(
        harness, f"{base}/configmaps", 2, resourceVersion=start, labelSelector="on=1"
    )
    assert [event["type"] for event in found] == ["DELETED", "ADDED"]
    assert found[0]["object"]["metadata"]["labels"] == {"on": "1"}
    assert found[1]["object"] == last


async def test_initial_events_end_with_a_bookmark() -> None:
    """So that a client knows when it has the whole list."""
    harness = Harness()
    base = await harness.namespace()
    await harness.json("POST", f"{base}/configmaps", config("a"))
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
    }
    found = await events(harness, f"{base}/configmaps", 2, **query)
    assert [event["type"] for event in found] == ["ADDED", "BOOKMARK"]
    annotations = found[1]["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}


async def test_history_that_is_gone_is_an_event() -> None:
    """200 and one ERROR with a 410 in it."""
    harness = Harness()
    base = await harness.namespace()
    await harness.json("POST", f"{base}/configmaps", config("a"))
    harness.store.compact(harness.store.revision)
    found = await events(harness, f"{base}/configmaps", 1, resourceVersion="1")
    assert (found[0]["type"], found[0]["object"]["code"]) == ("ERROR", 410)


async def test_a_closed_watch_leaves_nothing_behind() -> None:
    """The store no longer knows it."""
    harness = Harness()
    base = await harness.namespace()
    await harness.json("POST", f"{base}/configmaps", config("a"))
    await events(harness, f"{base}/configmaps", 1)
    assert harness.store.watchers == 0


async def test_a_watch_ends_with_its_store() -> None:
    """At once, whatever its timeout."""
    harness = Harness()
    await harness.namespace()
    answer = await harness.answer("GET", "/api/v1/namespaces", watch="1", resourceVersion="1")
    assert isinstance(answer, StreamingResponse)
    asyncio.get_running_loop().call_soon(harness.store.close)
    assert [chunk async for chunk in answer.chunks] == []


async def test_bad_options_of_a_watch_are_refused_before_it_begins() -> None:
    """With a Status of its own, not as an event."""
    harness = Harness()
    base = await harness.namespace()
    answer = await harness.answer("GET", f"{base}/configmaps", watch="1", sendInitialEvents="true")
    assert isinstance(answer, Response)
    assert answer.status == 422
