"""Writes of parts: what is named changes, for the object that is meant, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.contract.clusters import Cluster
from cluster.contract.conftest import Open
from cluster.contract.objects import POD_VALUES, config_map, pod
from drayman.cluster import CreateWrite, PartsWrite
from drayman.cluster.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidError,
    NotFoundError,
    PartialWriteError,
)
from drayman.cluster.resources import CONFIG_MAPS, RESOURCE_CLAIMS, JsonObject

CLAIMS = RESOURCE_CLAIMS.as_values()
FINALIZERS = ("metadata", "finalizers")
ALLOCATION = ("status", "allocation")
RESERVED = ("status", "reservedFor")
CONDITIONS = ("status", "conditions")
PROTECTION = "resource.kubernetes.io/delete-protection"


def claim(name: str) -> JsonObject:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}


def allocation(device: str = "d") -> JsonObject:
    result = {"request": "r", "driver": "gpu.example.com", "pool": "node-a", "device": device}
    return {"devices": {"results": [result]}}


def consumer(uid: str) -> JsonObject:
    """One that no controller knows, so that none takes its reservation back."""
    return {"apiGroup": "example.com", "resource": "things", "name": f"thing-{uid}", "uid": uid}


async def write(
    cluster: Cluster, resource: Any, name: str, parts: dict[tuple[str, ...], Any], **how: str
) -> JsonObject:
    written = await cluster.client.write_many(
        [PartsWrite(resource, name, cluster.namespace, parts, **how)]
    )
    assert isinstance(written[0], dict)
    return written[0]


async def test_allocating_a_claim(open_cluster: Open) -> None:
    """Finalizer, allocation and reservation come in one write, and everything else stays."""
    async with open_cluster() as cluster:
        made = await cluster.client.create(CLAIMS, claim("c"), cluster.namespace)
        parts = {
            FINALIZERS: [PROTECTION],
            ALLOCATION: allocation(),
            RESERVED: [consumer("1")],
        }
        written = await write(cluster, CLAIMS, "c", parts, uid=made["metadata"]["uid"])
        assert written == await cluster.client.get(CLAIMS, "c", cluster.namespace)
        assert written["metadata"]["finalizers"] == [PROTECTION]
        assert written["status"] == {
            "allocation": allocation(),
            "reservedFor": [consumer("1")],
        }
        assert written["spec"] == made["spec"]
        await write(cluster, CLAIMS, "c", {FINALIZERS: None, ALLOCATION: None, RESERVED: None})


async def test_parts_are_replaced(open_cluster: Open) -> None:
    """A part is replaced, not merged into what was there."""
    async with open_cluster() as cluster:
        await cluster.client.create(CLAIMS, claim("c"), cluster.namespace)
        selector = {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
        }
        first = allocation() | {"nodeSelector": selector}
        await write(cluster, CLAIMS, "c", {ALLOCATION: first, RESERVED: [consumer("1")]})
        await write(cluster, CLAIMS, "c", {ALLOCATION: None, RESERVED: None})
        second = await write(cluster, CLAIMS, "c", {ALLOCATION: allocation("e")})
        assert second["status"] == {"allocation": allocation("e")}
        third = await write(cluster, CLAIMS, "c", {RESERVED: [consumer("1"), consumer("2")]})
        fourth = await write(cluster, CLAIMS, "c", {RESERVED: [consumer("2")]})
        assert len(third["status"]["reservedFor"]) == 2
        assert fourth["status"]["reservedFor"] == [consumer("2")]


async def test_removing_what_is_not_there(open_cluster: Open) -> None:
    """Taking away an absent part changes nothing."""
    async with open_cluster() as cluster:
        made = await cluster.client.create(CLAIMS, claim("c"), cluster.namespace)
        written = await write(cluster, CLAIMS, "c", {ALLOCATION: None, FINALIZERS: None})
        assert written == made


async def test_the_status_of_a_pod(open_cluster: Open) -> None:
    """Parts of the status go through its endpoint and leave the other parts of it alone."""
    async with open_cluster() as cluster:
        made = await cluster.client.create(POD_VALUES, pod("p"), cluster.namespace)
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "lastProbeTime": None,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        parts = {CONDITIONS: [condition], ("status", "nominatedNodeName"): "node-a"}
        written = await write(cluster, POD_VALUES, "p", parts)
        assert written["status"]["conditions"][0]["reason"] == "Unschedulable"
        assert written["status"]["nominatedNodeName"] == "node-a"
        assert written["status"]["qosClass"] == made["status"]["qosClass"]
        assert written["spec"] == made["spec"]


async def test_parts_of_any_kind(open_cluster: Open) -> None:
    """What is not in the status goes through the object itself; what holds a list or a scalar is made where it is missing."""
    async with open_cluster() as cluster:
        await cluster.client.create(CONFIG_MAPS, config_map("m", a="1"), cluster.namespace)
        parts = {("metadata", "annotations", "example.com/x"): "y", ("data", "b"): "2"}
        written = await write(cluster, CONFIG_MAPS, "m", parts)
        assert written["data"] == {"a": "1", "b": "2"}
        assert written["metadata"]["annotations"] == {"example.com/x": "y"}


async def test_the_wrong_object(open_cluster: Open) -> None:
    """Another uid or another version is a conflict, and nothing is written."""
    async with open_cluster() as cluster:
        made = await cluster.client.create(CLAIMS, claim("c"), cluster.namespace)
        parts = {FINALIZERS: [PROTECTION], ALLOCATION: allocation()}
        with pytest.raises(ConflictError):
            await write(cluster, CLAIMS, "c", parts, uid="00000000-0000-0000-0000-000000000000")
        version = made["metadata"]["resourceVersion"]
        changed = await write(cluster, CLAIMS, "c", {("metadata", "labels"): {"a": "b"}})
        with pytest.raises(ConflictError):
            await write(cluster, CLAIMS, "c", parts, resource_version=version)
        assert changed == await cluster.client.get(CLAIMS, "c", cluster.namespace)
        current = changed["metadata"]["resourceVersion"]
        written = await write(cluster, CLAIMS, "c", parts, resource_version=current)
        assert written["status"]["allocation"] == allocation()
        await write(cluster, CLAIMS, "c", {FINALIZERS: None, ALLOCATION: None})


async def test_no_object(open_cluster: Open) -> None:
    """There is nothing to write parts of where there is no object."""
    async with open_cluster() as cluster:
        with pytest.raises(NotFoundError):
            await write(cluster, CLAIMS, "absent", {RESERVED: []}, uid="1")


async def test_rules_hold(open_cluster: Open) -> None:
    """Parts are checked by the rules of their endpoint."""
    async with open_cluster() as cluster:
        made = await cluster.client.create(CLAIMS, claim("c"), cluster.namespace)
        with pytest.raises(InvalidError, match="reservedFor"):
            await write(cluster, CLAIMS, "c", {RESERVED: [consumer("1")]})
        with pytest.raises(InvalidError, match="finalizers"):
            await write(cluster, CLAIMS, "c", {FINALIZERS: ["unqualified"]})
        await write(cluster, CLAIMS, "c", {ALLOCATION: allocation()})
        with pytest.raises(InvalidError, match="immutable"):
            await write(cluster, CLAIMS, "c", {ALLOCATION: allocation("other")})
        read = await cluster.client.get(CLAIMS, "c", cluster.namespace)
        assert read["status"] == {"allocation": allocation()}
        assert "finalizers" not in read["metadata"]
        assert read["metadata"]["uid"] == made["metadata"]["uid"]


async def test_parts_among_other_writes(open_cluster: Open) -> None:
    """A batch may create an object and write its parts; a later refusal takes back what it can."""
    async with open_cluster() as cluster:
        client, namespace = cluster.client, cluster.namespace
        created, allocated = await client.write_many(
            [
                CreateWrite(CLAIMS, claim("c"), namespace),
                PartsWrite(CLAIMS, "c", namespace, {ALLOCATION: allocation()}),
            ]
        )
        assert isinstance(allocated, dict)
        assert allocated["status"]["allocation"] == allocation()
        assert created is not None
        refused = [
            CreateWrite(CLAIMS, claim("d"), namespace),
            PartsWrite(CLAIMS, "c", namespace, {RESERVED: [consumer("1")]}),
            CreateWrite(CLAIMS, claim("c"), namespace),
        ]
        if cluster.atomic:
            with pytest.raises(AlreadyExistsError):
                await client.write_many(refused)
            assert await client.get(CLAIMS, "c", namespace) == allocated
        else:
            with pytest.raises(PartialWriteError, match="parts of resourceclaims"):
                await client.write_many(refused)
        with pytest.raises(NotFoundError):
            await client.get(CLAIMS, "d", namespace)


async def test_no_parts(open_cluster: Open) -> None:
    """A write without parts, or of the object as a whole, makes no sense."""
    async with open_cluster() as cluster:
        await cluster.client.create(CLAIMS, claim("c"), cluster.namespace)
        for parts in ({}, {(): {}}):
            with pytest.raises(ValueError, match="at least one"):
                await write(cluster, CLAIMS, "c", parts)
