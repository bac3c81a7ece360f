"""Binding, eviction and scale, on the built-in kinds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from building import CountingIds, FixedClock, Harness, decoded
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.verbs.patches import MERGE_PATCH
from drayman.cluster.embedded.store import Store

NS = "/api/v1/namespaces/ns"
BUDGETS = "/apis/policy/v1/namespaces/ns/poddisruptionbudgets"
DEPLOYMENTS = "/apis/apps/v1/namespaces/ns/deployments"
POD = {
    "metadata": {"name": "p", "labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


async def built_in(store: Store | None = None) -> Harness:
    """A harness whose server has every built-in kind."""
    harness = Harness() if store is None else Harness(store)
    harness.server = make_server(harness.store, clock=FixedClock(), ids=CountingIds())
    await harness.namespace()
    return harness


def binding(**metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", **metadata}, "target": {"kind": "Node", "name": "n"}}


async def test_a_binding_gives_a_pod_its_node() -> None:
    """And its labels, and a condition that says so."""
    harness = await built_in()
    await harness.json("POST", f"{NS}/pods", POD)
    status = await harness.json("POST", f"{NS}/pods/p/binding", binding(labels={"zone": "z"}))
    pod = await harness.json("GET", f"{NS}/pods/p")
    assert (status["status"], status["code"]) == ("Success", 201)
    assert pod["spec"]["nodeName"] == "n"
    assert pod["metadata"]["labels"] == {"app": "x", "zone": "z"}
    assert pod["status"]["conditions"][0]["type"] == "PodScheduled"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (binding(uid="another"), 409),
        (binding(resourceVersion="1"), 409),
        ({"metadata": {"name": "q"}, "target": {"name": "n"}}, 400),
        ({"metadata": {"name": "p"}, "target": {"kind": "Minion", "name": "n"}}, 500),
    ],
)
async def test_a_binding_that_is_not_meant_for_the_pod_is_refused(body: Any, status: int) -> None:
    """The pod stays without a node."""
    harness = await built_in()
    await harness.json("POST", f"{NS}/pods", POD)
    assert (await harness.send("POST", f"{NS}/pods/p/binding", body)).status == status
    assert "nodeName" not in (await harness.json("GET", f"{NS}/pods/p"))["spec"]


async def test_a_pod_is_bound_once() -> None:
    """Also by a dry run not at all."""
    harness = await built_in()
    await harness.json("POST", f"{NS}/pods", POD)
    await harness.json("POST", f"{NS}/pods/p/binding", binding(), dryRun="All")
    await harness.json("POST", f"{NS}/bindings", binding())
    again = await harness.send("POST", f"{NS}/pods/p/binding", binding())
    assert decoded(again)["details"] == {"name": "p", "kind": "pods/binding"}


async def running_pod(harness: Harness) -> None:
    await harness.json("POST", f"{NS}/pods", POD)
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    headers = {"content-type": MERGE_PATCH}
    assert (await harness.send("PATCH", f"{NS}/pods/p/status", status, headers)).status == 200


async def budget(harness: Harness, allowed: int) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    await harness.json("POST", BUDGETS, {"metadata": {"name": "b"}, "spec": spec})
    status = {"observedGeneration": 1, "disruptionsAllowed": allowed, "desiredHealthy": 1}
    headers = {"content-type": MERGE_PATCH}
    change = {"status": {**status, "currentHealthy": 1, "expectedPods": 1}}
    assert (await harness.send("PATCH", f"{BUDGETS}/b/status", change, headers)).status == 200


async def test_an_eviction_spends_the_budget() -> None:
    """And is refused when it is spent."""
    harness = await built_in()
    await running_pod(harness)
    await budget(harness, allowed=1)
    eviction = {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 0}}
    await harness.json("POST", f"{NS}/pods/p/eviction", eviction)
    assert (await harness.send("GET", f"{NS}/pods/p")).status == 404
    spent = await harness.json("GET", f"{BUDGETS}/b")
    assert spent["status"]["disruptionsAllowed"] == 0
    assert list(spent["status"]["disruptedPods"]) == ["p"]
    await running_pod(harness)
    refused = await harness.send("POST", f"{NS}/pods/p/eviction", eviction)
    assert (refused.status, decoded(refused)["reason"]) == (429, "TooManyRequests")


@pytest.mark.parametrize("first", ["eviction", "change"])
async def test_a_pod_changes_while_it_is_evicted(first: str, tmp_path: Path) -> None:
    """On a disk, where writes take a while, the budget is charged once, and for a pod that goes."""
    with Store.open(tmp_path / "store") as store:
        harness = await built_in(store)
        await running_pod(harness)
        await budget(harness, allowed=1)
        eviction = {"metadata": {"name": "p"}, "deleteOptions": {"gracePeriodSeconds": 0}}
        label = {"metadata": {"labels": {"more": "y"}}}
        requests = {
            "eviction": harness.send("POST", f"{NS}/pods/p/eviction", eviction),
            "change": harness.send("PATCH", f"{NS}/pods/p", label, {"content-type": MERGE_PATCH}),
        }
        order = [first, *(name for name in requests if name != first)]
        answers = await asyncio.gather(*(requests[name] for name in order))
        status = {name: answer.status for name, answer in zip(order, answers, strict=True)}
        assert status == {"eviction": 201, "change": 404 if first == "eviction" else 200}
        spent = await harness.json("GET", f"{BUDGETS}/b")
        assert spent["status"]["disruptionsAllowed"] == 0
        assert (await harness.send("GET", f"{NS}/pods/p")).status == 404


async def test_an_eviction_that_is_refused_charges_no_budget() -> None:
    """The pod is another one than was meant."""
    harness = await built_in()
    await running_pod(harness)
    await budget(harness, allowed=1)
    meant = {"preconditions": {"uid": "another"}}
    refused = await harness.send(
        "POST", f"{NS}/pods/p/eviction", {"metadata": {"name": "p"}, "deleteOptions": meant}
    )
    assert refused.status == 409
    assert (await harness.json("GET", f"{BUDGETS}/b"))["status"]["disruptionsAllowed"] == 1


async def test_a_pod_that_does_not_run_is_evicted_whatever_the_budget() -> None:
    """It disrupts nothing."""
    harness = await built_in()
    await harness.json("POST", f"{NS}/pods", POD)
    await budget(harness, allowed=0)
    await harness.json("POST", f"{NS}/pods/p/eviction", {"metadata": {"name": "p"}})
    assert (await harness.send("GET", f"{NS}/pods/p")).status == 404


async def test_a_scale_is_a_view_of_its_parent() -> None:
    """Read, replaced and patched; the writer owns the number of replicas."""
    harness = await built_in()
    template = {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await harness.json("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})
    scale = await harness.json("GET", f"{DEPLOYMENTS}/d/scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 1}, {"replicas": 0, "selector": "a=b"})
    scale["spec"]["replicas"] = 3
    replaced = await harness.json("PUT", f"{DEPLOYMENTS}/d/scale", scale)
    assert replaced["spec"]["replicas"] == 3
    stale = await harness.send("PUT", f"{DEPLOYMENTS}/d/scale", scale)
    assert stale.status == 409
    headers = {"content-type": MERGE_PATCH, "user-agent": "scaler/1"}
    change = {"spec": {"replicas": 5}}
    await harness.send("PATCH", f"{DEPLOYMENTS}/d/scale", change, headers)
    parent = await harness.json("GET", f"{DEPLOYMENTS}/d")
    owners = {
        entry["manager"]: entry.get("subresource") for entry in parent["metadata"]["managedFields"]
    }
    assert parent["spec"]["replicas"] == 5
    assert owners["scaler"] == "scale"


async def test_a_negative_scale_is_invalid() -> None:
    """And said of the Scale, not of its parent."""
    harness = await built_in()
    template = {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await harness.json("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})
    headers = {"content-type": MERGE_PATCH}
    response = await harness.send(
        "PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -1}}, headers
    )
    assert decoded(response)["details"]["kind"] == "Scale"


@pytest.mark.parametrize(
    ("part", "status"), [("log", 204), ("exec", 400), ("attach", 400), ("portforward", 400)]
)
async def test_a_pod_without_a_node_cannot_be_reached(part: str, status: int) -> None:
    """It has no log yet, and nothing to attach to."""
    harness = await built_in()
    await harness.json("POST", f"{NS}/pods", POD)
    assert (await harness.send("GET", f"{NS}/pods/p/{part}")).status == status
