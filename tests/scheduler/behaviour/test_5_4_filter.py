"""spec/dra.md 5.4: which nodes are left."""

from __future__ import annotations

from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import conditional, device, devices_of, wants


async def test_a_pod_without_claims_needs_no_devices(cluster: Cluster) -> None:
    """A pod that asks for nothing is bound to a node without devices."""
    async with cluster() as stage:
        await stage.node("node-a")
        await stage.start_pod("p")
        assert await stage.bound("p") == "node-a"
