"""A claim that a running pod uses keeps its devices."""

from __future__ import annotations

from typing import Any

import pytest
from holdings.claims import CLAIMS, MERGE, PODS, Guarded, guarded, result

PROTECTION = "resource.kubernetes.io/delete-protection"
CLAIM = f"{CLAIMS}/c"


async def running(here: Guarded, *, node: str = "n1", phase: str = "Running") -> str:
    """A pod that was bound with the claim `c`. Its uid."""
    await here.make("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
    spec: dict[str, Any] = {
        "containers": [{"name": "x", "image": "i"}],
        "resourceClaims": [{"name": "g", "resourceClaimName": "c"}],
    }
    if node:
        spec["nodeName"] = node
    pod = await here.make(PODS, {"metadata": {"name": "p"}, "spec": spec})
    await here.send("PATCH", f"{PODS}/p/status", {"status": {"phase": phase}}, MERGE)
    await here.send("PATCH", CLAIM, {"metadata": {"finalizers": [PROTECTION]}}, MERGE)
    await here.allocate("c", result("gpu-0"))
    consumer = {"resource": "pods", "name": "p", "uid": pod["metadata"]["uid"]}
    code, answer = await here.send(
        "PATCH", f"{CLAIM}/status", {"status": {"reservedFor": [consumer]}}, MERGE
    )
    assert code == 200, answer
    return str(pod["metadata"]["uid"])


TAKING = {
    "the finalizer is stripped": (CLAIM, {"metadata": {"finalizers": None}}),
    "the allocation is removed": (
        f"{CLAIM}/status",
        {"status": {"allocation": None, "reservedFor": None}},
    ),
    "the reservation is removed": (f"{CLAIM}/status", {"status": {"reservedFor": None}}),
}


@pytest.mark.parametrize("name", TAKING)
async def test_a_claim_is_not_taken_from_a_running_pod(name: str) -> None:
    """403, which names the pod and its node; nothing has changed."""
    path, change = TAKING[name]
    async with guarded("c") as here:
        await running(here)
        before = (await here.send("GET", CLAIM))[1]
        code, answer = await here.send("PATCH", path, change, MERGE)
        assert (code, answer["message"]) == (
            403,
            'resourceclaims.resource.k8s.io "c" is forbidden: pod "p" on node "n1" uses its devices, which stay '
            "with it until the pod has ended",
        )
        assert (await here.send("GET", CLAIM))[1] == before


@pytest.mark.parametrize("name", TAKING)
@pytest.mark.parametrize("pod", ["finished", "gone", "not bound", "another"])
async def test_a_claim_is_released_when_its_pod_has_ended(name: str, pod: str) -> None:
    """Or was deleted, was never bound, or is another one of the same name."""
    path, change = TAKING[name]
    async with guarded("c") as here:
        phase = "Succeeded" if pod == "finished" else "Running"
        await running(here, node="" if pod == "not bound" else "n1", phase=phase)
        if pod in ("gone", "another"):
            options = {"gracePeriodSeconds": 0}
            assert (await here.send("DELETE", f"{PODS}/p", options))[0] == 200
        if pod == "another":
            spec = {"containers": [{"name": "x", "image": "i"}], "nodeName": "n1"}
            await here.make(PODS, {"metadata": {"name": "p"}, "spec": spec})
        assert (await here.send("PATCH", path, change, MERGE))[0] == 200


async def test_deletion_waits_for_the_pod() -> None:
    """A protected claim is only marked, and its finalizer stays as long as the pod runs."""
    async with guarded("c") as here:
        await running(here)
        code, marked = await here.send("DELETE", CLAIM)
        assert code == 200
        assert "deletionTimestamp" in marked["metadata"]
        assert (await here.send("PATCH", CLAIM, {"metadata": {"finalizers": []}}, MERGE))[0] == 403
        await here.send("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
        assert (await here.send("PATCH", CLAIM, {"metadata": {"finalizers": []}}, MERGE))[0] == 200
        assert (await here.send("GET", CLAIM))[0] == 404


async def test_other_consumers_and_labels_may_change() -> None:
    """What a running pod does not need is free to change."""
    async with guarded("c") as here:
        uid = await running(here)
        own = {"resource": "pods", "name": "p", "uid": uid}
        other = {"resource": "pods", "name": "q", "uid": "u2"}
        for consumers in ([own, other], [own]):
            change = {"status": {"reservedFor": consumers}}
            assert (await here.send("PATCH", f"{CLAIM}/status", change, MERGE))[0] == 200
        label = {"metadata": {"labels": {"a": "b"}}}
        assert (await here.send("PATCH", CLAIM, label, MERGE))[0] == 200
