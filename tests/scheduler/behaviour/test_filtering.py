"""spec/dra.md 5.4: which nodes are left for a pod, and what it is told about the others."""

from __future__ import annotations

from controllers.world import CLAIM_VALUES
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import (
    Stage,
    conditional,
    device,
    devices_of,
    users_of,
    wants,
)

MODEL = 'device.attributes["gpu.example.com"].model == "big"'


def _model(name: str, model: str) -> dict[str, object]:
    return device(name, attributes={"model": {"string": model}})


async def _two_nodes(stage: Stage) -> None:
    await stage.device_class()
    await stage.node("node-a", "gpu-0")
    await stage.node("node-b", "gpu-0")


async def test_devices_of_a_claim_are_elsewhere(cluster: Cluster) -> None:
    """A node from which a claim in use cannot be reached is none for the pod."""
    async with cluster() as stage:
        await _two_nodes(stage)
        await stage.make_claim("c")
        await stage.start_pod("first", "c", nodeSelector={"kubernetes.io/hostname": "node-a"})
        await stage.bound("first")
        await stage.start_pod("p", "c", nodeSelector={"kubernetes.io/hostname": "node-b"})
        await stage.refused("p", "resourceclaim not available on the node")
        await stage.keeps_waiting("p")


async def test_a_request_that_no_device_meets_is_explained(cluster: Cluster) -> None:
    """The pod is told the reason, which claim and request, and what has become of the devices that match."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", _model("gpu-0", "big"), _model("gpu-1", "small"))
        await stage.make_claim("taken", wants(select=MODEL))
        await stage.start_pod("first", "taken")
        await stage.bound("first")
        await stage.make_claim("c", wants("mine", select=MODEL))
        await stage.start_pod("p", "c")
        words = ("DevicesInUse (not now): Claim c, request mine wants 1 device;", "in use")
        message = await stage.refused("p", *words)
        assert message.startswith("0/1 nodes are available")


async def test_all_claims_of_a_pod_or_none(cluster: Cluster) -> None:
    """Two claims of which only one can be served on each node: nothing is allocated."""
    async with cluster() as stage:
        await _two_nodes(stage)
        await stage.make_claim("c")
        await stage.make_claim("d")
        await stage.start_pod("p", "c", "d")
        await stage.refused("p", "cannot allocate all claims")
        await stage.free("c")
        await stage.free("d")


async def test_an_expression_that_fails_on_one_node_spares_the_others(cluster: Cluster) -> None:
    """A selector that cannot be evaluated on a device makes that node unfit, and the pod goes to another."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await stage.node("node-b", _model("gpu-0", "big"))
        await stage.make_claim("c", wants(select=MODEL))
        await stage.start_pod("p", "c")
        assert await stage.bound("p") == "node-b"


async def test_an_expression_that_fails_everywhere_is_reported(cluster: Cluster) -> None:
    """The pod waits, and its owner learns about the expression."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await stage.make_claim("c", wants(select=MODEL))
        await stage.start_pod("p", "c")
        await stage.refused("p", "AttributeUnknown (never): Claim c", "model")


async def test_a_node_without_devices_is_passed_over(cluster: Cluster) -> None:
    """Devices decide between nodes that are equal otherwise."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a")
        await stage.node("node-b", "gpu-0")
        await stage.make_claim("c")
        await stage.start_pod("p", "c")
        assert await stage.bound("p") == "node-b"


async def test_devices_that_several_nodes_reach(cluster: Cluster) -> None:
    """A device of the network serves a pod on whatever node it has to be, and only one at a time."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a")
        await stage.node("node-b")
        await stage.slice("network", "disk-0", allNodes=True)
        await stage.make_claim("c")
        await stage.make_claim("d")
        await stage.start_pod("p", "c", nodeSelector={"kubernetes.io/hostname": "node-b"})
        assert await stage.bound("p") == "node-b"
        await stage.start_pod("q", "d")
        await stage.refused("q", "in use")


async def test_a_claim_that_failed_to_become_ready_is_not_available(cluster: Cluster) -> None:
    """A pod that wants to join a claim whose driver reports a failure is not bound beside it."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", conditional("gpu-0"))
        await stage.make_claim("c")
        await stage.start_pod("first", "c")
        await stage.allocated("c")
        await stage.report("c", "gpu-0", "node-a", Ready="True")
        await stage.bound("first")
        await stage.report("c", "gpu-0", "node-a", Ready="True", Failed="True")
        await stage.start_pod("p", "c")
        await stage.refused("p", "not available")
        assert users_of(await stage.allocated("c")) == ["first"]


async def test_what_the_node_lacks_besides_devices(cluster: Cluster) -> None:
    """Devices do not help where CPU is short, and the claim stays free for others."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await stage.make_claim("c")
        await stage.start_pod("p", "c", requests={"cpu": "100"})
        await stage.refused("p", "Insufficient cpu")
        await stage.free("c")
        await stage.start_pod("q", "c")
        await stage.bound("q")
        assert devices_of(await stage.allocated("c")) == ["gpu-0"]
        await stage.patch(CLAIM_VALUES, "c", {"metadata": {"labels": {"seen": "yes"}}})
        await stage.keeps_waiting("p")
