"""Nodes are registered once, send heartbeats while they live, and can be told to fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from drayman.api.struct import Json
from drayman.cluster import InProcessClient, WatchOptions, generic, json_patch, merge_patch
from drayman.cluster.resources import DEVICE_CLASSES, LEASES, NODES, PODS, RESOURCE_SLICES
from drayman.cluster.watching import Change
from drayman.cluster.writes import PatchWrite, Write
from node.simulated.world import NAMESPACE, NODE_VALUES, POD_VALUES, connected, simulated, world

FAIL = merge_patch({"metadata": {"annotations": {"drayman.dev/failed": "true"}}})
RECOVER = merge_patch({"metadata": {"annotations": {"drayman.dev/failed": None}}})


async def test_a_node_is_registered_with_everything_its_drivers_publish() -> None:
    """Node, lease, classes, and slices that the node owns, so that they go when it goes."""
    async with world("dgx-h100=1") as w:
        node = await w.client.get(NODE_VALUES, "dgx-h100-0")
        assert node["metadata"]["labels"]["drayman.dev/simulated"] == "true"
        assert node["status"]["addresses"]
        slices = (await w.client.list_all(RESOURCE_SLICES)).items
        assert {s.spec.driver for s in slices} == {
            "gpu.nvidia.com",
            "dra.net",
            "compute-domain.nvidia.com",
            "dra.cpu",
        }
        owners = {o.uid for s in slices for o in s.metadata.owner_references}
        assert owners == {node["metadata"]["uid"]}
        await w.client.get(DEVICE_CLASSES, "gpu.nvidia.com")
        await w.client.get(LEASES, "dgx-h100-0", "kube-node-lease")


async def test_vendor_kinds_are_served() -> None:
    """A ComputeDomain is accepted, because the driver's definition is installed."""
    domains = generic("resource.nvidia.com/v1beta1", "computedomains", "ComputeDomain")
    async with world("gb200-nvl72=1") as w:
        spec = {"numNodes": 2, "channel": {"resourceClaimTemplate": {"name": "channel"}}}
        made = await w.client.create(domains, {"metadata": {"name": "d"}, "spec": spec}, NAMESPACE)
        assert made["spec"]["channel"]["allocationMode"] == "Single"
        nodes = (await w.client.list_all(NODES)).items
        assert len(nodes) == 18
        assert len({n.metadata.labels["nvidia.com/gpu.clique"] for n in nodes}) == 1


async def test_a_restart_changes_nothing() -> None:
    """Nodes and slices keep their uids, and a device that was removed stays removed."""

    async def uids() -> dict[str, str]:
        nodes = (await client.list_all(NODES)).items
        slices = (await client.list_all(RESOURCE_SLICES)).items
        return {item.metadata.name: item.metadata.uid for item in (*nodes, *slices)}

    async with connected() as client:
        async with simulated(client, "example=2"):
            before = await uids()
            name = "example-0-gpu.example.com-00"
            await client.patch(
                RESOURCE_SLICES, name, json_patch([{"op": "remove", "path": "/spec/devices/0"}])
            )
        async with simulated(client, "example=2"):
            assert await uids() == before
            devices = (await client.get(RESOURCE_SLICES, name)).spec.devices or ()
            assert [d.name for d in devices] == [f"gpu-{i}" for i in range(1, 8)]


async def test_a_node_that_was_deleted_publishes_its_devices_anew() -> None:
    """Slices that the earlier node owned are garbage, even if nobody has collected them yet."""
    async with connected() as client:
        async with simulated(client, "example=2"):
            left = await client.get(RESOURCE_SLICES, "example-0-gpu.example.com-00")
            kept = await client.get(RESOURCE_SLICES, "example-1-gpu.example.com-00")
        await client.delete(NODES, "example-0")
        async with simulated(client, "example=2"):
            node = await client.get(NODES, "example-0")
            found = await client.get(RESOURCE_SLICES, "example-0-gpu.example.com-00")
            assert found.metadata.uid != left.metadata.uid
            assert [o.uid for o in found.metadata.owner_references] == [node.metadata.uid]
            same = await client.get(RESOURCE_SLICES, "example-1-gpu.example.com-00")
            assert same.metadata.uid == kept.metadata.uid


async def test_nodes_made_before_live_on_without_being_asked_for() -> None:
    """A process that is given no nodes simulates those that it finds with the label."""
    async with connected() as client:
        async with simulated(client, "example=1"):
            pass
        async with simulated(client, "") as w:
            assert w.nodes.living == ("example-0",)
            await w.pod("p", "example-0")
            await w.until_phase("p", "Running")


async def test_heartbeats_renew_the_lease() -> None:
    """The lease of a node that lives gets a new time again and again."""
    async with world() as w:
        times: set[str] = set()
        options = WatchOptions(field_selector="metadata.name=example-0")
        async with w.client.watch(LEASES, "kube-node-lease", options=options) as events:
            async for event in events:
                if isinstance(event, Change):
                    times.add(event.object["spec"]["renewTime"])
                if len(times) == 3:
                    break


async def test_a_failed_node_is_silent() -> None:
    """Its heartbeats stop and its pods do not move; when it recovers they do, and it says that it is ready."""
    async with world("example=2") as w:
        await w.client.patch(NODES, "example-0", FAIL)
        while w.nodes.living != ("example-1",):
            await asyncio.sleep(0.01)
        await w.pod("p", "example-0")
        await w.pod("other", "example-1")
        await w.until_phase("other", "Running")
        assert (await w.client.get(POD_VALUES, "p", NAMESPACE))["status"]["phase"] == "Pending"
        lost = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        await w.client.patch(
            NODES,
            "example-0",
            merge_patch({"status": {"conditions": [lost]}}),
            subresource="status",
        )
        await w.client.patch(NODES, "example-0", RECOVER)
        await w.until_phase("p", "Running")
        await w.until(NODE_VALUES, "example-0", is_ready)


def is_ready(node: dict[str, Json]) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"]["conditions"])


async def test_a_failed_node_does_not_finish_deletions() -> None:
    """A pod on it stays with its deletion time until the node answers again."""
    async with world() as w:
        await w.pod("p", "example-0")
        await w.until_phase("p", "Running")
        await w.client.patch(NODES, "example-0", FAIL)
        while w.nodes.living:
            await asyncio.sleep(0.01)
        await w.client.delete(PODS, "p", NAMESPACE)
        await asyncio.sleep(0.05)
        pod = await w.client.get(POD_VALUES, "p", NAMESPACE)
        assert pod["metadata"]["deletionTimestamp"]
        await w.client.patch(NODES, "example-0", RECOVER)
        await w.until_gone("p")


@pytest.mark.parametrize("count", [600])
async def test_many_pods_run(count: int) -> None:
    """Hundreds of pods that arrive together all run: what is due together is written together."""
    async with world("example=4") as w:
        for number in range(count):
            await w.pod(f"p{number}", f"example-{number % 4}")
        running: set[str] = set()
        async with w.client.watch(POD_VALUES, NAMESPACE, options=WatchOptions()) as events:
            async for event in events:
                if isinstance(event, Change) and event.object["status"]["phase"] == "Running":
                    running.add(event.object["metadata"]["name"])
                if len(running) == count:
                    break


class WithoutLeases(InProcessClient):
    """Raises what no client should when a lease is to be renewed."""

    async def write_all(self, writes: Sequence[Write]) -> None:
        if any(isinstance(write, PatchWrite) and write.resource is LEASES for write in writes):
            raise KeyError("a bug")
        await super().write_all(writes)


async def test_a_bug_that_ends_the_heartbeats_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """When it does: nobody waits for them."""
    async with connected(WithoutLeases) as client, simulated(client, "example=1"):
        while not caplog.records:
            await asyncio.sleep(0.02)
    (record,) = caplog.records
    assert record.getMessage() == "the heartbeat of simulated nodes has failed"
