"""Deletion: at once, with grace, with finalizers, by collection, of namespaces."""

from __future__ import annotations

from typing import Any

import pytest

from building import Harness, config, decoded
from drayman.apiserver.verbs.patches import MERGE_PATCH

POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def test_an_object_that_nothing_holds_goes_at_once() -> None:
    """Answered with a Status that names it."""
    harness = Harness()
    base = await harness.namespace()
    created = await harness.json("POST", f"{base}/configmaps", config("a"))
    status = await harness.json("DELETE", f"{base}/configmaps/a")
    assert status["details"] == {
        "name": "a",
        "kind": "configmaps",
        "uid": created["metadata"]["uid"],
    }
    assert (await harness.send("GET", f"{base}/configmaps/a")).status == 404


async def test_finalizers_hold_an_object_until_the_last_is_gone() -> None:
    """Meanwhile it is marked, and new finalizers are refused."""
    harness = Harness()
    base = await harness.namespace()
    body = config("a")
    body["metadata"]["finalizers"] = ["example.com/a"]
    await harness.json("POST", f"{base}/configmaps", body)
    marked = await harness.json("DELETE", f"{base}/configmaps/a")
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    headers = {"content-type": MERGE_PATCH}
    more: Any = {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}
    assert (await harness.send("PATCH", f"{base}/configmaps/a", more, headers)).status == 422
    none: Any = {"metadata": {"finalizers": None}}
    assert (await harness.send("PATCH", f"{base}/configmaps/a", none, headers)).status == 200
    assert (await harness.send("GET", f"{base}/configmaps/a")).status == 404


@pytest.mark.parametrize(
    ("policy", "finalizers"),
    [("Orphan", ["orphan"]), ("Foreground", ["foregroundDeletion"])],
)
async def test_propagation_leaves_the_object_to_the_garbage_collector(
    policy: str, finalizers: list[str]
) -> None:
    """By way of a finalizer."""
    harness = Harness()
    base = await harness.namespace()
    await harness.json("POST", f"{base}/configmaps", config("a"))
    marked = await harness.json("DELETE", f"{base}/configmaps/a", propagationPolicy=policy)
    assert marked["metadata"]["finalizers"] == finalizers


async def test_grace_can_be_shortened_and_not_lengthened() -> None:
    """Zero ends it."""
    harness = Harness()
    base = await harness.namespace()
    await harness.json("POST", f"{base}/pods", POD)
    first = await harness.json("DELETE", f"{base}/pods/p")
    assert first["metadata"]["deletionTimestamp"] == "2026-01-02T03:04:35Z"
    longer = await harness.json("DELETE", f"{base}/pods/p", gracePeriodSeconds="60")
    assert longer == first
    shorter = await harness.json("DELETE", f"{base}/pods/p", gracePeriodSeconds="10")
    assert shorter["metadata"]["deletionTimestamp"] == "2026-01-02T03:04:15Z"
    await harness.json("DELETE", f"{base}/pods/p", gracePeriodSeconds="0")
    assert (await harness.send("GET", f"{base}/pods/p")).status == 404


async def test_preconditions_name_what_is_meant() -> None:
    """Another uid or version is a conflict, and nothing happens."""
    harness = Harness()
    base = await harness.namespace()
    await harness.json("POST", f"{base}/configmaps", config("a"))
    for precondition in ({"uid": "other"}, {"resourceVersion": "1"}):
        refused = await harness.send(
            "DELETE", f"{base}/configmaps/a", {"preconditions": precondition}
        )
        assert refused.status == 409
    assert (await harness.send("GET", f"{base}/configmaps/a")).status == 200


async def test_a_collection_is_deleted_as_selected() -> None:
    """And answered as it was."""
    harness = Harness()
    base = await harness.namespace()
    for name in ("a", "b"):
        body = config(name)
        body["metadata"]["labels"] = {"n": name}
        await harness.json("POST", f"{base}/configmaps", body)
    gone = await harness.json("DELETE", f"{base}/configmaps", labelSelector="n=a")
    left = await harness.json("GET", f"{base}/configmaps")
    assert [item["metadata"]["name"] for item in gone["items"]] == ["a"]
    assert [item["metadata"]["name"] for item in left["items"]] == ["b"]


async def test_a_namespace_terminates_before_it_goes() -> None:
    """It is gone when its finalizer is taken off by way of finalize."""
    harness = Harness()
    base = await harness.namespace()
    leaving = await harness.json("DELETE", base)
    assert leaving["status"]["phase"] == "Terminating"
    assert await harness.json("DELETE", base) == leaving
    body = {"metadata": {"name": "ns"}, "spec": {"finalizers": []}}
    await harness.json("PUT", f"{base}/finalize", body)
    assert (await harness.send("GET", base)).status == 404


async def test_the_namespaces_everybody_relies_on_stay() -> None:
    """403 for default and the two of the system."""
    harness = Harness()
    base = await harness.namespace("default")
    refused = await harness.send("DELETE", base)
    assert (refused.status, decoded(refused)["reason"]) == (403, "Forbidden")
