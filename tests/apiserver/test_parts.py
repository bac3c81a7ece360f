"""Writes of parts come to the same as patches through each endpoint, down to who owns which field."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.building import CountingIds, FixedClock
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.requests.calls import Call
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.backend import ServerBackend
from drayman.apiserver.verbs.parts import endpoint_calls
from drayman.apiserver.verbs.quick_parts import changed_quickly
from drayman.cluster import CreateWrite, InProcessClient, PartsWrite, WriteOptions, json_patch
from drayman.cluster.embedded import Store
from drayman.cluster.errors import StatusError
from drayman.cluster.resources import RESOURCE_CLAIMS, JsonObject, Resource, generic
from drayman.cluster.writes import Parts, by_endpoint
from rounds import rounds

CLAIMS = RESOURCE_CLAIMS.as_values()
PODS = generic("v1", "pods", "Pod")

FINALIZERS = ("metadata", "finalizers")
ALLOCATION = ("status", "allocation")
RESERVED = ("status", "reservedFor")
DEVICES = ("status", "devices")
CONDITIONS = ("status", "conditions")

CLAIM: JsonObject = {
    "metadata": {"name": "x", "labels": {"a": "b"}},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
}
POD: JsonObject = {
    "metadata": {"name": "x"},
    "spec": {
        "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "g"}]}}],
        "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}],
    },
}


def allocated(device: str, **more: Any) -> JsonObject:
    result = {"request": "r", "driver": "gpu.example.com", "pool": "p", "device": device}
    return {"devices": {"results": [result | more]}}


SELECTOR = {
    "nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    ]
}


def consumer(number: int) -> JsonObject:
    return {"resource": "pods", "name": f"p{number}", "uid": f"uid-{number}"}


def condition(kind: str, status: str, **more: Any) -> JsonObject:
    return {"type": kind, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z", **more}


CLAIM_PARTS: dict[tuple[str, ...], list[Any]] = {
    FINALIZERS: [
        None,
        [],
        ["resource.kubernetes.io/delete-protection"],
        ["a.b/c", "a.b/d"],
        ["bad"],
    ],
    ALLOCATION: [
        None,
        allocated("d"),
        allocated("e") | {"nodeSelector": SELECTOR},
        allocated("d", tolerations=[{"key": "k", "value": "v"}]),
        allocated("d", consumedCapacity={"memory": "1000m"}, shareID=None),
        allocated("NOT A NAME"),
    ],
    RESERVED: [None, [], [consumer(1)], [consumer(2)], [consumer(1), consumer(2)]],
    DEVICES: [None, [{"driver": "gpu.example.com", "pool": "p", "device": "d"}]],
    ("metadata", "labels"): [{"a": "c"}, None],
}
POD_PARTS: dict[tuple[str, ...], list[Any]] = {
    CONDITIONS: [
        None,
        [condition("PodScheduled", "False", reason="Unschedulable", message="0/1")],
        [condition("PodScheduled", "True"), condition("Ready", "False", observedGeneration=1)],
        [condition("Ready", "True", lastProbeTime=None)],
    ],
    ("status", "phase"): ["Pending", "Running", "Succeeded"],
    ("status", "podIP"): ["10.0.0.1", "10.0.0.2", None],
    ("status", "nominatedNodeName"): ["node-a", "", "NOT A NAME"],
    ("status", "resourceClaimStatuses"): [
        None,
        [{"name": "g", "resourceClaimName": "x-g-1"}],
        [{"name": "unknown", "resourceClaimName": "y"}],
    ],
    ("status", "containerStatuses"): [
        [
            {
                "name": "c",
                "ready": True,
                "restartCount": 0,
                "image": "i",
                "imageID": "",
                "state": {"running": {}},
            }
        ]
    ],
    ("metadata", "labels"): [{"a": "b"}],
}


@dataclass
class Side:
    """A server with a clock and ids of its own, in step with those of the other side."""

    client: InProcessClient
    clock: FixedClock

    async def read(self, resource: Resource[JsonObject]) -> JsonObject:
        found = await self.client.get(resource, "x", "default")
        metadata = {k: v for k, v in found["metadata"].items() if k != "resourceVersion"}
        return found | {"metadata": metadata}


@asynccontextmanager
async def side() -> AsyncIterator[Side]:
    store = Store.open(None)
    try:
        clock = FixedClock()
        server = make_server(store, clock=clock, ids=CountingIds())
        await create_first_objects(server.core)
        yield Side(InProcessClient(ServerBackend(server.core)), clock)
    finally:
        store.close()


async def write_by_parts(
    side: Side, resource: Resource[JsonObject], parts: Parts, manager: str
) -> str:
    """The refusal, or nothing."""
    write = PartsWrite(resource, "x", "default", parts, field_manager=manager)
    try:
        await side.client.write_many([write])
    except StatusError as error:
        return str(error)
    return ""


async def write_by_patches(
    side: Side, resource: Resource[JsonObject], parts: Parts, manager: str
) -> str:
    for subresource, some in by_endpoint(parts, ""):
        patch = json_patch(
            [{"op": "add", "path": f"/{'/'.join(path)}", "value": v} for path, v in some.items()]
        )
        options = WriteOptions(field_manager=manager)
        try:
            await side.client.patch(
                resource, "x", patch, "default", subresource=subresource, options=options
            )
        except StatusError as error:
            return str(error)
    return ""


def sequences(choices: dict[tuple[str, ...], list[Any]]) -> st.SearchStrategy[Any]:
    some = st.dictionaries(
        st.sampled_from(list(choices)), st.integers(0, 9), min_size=1, max_size=3
    )
    parts = some.map(lambda found: {p: choices[p][n % len(choices[p])] for p, n in found.items()})
    return st.lists(st.tuples(parts, st.sampled_from(["one", "two"]), st.booleans()), max_size=5)


async def check_same(
    resource: Resource[JsonObject], obj: JsonObject, writes: list[tuple[Parts, str, bool]]
) -> None:
    async with side() as left, side() as right:
        for one in (left, right):
            await one.client.create(resource, obj, "default")
        for parts, manager, waits in writes:
            if waits:
                left.clock.pass_seconds(1)
                right.clock.pass_seconds(1)
            refusal = await write_by_parts(left, resource, parts, manager)
            if refusal:
                # Patches may have been half done by then; parts are all or nothing.
                assert await write_by_patches(right, resource, parts, manager)
                return
            assert not await write_by_patches(right, resource, parts, manager)
            assert await left.read(resource) == await right.read(resource)


@settings(max_examples=rounds(60), deadline=None)
@given(sequences(CLAIM_PARTS))
def test_claims(writes: list[tuple[Parts, str, bool]]) -> None:
    """Parts of claims are written, refused and owned as patches would have it."""
    asyncio.run(check_same(CLAIMS, CLAIM, writes))


@settings(max_examples=rounds(60), deadline=None)
@given(sequences(POD_PARTS))
def test_pods(writes: list[tuple[Parts, str, bool]]) -> None:
    """Parts of pods are written, refused and owned as patches would have it."""
    asyncio.run(check_same(PODS, POD, writes))


QUICK: dict[str, tuple[Resource[JsonObject], JsonObject, Parts]] = {
    "allocation": (
        RESOURCE_CLAIMS.as_values(),
        CLAIM,
        {FINALIZERS: ["a.b/c"], ALLOCATION: allocated("d"), RESERVED: [consumer(1)]},
    ),
    "condition": (PODS, POD, {CONDITIONS: [condition("PodScheduled", "False", reason="x")]}),
    "claims of a pod": (
        PODS,
        POD,
        {("status", "resourceClaimStatuses"): [{"name": "g", "resourceClaimName": "x-g-1"}]},
    ),
}


@pytest.mark.parametrize(("resource", "obj", "parts"), QUICK.values(), ids=QUICK)
async def test_the_short_way(resource: Resource[JsonObject], obj: JsonObject, parts: Parts) -> None:
    """What schedulers write all the time goes the short way, which leaves the stored object as it was."""
    store = Store.open(None)
    try:
        core = make_server(store).core
        await create_first_objects(core)
        client = InProcessClient(ServerBackend(core))
        made = await client.create(resource, obj, "default")
        served = core.resources.find(resource.group, resource.version, resource.plural)
        assert served is not None
        call = Call(core, served, resource.version, "patch", "default", "x")
        call.write = WriteOptions(field_manager="m")
        stored = store.latest(call.key)
        assert stored is not None
        new = changed_quickly(endpoint_calls(call, parts), stored.value)
        assert new is not None
        assert new != stored.value
        assert stored.value == made
    finally:
        store.close()


async def test_one_revision() -> None:
    """However many endpoints the parts belong to, the object changes once."""
    store = Store.open(None)
    try:
        core = make_server(store).core
        await create_first_objects(core)
        client = InProcessClient(ServerBackend(core))
        await client.write_many([CreateWrite(CLAIMS, CLAIM, "default")])
        before = store.revision
        parts = {FINALIZERS: ["a.b/c"], ALLOCATION: allocated("d"), RESERVED: [consumer(1)]}
        await client.write_many([PartsWrite(CLAIMS, "x", "default", parts)])
        assert store.revision == before + 1
        written = await client.get(CLAIMS, "x", "default")
        owners = [
            (e["manager"], e.get("subresource")) for e in written["metadata"]["managedFields"]
        ]
        assert owners == [("drayman", None), ("drayman", "status")]
    finally:
        store.close()


async def test_the_last_finalizer() -> None:
    """Taking the last finalizer from an object that is being deleted ends it."""
    async with side() as one:
        kept = CLAIM | {"metadata": {"name": "x", "finalizers": ["a.b/c"]}}
        await one.client.create(CLAIMS, kept, "default")
        await one.client.delete(CLAIMS, "x", "default")
        await one.client.write_many([PartsWrite(CLAIMS, "x", "default", {FINALIZERS: None})])
        page = await one.client.list(CLAIMS, "default")
        assert page.items == ()
