"""What waiting pods are told follows what holds: the reason in the condition changes with the cluster, for copies of a pod too."""

from __future__ import annotations

from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import DRIVER, conditional, message_of


async def test_the_reason_changes(cluster: Cluster) -> None:
    """A device that is in use, is tainted as well, and then cannot be had at all."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await stage.make_claim("taken")
        await stage.start_pod("first", "taken")
        await stage.bound("first")
        await stage.make_claim("c")
        await stage.start_pod("p", "c")
        message = await stage.refused("p", "DevicesInUse (not now): Claim c, request r")
        assert message.startswith("0/1 nodes are available: 1 cannot allocate all claims.")
        await stage.rule("rule", "NoSchedule", driver=DRIVER)
        await stage.refused("p", "DevicesTainted (held): Claim c, request r")


async def test_copies_hear_of_it(cluster: Cluster) -> None:
    """Of pods that wait for the same, one is tried for all; the others are told what it was told, with their own claims."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a")
        names = [f"p{n}" for n in range(3)]
        for name in names:
            await stage.make_claim(f"claim-of-{name}")
            await stage.start_pod(name, f"claim-of-{name}")
        for name in names:
            await stage.refused(name, f"NoDevices (never): Claim claim-of-{name}")
        await stage.rule("rule", "NoSchedule", driver=DRIVER)
        await stage.node("node-b", "gpu-0")
        for name in names:
            await stage.refused(name, f"DevicesTainted (held): Claim claim-of-{name}")


async def test_a_pod_that_waits_for_its_devices_is_told_so(cluster: Cluster) -> None:
    """What was said before a node was found no longer holds, and is gone when the pod is bound."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.make_claim("c")
        await stage.start_pod("p", "c")
        await stage.refused("p", "NoNodes (never)")
        await stage.node("node-a", conditional("gpu-0"))
        await stage.refused("p", "DevicesNotReady (held): Claim c", "gpu-0")
        await stage.report("c", "gpu-0", "node-a", Ready="True")
        await stage.bound("p")
        await stage.until_pod("p", lambda pod: not message_of(pod))
