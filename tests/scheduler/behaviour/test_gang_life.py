"""The life of a gang on a whole cluster: what becomes of it when members are lost, come back, or never come."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from controllers.world import NAMESPACE, eventually, stays
from drayman.cluster.resources import JOBS, PODS, RESOURCE_SLICES, JsonObject, generic
from scheduler.behaviour.beside import scheduling, served
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import POD_VALUES, Stage, from_template
from scheduler.behaviour.test_gangs import (
    GROUP_VALUES,
    RACK,
    group_says,
    make_gang,
    prepare,
    start,
)

KAI_GROUPS = generic("scheduling.run.ai/v2alpha2", "podgroups", "PodGroup")
TOPOLOGIES = generic("kai.scheduler/v1alpha1", "topologies", "Topology", namespaced=False)
PLUGIN_GROUPS = generic("scheduling.x-k8s.io/v1alpha1", "podgroups", "PodGroup")
JOB_VALUES = JOBS.as_values()
GPU_SLICES = RESOURCE_SLICES.as_values()


async def start_with(stage: Stage, *names: str, **metadata: Any) -> None:
    """Pods that each want a device, and say in their metadata which gang they are in."""
    container: JsonObject = {"name": "main", "image": "example.com/image:1"}
    spec = {"containers": [container], "resourceClaims": [from_template()]}
    for name in names:
        made = {"metadata": {"name": name, **metadata}, "spec": dict(spec)}
        await stage.create(POD_VALUES, made)


async def kai_gang(stage: Stage, *names: str, **spec: Any) -> None:
    await stage.create(KAI_GROUPS, {"metadata": {"name": "g"}, "spec": spec})
    await start_with(stage, *names, annotations={"pod-group-name": "g"})


async def leaves(stage: Stage, name: str) -> JsonObject:
    """Waits until a pod is evicted; returns why. There is no kubelet that would end it."""
    pod = await stage.until_pod(name, lambda pod: pod.metadata.deletion_timestamp is not None)
    (found,) = (c for c in pod.status.conditions if c.type_ == "DisruptionTarget")
    return {"reason": found.reason, "message": found.message}


async def test_what_is_left_of_a_gang_is_ended_after_the_grace_period(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1", "gpu-2")
        await kai_gang(stage, "p", "q", "r", minMember=3, stalenessGracePeriod="100ms")
        await stage.bound("p", "q", "r")
        await stage.finish("r", "Failed")
        for name in ("p", "q"):
            why = await leaves(stage, name)
            assert why["reason"] == "GangBelowQuorum"
            assert why["message"].startswith(
                "Pod group default/g has 2 of the 3 pods that start together, and has for"
            )
            await stage.event(name, "GangEnded")
        event = await stage.event("g", "GangEnded")
        assert event["type"] == "Warning"
        assert event["regarding"]["kind"] == "PodGroup"


async def test_a_gang_says_that_it_is_below_its_quorum_before_it_is_ended(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        await kai_gang(stage, "p", "q", minMember=2)
        await stage.bound("p", "q")
        await stage.finish("q", "Failed")
        event = await stage.event("g", "GangBelowQuorum")
        assert event["note"].startswith(
            "Pod group default/g has 1 of the 2 pods that start together; if it stays like that, "
            "the rest of it is ended in 5"
        )
        await stage.stays_bound("p")


@pytest.mark.parametrize("given", ["-1s", None])
async def test_gangs_that_may_be_below_their_quorum_are_not_ended(
    cluster: Cluster, given: str | None
) -> None:
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        if given is None:
            await make_gang(stage, 2)
            await start(stage, "p", "q")
        else:
            await kai_gang(stage, "p", "q", minMember=2, stalenessGracePeriod=given)
        await stage.bound("p", "q")
        await stage.finish("q", "Failed")
        await stage.stays_bound("p")


async def test_members_that_have_succeeded_do_not_end_the_others(cluster: Cluster) -> None:
    """Not even when they are deleted."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1", "gpu-2")
        await kai_gang(stage, "p", "q", "r", minMember=3, stalenessGracePeriod="0s")
        await stage.bound("p", "q", "r")
        for name in ("q", "r"):
            await stage.finish(name)
        await stage.stays_bound("p")
        for name in ("q", "r"):
            await stage.remove(POD_VALUES, name)
        await stage.stays_bound("p")


async def test_a_gang_is_ended_if_a_replacement_finds_no_place(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        said = {"drayman.dev/gang": "2", "drayman.dev/gang-name": "train"}
        grace = {"drayman.dev/gang-grace": "2s"}
        await start_with(stage, "p", "q", annotations=said | grace)
        await stage.bound("p", "q")
        await stage.patch(
            GPU_SLICES, "gpu.example.com-node-a-1", {"spec": {"devices": [{"name": "gpu-0"}]}}
        )
        await stage.remove(POD_VALUES, "q")
        await start_with(stage, "q", annotations=said | grace)
        why = await leaves(stage, "p")
        assert "Gang default/train has 1 of the 2 pods" in why["message"]


async def test_a_gang_that_is_complete_again_stays(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        await kai_gang(stage, "p", "q", minMember=2, stalenessGracePeriod="3s")
        await stage.bound("p", "q")
        await stage.remove(POD_VALUES, "q")
        await stage.event("g", "GangBelowQuorum")
        await start_with(stage, "q", annotations={"pod-group-name": "g"})
        await stage.bound("q")
        # The grace period is granted again when members are lost again.
        await stage.remove(POD_VALUES, "q")
        await leaves(stage, "p")


async def test_the_next_scheduler_ends_what_the_one_before_it_did_not(tmp_path: Path) -> None:
    """Here they are clients of a server like any other, and nothing is known of the first but what it wrote."""
    async with served(tmp_path, guard=True) as (stage, connect):
        await prepare(stage, "gpu-0", "gpu-1", "gpu-2")
        async with scheduling(connect(), "default-scheduler"):
            await kai_gang(stage, "p", "q", "r", minMember=3, stalenessGracePeriod="2s")
            await stage.bound("p", "q", "r")
        await stage.finish("r", "Failed")
        async with scheduling(connect(), "default-scheduler"):
            for name in ("p", "q"):
                await leaves(stage, name)


async def test_gangs_of_another_scheduler_are_left_to_it(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        await stage.create(
            KAI_GROUPS,
            {"metadata": {"name": "g"}, "spec": {"minMember": 2, "stalenessGracePeriod": "0s"}},
        )
        container: JsonObject = {"name": "main", "image": "example.com/image:1"}
        spec = {"containers": [container], "schedulerName": "volcano", "nodeName": "node-a"}
        metadata = {"name": "p", "annotations": {"pod-group-name": "g"}}
        await stage.create(POD_VALUES, {"metadata": metadata, "spec": spec})
        await stage.stays_bound("p")


async def test_a_job_that_comes_to_its_end_is_left_alone(cluster: Cluster) -> None:
    """Its pods succeed one by one, and one that fails is replaced within the grace period."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        said = {"drayman.dev/gang": "2", "drayman.dev/gang-grace": "30s"}
        container: JsonObject = {"name": "main", "image": "example.com/image:1"}
        template = {
            "spec": {
                "containers": [container],
                "resourceClaims": [from_template()],
                "restartPolicy": "Never",
            }
        }
        spec = {
            "completions": 3,
            "parallelism": 2,
            "completionMode": "Indexed",
            "template": template,
        }
        await stage.create(
            JOB_VALUES, {"metadata": {"name": "train", "annotations": said}, "spec": spec}
        )

        async def running() -> list[str]:
            pods = (await stage.client.list(PODS, NAMESPACE)).items
            return [
                p.metadata.name
                for p in pods
                if p.spec.node_name and p.status.phase not in ("Succeeded", "Failed")
            ]

        first, second = await eventually(running, lambda names: len(names) == 2)
        await stage.finish(first, "Failed")
        names = await eventually(running, lambda names: len(names) == 2 and first not in names)
        for name in names:
            await stage.finish(name)
        (last,) = await eventually(running, lambda names: len(names) == 1)
        assert last not in (first, second)

        async def disrupted() -> list[str]:
            pods = (await stage.client.list(PODS, NAMESPACE)).items
            return [p.metadata.name for p in pods if p.metadata.deletion_timestamp]

        await stays(disrupted, lambda names: not names)


async def test_a_gang_that_waits_for_too_long_says_what_is_missing(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, "gpu-0")
        await stage.create(PLUGIN_GROUPS, {"metadata": {"name": "g"}, "spec": {"minMember": 2}})
        labels = {"scheduling.x-k8s.io/pod-group": "g"}
        await start_with(stage, "p", "q", labels=labels)
        await stage.refused("p", "the cluster holds 1 of 2 pods")
        await stage.patch(PLUGIN_GROUPS, "g", {"spec": {"scheduleTimeoutSeconds": 1}})
        event = await stage.event("g", "GangLate")
        assert event["type"] == "Warning"
        assert "the cluster holds 1 of 2 pods" in event["note"]
        assert event["note"].endswith("; its time limit was 1 second.")
        await stage.refused("p", "its time limit was 1 second")
        await stage.node("node-b", "gpu-0")
        await stage.bound("p", "q")


async def test_a_group_that_is_late_says_so_in_its_condition(cluster: Cluster) -> None:
    """Also if members are missing."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0")
        metadata = {"name": "g", "annotations": {"drayman.dev/gang-timeout": "1s"}}
        spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        await stage.create(GROUP_VALUES, {"metadata": metadata, "spec": spec})
        await start(stage, "p")
        event = await stage.event("g", "GangLate")
        assert "Pod group default/g has 1 of the 2 pods that start together." in event["note"]
        group = await group_says(stage, "False")
        (condition,) = group.status.conditions
        assert "its time limit was 1 second" in (condition.message or "")


# Members that come back.


async def racks(stage: Stage, **devices: int) -> None:
    """A node for each rack, with so many devices."""
    await stage.device_class()
    await stage.make_template("t")
    for rack, number in devices.items():
        names = [f"gpu-{n}" for n in range(number)]
        await stage.node(f"node-{rack}", *names, labels={RACK: rack})


async def restart(stage: Stage, name: str, *, phase: str = "Failed", **metadata: Any) -> None:
    """A pod ends, and its controller makes another one of the same name."""
    await stage.finish(name, phase)
    await stage.remove(POD_VALUES, name)
    await start_with(stage, name, **metadata)


async def test_a_restarted_member_comes_back_to_its_domain(cluster: Cluster) -> None:
    """Though another domain has more room; if there is no room in its own, it waits and says so."""
    async with cluster() as stage:
        await racks(stage, a=2)
        said = {"drayman.dev/gang": "2", "drayman.dev/gang-name": "g"}
        said["drayman.dev/required-level"] = RACK
        await start_with(stage, "p", "q", annotations=said)
        assert await stage.bound("p", "q") == "node-a"
        await stage.node("node-b", "gpu-0", "gpu-1", "gpu-2", labels={RACK: "b"})
        await restart(stage, "q", annotations=said)
        assert await stage.bound("q") == "node-a"
        await stage.finish("q", "Failed")
        await stage.remove(POD_VALUES, "q")
        await stage.publish("gpu.example.com-node-a-1", "gpu-0")
        await start_with(stage, "q", annotations=said)
        await stage.refused("q", "Members run in rack a, which holds 0 of 1 that are missing")
        await stage.publish("gpu.example.com-node-a-1", "gpu-0", "gpu-1")
        assert await stage.bound("q") == "node-a"


async def test_a_restarted_member_comes_back_to_its_slice(cluster: Cluster) -> None:
    """Slices have a domain each. The rank says to which of them a member belongs."""
    async with cluster() as stage:
        await racks(stage, a=2, b=2)
        said = {"drayman.dev/gang": "4", "drayman.dev/gang-name": "g"}
        said |= {"drayman.dev/slice-size": "2", "drayman.dev/slice-level": RACK}
        index = "batch.kubernetes.io/job-completion-index"
        for number in range(4):
            await start_with(stage, f"p{number}", annotations=said, labels={index: str(number)})
        home = [await stage.bound(f"p{number}") for number in range(4)]
        assert home[0] == home[1] != home[2] == home[3]
        for rack in "cd":
            await stage.node(f"node-{rack}", "gpu-0", "gpu-1", labels={RACK: rack})
        for number in (1, 2):
            name = f"p{number}"
            await restart(stage, name, annotations=said, labels={index: str(number)})
            assert await stage.bound(name) == home[number]


async def test_a_restarted_member_without_a_rank_fills_the_slice_that_lacks_one(
    cluster: Cluster,
) -> None:
    async with cluster() as stage:
        await racks(stage, a=2, b=2)
        said = {"drayman.dev/gang": "4", "drayman.dev/gang-name": "g"}
        said |= {"drayman.dev/slice-size": "2", "drayman.dev/slice-level": RACK}
        await start_with(stage, *"pqrs", annotations=said)
        home = {name: await stage.bound(name) for name in "pqrs"}
        await stage.node("node-c", "gpu-0", "gpu-1", labels={RACK: "c"})
        for name in "qr":
            await stage.finish(name, "Failed")
            await stage.remove(POD_VALUES, name)
            await start_with(stage, f"{name}-again", annotations=said)
            assert await stage.bound(f"{name}-again") == home[name]


async def test_a_restarted_member_comes_back_to_the_domain_of_its_subgroup(
    cluster: Cluster,
) -> None:
    async with cluster() as stage:
        await racks(stage, a=2, b=2)
        levels = [{"nodeLabel": RACK}]
        await stage.create(TOPOLOGIES, {"metadata": {"name": "t"}, "spec": {"levels": levels}})
        wish = {"topology": "t", "requiredTopologyLevel": RACK}
        parts = [{"name": n, "minMember": 2, "topologyConstraint": wish} for n in ("x", "y")]
        spec = {"subGroups": parts, "stalenessGracePeriod": "-1s"}
        await stage.create(KAI_GROUPS, {"metadata": {"name": "g"}, "spec": spec})
        named = {"pod-group-name": "g"}
        for part in "xy":
            labels = {"kai.scheduler/subgroup-name": part}
            await start_with(stage, f"{part}0", f"{part}1", annotations=named, labels=labels)
        home = {part: await stage.bound(f"{part}0", f"{part}1") for part in "xy"}
        assert home["x"] != home["y"]
        await stage.node("node-c", "gpu-0", "gpu-1", labels={RACK: "c"})
        labels = {"kai.scheduler/subgroup-name": "y"}
        await restart(stage, "y1", annotations=named, labels=labels)
        assert await stage.bound("y1") == home["y"]


# What a gang is said to need.


async def test_a_gang_waits_for_what_it_is_said_to_need(cluster: Cluster) -> None:
    """Though its pods would fit."""
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        await stage.start_pod("other", requests={"cpu": "2"})
        await stage.bound("other")
        spec = {"minMember": 2, "minResources": {"cpu": "7"}}
        await stage.create(PLUGIN_GROUPS, {"metadata": {"name": "g"}, "spec": spec})
        await start_with(stage, "p", "q", labels={"scheduling.x-k8s.io/pod-group": "g"})
        await stage.refused(
            "p",
            "GangTooLarge (not now): Pod group default/g needs 7 of cpu by its minResources, and 6 is free.",
        )
        await stage.remove(POD_VALUES, "other")
        await stage.bound("p", "q")
