"""spec/dra.md 2.4: pods leave devices that are tainted with NoExecute."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.world import stays
from drayman.cluster.resources import NAMESPACES, JsonObject
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import (
    DRIVER,
    RULE_VALUES,
    SLICE_VALUES,
    Stage,
    device,
    tainted,
    tolerates,
    wants,
)

SLICE = f"{DRIVER}-node-a-1"


async def _running(stage: Stage, **request: Any) -> None:
    """A pod `p` on the only device."""
    await stage.device_class()
    await stage.node("node-a", "gpu-0")
    await stage.make_claim("c", wants(**request))
    await stage.start_pod("p", "c")
    await stage.bound("p")


async def _evicted(stage: Stage, name: str = "p") -> None:
    """Told, marked and deleted. There is no kubelet, so the pod stays until its grace period is over."""
    event = await stage.event(name, "DeviceTaintManagerEviction")
    assert event["type"] == "Normal"
    pod = await stage.until_pod(name, lambda pod: pod.metadata.deletion_timestamp is not None)
    (condition,) = [c for c in pod.status.conditions if c.type_ == "DisruptionTarget"]
    assert (condition.status, condition.reason) == ("True", "DeletionByDeviceTaintManager")


async def test_a_taint_of_the_device_evicts(cluster: Cluster) -> None:
    """NoExecute in the slice: an event, a condition, and the pod is deleted."""
    async with cluster() as stage:
        await _running(stage)
        await stage.publish(SLICE, tainted("gpu-0", "NoExecute"))
        await _evicted(stage)


async def test_a_rule_evicts(cluster: Cluster) -> None:
    """So does a rule that selects the device."""
    async with cluster() as stage:
        await _running(stage)
        await stage.rule("rule", "NoExecute", driver=DRIVER, pool="node-a", device="gpu-0")
        await _evicted(stage)


async def test_a_rule_evicts_from_a_device_that_is_gone(cluster: Cluster) -> None:
    """Rules go by driver, pool and device name, whether or not the device is still published."""
    async with cluster() as stage:
        await _running(stage)
        await stage.delete(SLICE_VALUES, SLICE)
        await stage.rule("rule", "NoExecute", driver=DRIVER)
        await _evicted(stage)


@pytest.mark.parametrize("effect", ["NoSchedule", "None"])
async def test_other_effects_evict_nobody(cluster: Cluster, effect: str) -> None:
    """NoSchedule keeps new pods away and None only informs; who runs goes on running."""
    async with cluster() as stage:
        await _running(stage)
        await stage.publish(SLICE, tainted("gpu-0", effect))
        await stage.rule("rule", effect, driver=DRIVER)
        await stage.stays_bound("p")


async def test_a_rule_for_other_devices_evicts_nobody(cluster: Cluster) -> None:
    """A rule concerns the devices that it selects."""
    async with cluster() as stage:
        await _running(stage)
        await stage.rule("rule", "NoExecute", driver=DRIVER, device="gpu-1")
        await stage.stays_bound("p")


async def test_a_rule_without_selector_selects_nothing(cluster: Cluster) -> None:
    """Neither the scheduler nor the eviction sees any device in it."""
    async with cluster() as stage:
        await stage.rule("rule", "NoExecute")
        await _running(stage)
        await stage.stays_bound("p")


async def test_an_old_generation_evicts_nobody(cluster: Cluster) -> None:
    """Only slices of the highest generation of a pool count."""
    async with cluster() as stage:
        await _running(stage)
        await stage.slice("node-a", "gpu-0", nodeName="node-a", generation=2)
        await stage.publish(SLICE, tainted("gpu-0", "NoExecute"))
        await stage.stays_bound("p")


@pytest.mark.parametrize("toleration", [{"effect": "NoExecute"}, {}])
async def test_a_toleration_without_end_keeps_the_pod(
    cluster: Cluster, toleration: JsonObject
) -> None:
    """For NoExecute, or for all effects, which is what an absent effect stands for."""
    async with cluster() as stage:
        await _running(stage, tolerations=tolerates(**toleration))
        await stage.publish(SLICE, tainted("gpu-0", "NoExecute"))
        await stage.stays_bound("p")


async def test_a_toleration_of_another_effect_does_not_help(cluster: Cluster) -> None:
    """Tolerating NoSchedule says nothing about NoExecute."""
    async with cluster() as stage:
        await _running(stage, tolerations=tolerates(effect="NoSchedule"))
        await stage.publish(SLICE, tainted("gpu-0", "NoExecute"))
        await _evicted(stage)


async def test_a_toleration_with_an_end_comes_to_it(cluster: Cluster) -> None:
    """When the seconds that it tolerates are over, counted from the time of the taint, the pod goes."""
    async with cluster() as stage:
        await _running(stage, tolerations=tolerates(effect="NoExecute", tolerationSeconds=1))
        await stage.publish(SLICE, tainted("gpu-0", "NoExecute"))
        await _evicted(stage)


async def test_the_shortest_toleration_counts(cluster: Cluster) -> None:
    """Of several tolerations with an end the pod has the least time."""
    async with cluster() as stage:
        long, short = (
            tolerates(effect="NoExecute", tolerationSeconds=seconds)[0] for seconds in (600, 0)
        )
        await _running(stage, tolerations=[long, short])
        await stage.publish(SLICE, tainted("gpu-0", "NoExecute"))
        await _evicted(stage)


async def test_a_taint_that_goes_in_time_is_forgiven(cluster: Cluster) -> None:
    """A pod that was to be evicted later is told that it stays."""
    async with cluster() as stage:
        await _running(stage, tolerations=tolerates(effect="NoExecute", tolerationSeconds=600))
        await stage.rule("rule", "NoExecute", driver=DRIVER)
        await stage.rule_status("rule", lambda c: c.get("status") == "True")
        await stage.delete(RULE_VALUES, "rule")
        event = await stage.event("p", "DeviceTaintManagerEviction")
        assert "ancel" in event["note"]
        await stage.stays_bound("p")


async def test_admin_access_is_no_excuse(cluster: Cluster) -> None:
    """Pods with admin access are evicted like others."""
    async with cluster() as stage:
        labels = {"resource.kubernetes.io/admin-access": "true"}
        await stage.patch(NAMESPACES.as_values(), "default", {"metadata": {"labels": labels}})
        await _running(stage, adminAccess=True)
        await stage.publish(SLICE, tainted("gpu-0", "NoExecute"))
        await _evicted(stage)


async def test_extended_resources_are_no_excuse(cluster: Cluster) -> None:
    """A pod that got its device as an extended resource is evicted like others."""
    async with cluster() as stage:
        await stage.device_class(extendedResourceName="example.com/gpu")
        await stage.node("node-a", "gpu-0")
        await stage.start_pod("p", requests={"example.com/gpu": "1"})
        await stage.bound("p")
        await stage.publish(SLICE, tainted("gpu-0", "NoExecute"))
        await _evicted(stage)


async def test_only_pods_with_a_node_are_evicted(cluster: Cluster) -> None:
    """A pod that waits beside the claim is left alone."""
    async with cluster() as stage:
        await _running(stage)
        await stage.start_pod("other", "c", nodeSelector={"none": "such"})
        await stage.publish(SLICE, tainted("gpu-0", "NoExecute"))
        await _evicted(stage)
        await stage.stays_bound("other")


async def test_all_users_of_a_shared_claim_go(cluster: Cluster) -> None:
    """Every pod that has a node and is among the users of the claim."""
    async with cluster() as stage:
        await _running(stage)
        await stage.start_pod("q", "c")
        await stage.bound("q")
        await stage.publish(SLICE, tainted("gpu-0", "NoExecute"))
        await _evicted(stage, "p")
        await _evicted(stage, "q")


class TestRuleStatus:
    """The condition EvictionInProgress of a rule."""

    async def test_pods_are_pending(self, cluster: Cluster) -> None:
        """True while pods are to be evicted, with their number."""
        async with cluster() as stage:
            await _running(stage, tolerations=tolerates(effect="NoExecute", tolerationSeconds=600))
            await stage.rule("rule", "NoExecute", driver=DRIVER)
            status = await stage.rule_status("rule", lambda c: c.get("status") == "True")
            assert (status["type"], status["reason"]) == (
                "EvictionInProgress",
                "PodsPendingEviction",
            )
            assert "1 pod" in status["message"]
            assert status["observedGeneration"] == 1

    async def test_nothing_to_do(self, cluster: Cluster) -> None:
        """False and NotStarted where nobody had to go."""
        async with cluster() as stage:
            await stage.rule("rule", "NoExecute", driver=DRIVER)
            status = await stage.rule_status("rule", lambda c: c.get("status") == "False")
            assert status["reason"] == "NotStarted"

    async def test_dry_run(self, cluster: Cluster) -> None:
        """With effect None: what would be evicted, were it NoExecute."""
        async with cluster() as stage:
            await _running(stage)
            await stage.rule("rule", "None", driver=DRIVER)
            status = await stage.rule_status("rule", lambda c: c.get("status") == "False")
            assert status["reason"] == "NoEffect"
            assert "1" in status["message"]
            await stage.stays_bound("p")

    async def test_other_effects(self, cluster: Cluster) -> None:
        """Any other effect has nothing to do with eviction."""
        async with cluster() as stage:
            await stage.rule("rule", "NoSchedule", driver=DRIVER)
            status = await stage.rule_status("rule", lambda c: c.get("status") == "False")
            assert status["reason"] == "OtherEffect"

    async def test_completed(self, cluster: Cluster) -> None:
        """False and Completed after the last pod was evicted."""
        async with cluster() as stage:
            await _running(stage)
            await stage.rule("rule", "NoExecute", driver=DRIVER)
            await _evicted(stage)
            status = await stage.rule_status("rule", lambda c: c.get("reason") == "Completed")
            assert status["status"] == "False"


async def test_an_evicted_pod_is_evicted_once(cluster: Cluster) -> None:
    """The pod that is already going is not told again."""
    async with cluster() as stage:
        await _running(stage)
        await stage.publish(SLICE, tainted("gpu-0", "NoExecute"))
        await _evicted(stage)
        gone = await stage.get_pod("p")
        await stage.publish(SLICE, tainted("gpu-0", "NoExecute"), device("gpu-1"))
        await stays(lambda: stage.get_pod("p"), lambda pod: pod == gone)
