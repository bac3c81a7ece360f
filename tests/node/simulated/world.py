"""A cluster in memory with simulated nodes, and pods and claims as a scheduler would leave them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from drayman.api.struct import Json
from drayman.apiserver.instance.first_objects import create_first_objects
from drayman.apiserver.serving.assembly import make_server
from drayman.apiserver.serving.backend import ServerBackend
from drayman.cluster import InProcessClient, WatchOptions, generic, merge_patch
from drayman.cluster.embedded.store import Store
from drayman.cluster.errors import NotFoundError
from drayman.cluster.informers import Informers
from drayman.cluster.resources import EVENTS, NODES, PODS, RESOURCE_CLAIMS, Resource
from drayman.cluster.watching import Change
from drayman.drivers.profiles import parse_profiles, simulate
from drayman.node.simulated import SimulatedNode, SimulatedNodes, Timing

QUICK = Timing(
    prepare=0.005,
    start=0.005,
    stop=0.005,
    unprepare=0.02,
    bind=0.005,
    retry=0.02,
    crash=0.01,
    heartbeat=0.05,
)
POD_VALUES = PODS.as_values()
CLAIM_VALUES = RESOURCE_CLAIMS.as_values()
NODE_VALUES = NODES.as_values()
ACCOUNTS = generic("v1", "serviceaccounts", "ServiceAccount")
NAMESPACE = "default"

Object = dict[str, Json]


@dataclass(slots=True)
class World:
    """A client, and what simulates the nodes."""

    client: InProcessClient
    nodes: SimulatedNodes

    async def pod(
        self, name: str, node: str, *, claims: Sequence[str] = (), **more: Json
    ) -> Object:
        """Creates a pod that is bound to a node. `more`: annotations, and fields of the spec."""
        annotations = more.pop("annotations", {})
        container = {"name": "main", "image": "busybox"}
        spec = {
            "nodeName": node,
            "containers": [container],
            "resourceClaims": [
                {"name": f"c{i}", "resourceClaimName": c} for i, c in enumerate(claims)
            ],
            **more,
        }
        body = {"metadata": {"name": name, "annotations": annotations}, "spec": spec}
        made = await self.client.create(POD_VALUES, body, NAMESPACE)
        for claim in claims:
            await self.reserve(claim, made)
        return made

    async def claim(self, name: str, *devices: tuple[str, str, str], **more: Json) -> Object:
        """Creates a claim that has devices: (driver, pool, device).

        `more`: annotations, devices of the spec, configuration, fields of the results.
        """
        request = {"name": "all", "exactly": {"deviceClassName": "any", "allocationMode": "All"}}
        body = {
            "metadata": {"name": name, "annotations": more.pop("annotations", {})},
            "spec": {"devices": more.pop("spec", {"requests": [request]})},
        }
        first = body["spec"]["devices"]["requests"][0]["name"]
        config = more.pop("config", [])
        await self.client.create(CLAIM_VALUES, body, NAMESPACE)
        results = [
            {"request": first, "driver": driver, "pool": pool, "device": device, **more}
            for driver, pool, device in devices
        ]
        allocation = {"status": {"allocation": {"devices": {"results": results, "config": config}}}}
        return await self.client.patch(
            CLAIM_VALUES, name, merge_patch(allocation), NAMESPACE, subresource="status"
        )

    async def reserve(self, claim: str, pod: Object) -> None:
        found = await self.client.get(CLAIM_VALUES, claim, NAMESPACE)
        consumer = {"resource": "pods", **{k: pod["metadata"][k] for k in ("name", "uid")}}
        reserved = [*(found["status"].get("reservedFor") or ()), consumer]
        change = merge_patch({"status": {"reservedFor": reserved}})
        await self.client.patch(CLAIM_VALUES, claim, change, NAMESPACE, subresource="status")

    async def until(
        self, resource: Resource[Object], name: str, holds: Callable[[Object], bool]
    ) -> Object:
        """The object as soon as something holds of it. The time is bounded by that of the test."""
        namespace = NAMESPACE if resource.namespaced else None
        options = WatchOptions(field_selector=f"metadata.name={name}")
        async with self.client.watch(resource, namespace, options=options) as events:
            async for event in events:
                if isinstance(event, Change) and event.type != "DELETED" and holds(event.object):
                    return event.object
        raise AssertionError(f"the watch of {name} ended")

    async def until_phase(self, name: str, phase: str) -> Object:
        return await self.until(POD_VALUES, name, lambda pod: pod["status"].get("phase") == phase)

    async def until_gone(self, name: str) -> None:
        options = WatchOptions(field_selector=f"metadata.name={name}")
        async with self.client.watch(POD_VALUES, NAMESPACE, options=options) as events:
            try:
                await self.client.get(POD_VALUES, name, NAMESPACE)
            except NotFoundError:
                return
            async for event in events:
                if isinstance(event, Change) and event.type == "DELETED":
                    return
        raise AssertionError(f"the watch of {name} ended")

    async def event(self, reason: str) -> Object:
        async with self.client.watch(EVENTS, NAMESPACE, options=WatchOptions()) as events:
            async for event in events:
                if isinstance(event, Change) and event.object["reason"] == reason:
                    return event.object
        raise AssertionError("the watch of events ended")


@asynccontextmanager
async def connected(
    kind: type[InProcessClient] = InProcessClient,
) -> AsyncIterator[InProcessClient]:
    """A server in memory, and a client of some kind."""
    store = Store.open(None)
    try:
        server = make_server(store)
        await create_first_objects(server.core)
        async with kind(ServerBackend(server.core)) as client:
            await client.create(ACCOUNTS, {"metadata": {"name": "default"}}, NAMESPACE)
            yield client
    finally:
        store.close()


@asynccontextmanager
async def simulated(
    client: InProcessClient, profiles: str = "example=1", timing: Timing = QUICK
) -> AsyncIterator[World]:
    """Simulated nodes of some profiles."""
    hardware = simulate(parse_profiles(profiles))
    informers = Informers(client)
    nodes = SimulatedNodes(
        client,
        informers,
        [SimulatedNode(each.node, each.slices) for each in hardware.nodes],
        classes=hardware.classes,
        definitions=hardware.definitions,
        timing=timing,
    )
    await nodes.start()
    try:
        yield World(client, nodes)
    finally:
        await nodes.stop()
        await informers.stop()


@asynccontextmanager
async def world(profiles: str = "example=1", timing: Timing = QUICK) -> AsyncIterator[World]:
    async with connected() as client, simulated(client, profiles, timing) as made:
        yield made
