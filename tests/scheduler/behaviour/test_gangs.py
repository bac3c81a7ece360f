"""Gangs on a whole cluster: all members start, or none, and those that wait hold nothing."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.world import NAMESPACE, eventually
from drayman.api.pod_groups import PodGroup
from drayman.cluster.resources import POD_GROUPS, PODS, JsonObject, Resource, generic
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import POD_VALUES, Stage, conditional, from_template

GROUP_VALUES = POD_GROUPS.as_values()
RACK = "topology.kubernetes.io/rack"
DIALECTS: dict[str, tuple[Resource[JsonObject], JsonObject, JsonObject, JsonObject]] = {
    "Kubernetes": (
        GROUP_VALUES,
        {"schedulingPolicy": {"gang": {"minCount": 2}}},
        {},
        {"schedulingGroup": {"podGroupName": "g"}},
    ),
    "the coscheduling plugin": (
        generic("scheduling.x-k8s.io/v1alpha1", "podgroups", "PodGroup"),
        {"minMember": 2},
        {"labels": {"scheduling.x-k8s.io/pod-group": "g"}},
        {},
    ),
    "the KAI Scheduler": (
        generic("scheduling.run.ai/v2alpha2", "podgroups", "PodGroup"),
        {"minMember": 2},
        {"annotations": {"pod-group-name": "g"}},
        {},
    ),
}
"""The groups of each kind: resource and spec, and what the metadata and spec of their pods say."""


async def make_gang(stage: Stage, least: int, name: str = "g", **spec: Any) -> None:
    spec["schedulingPolicy"] = {"gang": {"minCount": least}}
    await stage.create(GROUP_VALUES, {"metadata": {"name": name}, "spec": spec})


async def start(stage: Stage, *names: str, gang: str = "g") -> None:
    for name in names:
        group = {"podGroupName": gang}
        await stage.start_pod(name, from_template(), schedulingGroup=group)


async def nodes_of(stage: Stage) -> dict[str, str]:
    listed = await stage.client.list(PODS, NAMESPACE)
    return {pod.metadata.name: pod.spec.node_name for pod in listed.items}


async def prepare(stage: Stage, *devices: Any) -> None:
    await stage.device_class()
    await stage.make_template("t")
    await stage.node("node-a", *devices)


def scheduled(group: PodGroup) -> str:
    return next((c.status for c in group.status.conditions if c.type_ == "PodGroupScheduled"), "")


async def group_says(stage: Stage, status: str, name: str = "g") -> PodGroup:
    async def read() -> PodGroup:
        return await stage.client.get(POD_GROUPS, name, NAMESPACE)

    return await eventually(read, lambda group: scheduled(group) == status)


async def test_no_member_starts_before_all_that_are_needed_fit(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        await make_gang(stage, 3)
        await start(stage, "p", "q", "r")
        await stage.refused(
            "p",
            "GangOversized (never): Pod group default/g",
            "the cluster holds 2 of 3 pods",
            "both that match are taken by other pods of the gang",
        )
        await group_says(stage, "False")
        assert set((await nodes_of(stage)).values()) == {""}
        # What they could have had is there for others.
        await stage.start_pod("alone", from_template())
        await stage.bound("alone")
        await stage.remove(POD_VALUES, "alone")
        await stage.node("node-b", "gpu-0")
        await stage.bound("p", "q", "r")
        await group_says(stage, "True")


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_groups_of_each_kind_are_acted_on_and_without_a_warning(
    cluster: Cluster, dialect: str, caplog: pytest.LogCaptureFixture
) -> None:
    resource, group, metadata, fields = DIALECTS[dialect]
    container: JsonObject = {"name": "main", "image": "example.com/image:1"}
    spec = {"containers": [container], "resourceClaims": [from_template()], **fields}
    async with cluster() as stage:
        await prepare(stage, "gpu-0")
        await stage.create(resource, {"metadata": {"name": "g"}, "spec": group})
        for name in ("p", "q"):
            made = {"metadata": {"name": name, **metadata}, "spec": spec}
            await stage.create(POD_VALUES, made)
        await stage.refused("p", "Pod group default/g", "holds 1 of 2 pods")
        await stage.refused("q", "Pod group default/g", "holds 1 of 2 pods")
        await stage.node("node-b", "gpu-0")
        await stage.bound("p", "q")
    assert "is stored, but" not in caplog.text


async def test_members_that_do_not_exist_yet_are_waited_for(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1", "gpu-2")
        await start(stage, "p", "q")
        await stage.refused("p", "Pod group default/g does not exist")
        await make_gang(stage, 3)
        await stage.refused("p", "Pod group default/g has 2 of the 3 pods that start together")
        await start(stage, "r")
        await stage.bound("p", "q", "r")


async def test_of_two_gangs_with_room_for_one_one_starts(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1", "gpu-2", "gpu-3")
        for gang in ("g", "h"):
            await make_gang(stage, 3, gang)
        for number in range(3):
            await start(stage, f"g{number}", gang="g")
            await start(stage, f"h{number}", gang="h")
        await stage.bound("g0", "g1", "g2")
        await stage.refused("h0", "1 of 3 pods fit at once")
        for number in range(3):
            await stage.remove(POD_VALUES, f"g{number}")
        await stage.bound("h0", "h1", "h2")


async def test_members_beyond_the_quorum_join_when_they_can(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        await make_gang(stage, 2)
        await start(stage, "p", "q", "r")
        await eventually(
            lambda: nodes_of(stage), lambda found: list(found.values()).count("node-a") == 2
        )
        await stage.node("node-b", "gpu-0")
        await stage.bound("p", "q", "r")


async def test_a_gang_stays_in_the_domain_of_its_first_members(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage)
        for rack, devices in (("a", 1), ("b", 2)):
            names = [f"gpu-{n}" for n in range(devices)]
            await stage.node(f"node-{rack}{rack}", *names, labels={RACK: rack})
        await make_gang(stage, 2, schedulingConstraints={"topology": [{"key": RACK}]})
        await start(stage, "p", "q")
        assert await stage.bound("p", "q") == "node-bb"
        await start(stage, "r")
        await stage.refused("r", "Members run in rack b, which holds 0 of 1 that are missing")
        await stage.keeps_waiting("r")


async def test_a_gang_by_annotation(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, "gpu-0", "gpu-1")
        said = {"drayman.dev/gang": "2", "drayman.dev/gang-name": "train"}
        container: JsonObject = {"name": "main", "image": "example.com/image:1"}
        spec = {"containers": [container], "resourceClaims": [from_template()]}
        for name in ("p", "q"):
            metadata = {"name": name, "annotations": said}
            await stage.create(POD_VALUES, {"metadata": metadata, "spec": spec})
            if name == "p":
                await stage.refused("p", "Gang default/train has 1 of the 2 pods")
        await stage.bound("p", "q")


async def test_members_are_bound_when_the_devices_of_all_are_ready(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, conditional("gpu-0"), conditional("gpu-1"))
        await make_gang(stage, 2)
        await start(stage, "p", "q")
        first, second = await stage.claim_of("p"), await stage.claim_of("q")
        for claim in (first, second):
            await stage.allocated(claim.metadata.name)
        device = (await stage.allocated(first.metadata.name)).status.allocation
        assert device is not None
        await stage.report(
            first.metadata.name, device.devices.results[0].device, "node-a", Ready="True"
        )
        await stage.keeps_waiting("p")
        device = (await stage.allocated(second.metadata.name)).status.allocation
        assert device is not None
        await stage.report(
            second.metadata.name, device.devices.results[0].device, "node-a", Ready="True"
        )
        await stage.bound("p", "q")
