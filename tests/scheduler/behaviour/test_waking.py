"""spec/dra.md 5.9: what brings a waiting pod back, row by row, and what does not."""

from __future__ import annotations

from typing import Any

from controllers.world import CLAIM_VALUES, NAMESPACE, POD_VALUES, stays
from drayman.cluster.resources import NAMESPACES, JsonObject
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import (
    ALLOCATABLE,
    CLASS_VALUES,
    DRIVER,
    NODE_VALUES,
    RULE_VALUES,
    SLICE_VALUES,
    Stage,
    from_template,
    message_of,
    tainted,
    wants,
)

NAMESPACE_VALUES = NAMESPACES.as_values()
_SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "x"}},
}


async def _waits(stage: Stage, *words: str, **spec: object) -> None:
    """A pod `p` with a claim `c` that has been refused."""
    await stage.make_claim("c")
    await stage.start_pod("p", "c", **spec)
    await stage.refused("p", *words)


async def test_a_node_comes(cluster: Cluster) -> None:
    """Node add."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.slice("network", "gpu-0")
        await _waits(stage, "no nodes")
        await stage.node("node-a")
        assert await stage.bound("p") == "node-a"


async def test_a_node_gets_a_label(cluster: Cluster) -> None:
    """Node label update: the node selector of the pod matches now."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await _waits(stage, "affinity/selector", nodeSelector={"disk": "fast"})
        await stage.patch(NODE_VALUES, "node-a", {"metadata": {"labels": {"disk": "fast"}}})
        assert await stage.bound("p") == "node-a"


async def test_a_node_gets_a_label_that_brings_devices(cluster: Cluster) -> None:
    """Node label update: the node selector of a slice matches now."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a")
        requirement = {"key": "rack", "operator": "In", "values": ["1"]}
        selector = {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
        await stage.slice("rack", "gpu-0", nodeSelector=selector)
        await _waits(stage, "Claim c")
        await stage.patch(NODE_VALUES, "node-a", {"metadata": {"labels": {"rack": "1"}}})
        assert await stage.bound("p") == "node-a"


async def test_a_node_has_more(cluster: Cluster) -> None:
    """Node allocatable update."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await stage.make_claim("c")
        await stage.start_pod("p", "c", requests={"cpu": "16"})
        await stage.refused("p", "Insufficient cpu")
        more = {"status": {"allocatable": {**ALLOCATABLE, "cpu": "32"}}}
        await stage.patch(NODE_VALUES, "node-a", more, "status")
        assert await stage.bound("p") == "node-a"


async def test_a_node_loses_a_taint(cluster: Cluster) -> None:
    """Node taint update."""
    async with cluster() as stage:
        await stage.device_class()
        taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
        await stage.node("node-a", "gpu-0", spec={"taints": [taint]})
        await _waits(stage, "untolerated taint")
        await stage.patch(NODE_VALUES, "node-a", {"spec": {"taints": None}})
        assert await stage.bound("p") == "node-a"


async def test_another_claim_gives_back(cluster: Cluster) -> None:
    """Any claim that loses its devices."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await stage.make_claim("other")
        await stage.start_pod("first", "other")
        await stage.bound("first")
        await _waits(stage, "in use")
        await stage.finish("first")
        assert await stage.bound("p") == "node-a"


async def test_many_wait_for_few(cluster: Cluster) -> None:
    """Each device that is given back serves one of those that wait for it, until all have run."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0", "gpu-1")
        await stage.make_template("t")
        names = [f"p{n}" for n in range(6)]
        for name in names:
            await stage.start_pod(name, from_template())
        for name in names:
            await stage.bound(name)
            await stage.finish(name)


async def test_the_own_claim_comes(cluster: Cluster) -> None:
    """A claim of the pod is added."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await stage.start_pod("p", "c")
        await stage.refused("p", "does not exist")
        await stage.make_claim("c")
        assert await stage.bound("p") == "node-a"


async def test_the_own_claim_is_allocated_by_somebody(cluster: Cluster) -> None:
    """The status of a claim of the pod changes."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a")
        await _waits(stage, "Claim c")
        await stage.allocate_by_hand("c", "gpu-0", "node-a")
        assert await stage.bound("p") == "node-a"


async def test_claims_that_do_not_matter(cluster: Cluster) -> None:
    """A claim that the pod does not use and that gives nothing back changes nothing for it."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a")
        await _waits(stage, "Claim c")
        told = await stage.get_pod("p")
        await stage.make_claim("other")
        await stage.patch(CLAIM_VALUES, "other", {"metadata": {"labels": {"x": "y"}}})
        await stays(lambda: stage.get_pod("p"), lambda pod: pod == told)


async def test_the_claims_of_a_pod_are_recorded(cluster: Cluster) -> None:
    """The pod's status names the claims that were made for it."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await stage.start_pod("p", from_template())
        await stage.refused("p", "template")
        await stage.make_template("t")
        assert await stage.bound("p") == "node-a"


async def test_a_gate_is_lifted(cluster: Cluster) -> None:
    """A pod with scheduling gates is not looked at before the last of them is gone."""
    async with cluster() as stage:
        await stage.node("node-a")
        await stage.start_pod("p", schedulingGates=[{"name": "example.com/wait"}])
        await stage.keeps_waiting("p")
        await stage.patch(POD_VALUES, "p", {"spec": {"schedulingGates": None}})
        assert await stage.bound("p") == "node-a"


async def test_a_class_comes(cluster: Cluster) -> None:
    """DeviceClass add."""
    async with cluster() as stage:
        await stage.node("node-a", "gpu-0")
        await _waits(stage, "does not exist")
        await stage.device_class()
        assert await stage.bound("p") == "node-a"


async def test_a_class_changes(cluster: Cluster) -> None:
    """DeviceClass update: its selectors let the device in now."""
    async with cluster() as stage:
        await stage.device_class("gpu", 'device.driver == "none.example.com"')
        await stage.node("node-a", "gpu-0")
        await _waits(stage, "NoSuchDevice (never)")
        await stage.patch(CLASS_VALUES, "gpu", {"spec": {"selectors": None}})
        assert await stage.bound("p") == "node-a"


async def test_a_slice_comes(cluster: Cluster) -> None:
    """ResourceSlice add."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a")
        await _waits(stage, "NoDevices (never)")
        await stage.slice("node-a", "gpu-0", nodeName="node-a")
        assert await stage.bound("p") == "node-a"


async def test_a_slice_changes(cluster: Cluster) -> None:
    """ResourceSlice update: a device loses its taint."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", tainted("gpu-0", "NoSchedule"))
        await _waits(stage, "tainted")
        await stage.publish(f"{DRIVER}-node-a-1", "gpu-0")
        assert await stage.bound("p") == "node-a"


async def test_a_pool_becomes_complete(cluster: Cluster) -> None:
    """ResourceSlice add: the last slice of a pool of which all devices are wanted."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a")
        for number in range(2):
            spec = {
                "driver": DRIVER,
                "pool": {"name": "node-a", "generation": 1, "resourceSliceCount": 2},
                "nodeName": "node-a",
                "devices": [{"name": f"gpu-{number}"}],
            }
            await stage.create(SLICE_VALUES, {"metadata": {"name": f"s{number}"}, "spec": spec})
            if number == 0:
                await stage.make_claim("c", wants(allocationMode="All"))
                await stage.start_pod("p", "c")
                await stage.refused("p", "incomplete")
        assert await stage.bound("p") == "node-a"


async def test_a_rule_goes(cluster: Cluster) -> None:
    """Taint rules count as part of the slices: devices come back when one is deleted."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.node("node-a", "gpu-0")
        await stage.rule("rule", "NoSchedule", driver=DRIVER)
        await _waits(stage, "tainted")
        await stage.delete(RULE_VALUES, "rule")
        assert await stage.bound("p") == "node-a"


def _near(app: str, kind: str = "podAffinity", **term: Any) -> JsonObject:
    """The affinity of a pod that wants to be on the node of pods with this label, or away from them."""
    selector = {"matchLabels": {"app": app}}
    made = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname", **term}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [made]}}


async def _start(
    stage: Stage, name: str, app: str, namespace: str = NAMESPACE, **spec: Any
) -> None:
    """A pod with a label."""
    metadata = {"name": name, "labels": {"app": app}}
    container = {"name": "main", "image": "example.com/image:1"}
    value = {"metadata": metadata, "spec": {"containers": [container], **spec}}
    await stage.client.create(POD_VALUES, value, namespace)


async def _relabel(stage: Stage, name: str, app: str) -> None:
    await stage.patch(POD_VALUES, name, {"metadata": {"labels": {"app": app}}})


async def test_a_pod_comes_that_affinity_asks_for(cluster: Cluster) -> None:
    """Pod add, by the scheduler itself: other pods that it places change nothing."""
    async with cluster() as stage:
        await stage.node("node-a")
        await _start(stage, "follower", "x", affinity=_near("z"))
        told = await stage.refused("follower", "didn't match pod affinity rules")
        await _start(stage, "stranger", "y")
        await stage.bound("stranger")
        assert message_of(await stage.until_pod("follower", lambda _: True)) == told
        await _start(stage, "leader", "z")
        assert await stage.bound("leader", "follower") == "node-a"


async def test_a_pod_comes_where_pods_are_to_be_spread(cluster: Cluster) -> None:
    """Pod add: a domain that was behind the others, and is full, has caught up."""
    async with cluster() as stage:
        await stage.node("node-a", labels={"zone": "a"})
        await stage.node("node-b", labels={"zone": "b"}, spec={"unschedulable": True})
        await _start(stage, "first", "x")
        await stage.bound("first")
        await _start(stage, "p", "x", topologySpreadConstraints=[_SPREAD])
        await stage.refused("p", "topology spread")
        await _start(stage, "second", "x", nodeName="node-b")
        assert await stage.bound("p") == "node-a"


async def test_a_pod_gets_the_label_that_affinity_asks_for(cluster: Cluster) -> None:
    """Pod label update."""
    async with cluster() as stage:
        await stage.node("node-a")
        await _start(stage, "other", "o")
        await _start(stage, "p", "x", affinity=_near("z"))
        await stage.refused("p", "didn't match pod affinity rules")
        await stage.bound("other")
        await _relabel(stage, "other", "z")
        assert await stage.bound("p") == "node-a"


async def test_a_pod_loses_the_label_that_anti_affinity_excludes(cluster: Cluster) -> None:
    """Pod label update."""
    async with cluster() as stage:
        await stage.node("node-a")
        await _start(stage, "other", "z")
        await stage.bound("other")
        await _start(stage, "p", "x", affinity=_near("z", "podAntiAffinity"))
        await stage.refused("p", "anti-affinity")
        await _relabel(stage, "other", "o")
        assert await stage.bound("p") == "node-a"


async def test_a_namespace_gets_a_label(cluster: Cluster) -> None:
    """Namespace label update: the namespaceSelector of an affinity term matches now."""
    async with cluster() as stage:
        await stage.node("node-a")
        await stage.create(NAMESPACE_VALUES, {"metadata": {"name": "other"}})
        await _start(stage, "leader", "z", "other")
        selector = {"matchLabels": {"team": "t"}}
        await _start(stage, "p", "x", affinity=_near("z", namespaceSelector=selector))
        await stage.refused("p", "didn't match pod affinity rules")
        await stage.patch(NAMESPACE_VALUES, "other", {"metadata": {"labels": {"team": "t"}}})
        assert await stage.bound("p") == "node-a"


async def test_a_pod_is_resized(cluster: Cluster) -> None:
    """Pod scale down."""
    async with cluster() as stage:
        await stage.node("node-a")
        await stage.start_pod("large", requests={"cpu": "6"})
        await stage.bound("large")
        await stage.start_pod("p", requests={"cpu": "4"})
        await stage.refused("p", "Insufficient cpu")
        container = {"name": "main", "image": "example.com/image:1"}
        smaller = {**container, "resources": {"requests": {"cpu": "1"}}}
        await stage.patch(POD_VALUES, "large", {"spec": {"containers": [smaller]}}, "resize")
        assert await stage.bound("p") == "node-a"


async def test_a_node_goes_that_a_spread_counted(cluster: Cluster) -> None:
    """Node delete: the domain that was behind the others is gone."""
    async with cluster() as stage:
        await stage.node("node-a", labels={"zone": "a"})
        await stage.node("node-b", labels={"zone": "b"}, spec={"unschedulable": True})
        for name in ("first", "p"):
            await _start(stage, name, "x", topologySpreadConstraints=[_SPREAD])
        await stage.bound("first")
        await stage.refused("p", "topology spread")
        await stage.delete(NODE_VALUES, "node-b")
        assert await stage.bound("p") == "node-a"
