"""Gangs that others make way for, and gangs that make way: whole, for somebody who then fits, and nobody twice."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from controllers.world import NAMESPACE, eventually, stays
from drayman.api.pod_groups import PodGroup
from drayman.cluster.patches import merge_patch
from drayman.cluster.resources import EVENTS, JOBS, POD_GROUPS, JsonObject, generic
from drayman.scheduler.giving_way import KEPT_S
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import CLAIM_VALUES, POD_VALUES, Stage, from_template, wants
from scheduler.behaviour.test_preemption import (
    Clock,
    alive,
    asked,
    classes,
    let_go,
    nominated,
    protect,
    scheduler_alone,
    until_asked,
)

JOB_VALUES = JOBS.as_values()
GROUP_VALUES = POD_GROUPS.as_values()
KAI_GROUPS = generic("scheduling.run.ai/v2alpha2", "podgroups", "PodGroup")
RACK = "topology.kubernetes.io/rack"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def alone(tmp_path: Path, clock: Clock) -> AbstractAsyncContextManager[Stage]:
    return scheduler_alone(tmp_path, clock)


async def make_gang(stage: Stage, least: int, name: str = "g", **spec: Any) -> None:
    spec["schedulingPolicy"] = {"gang": {"minCount": least}}
    await stage.create(GROUP_VALUES, {"metadata": {"name": name}, "spec": spec})


async def start(stage: Stage, *names: str, gang: str = "", **fields: Any) -> None:
    if gang:
        fields["schedulingGroup"] = {"podGroupName": gang}
    fields.setdefault("terminationGracePeriodSeconds", 0)
    for name in names:
        await stage.start_pod(name, from_template(), **fields)


async def start_stating(stage: Stage, stated: dict[str, str], *names: str) -> None:
    """Pods with annotations."""
    container: JsonObject = {"name": "main", "image": "example.com/image:1"}
    spec = {
        "containers": [container],
        "resourceClaims": [from_template()],
        "terminationGracePeriodSeconds": 0,
    }
    for name in names:
        metadata = {"name": name, "annotations": stated}
        await stage.create(POD_VALUES, {"metadata": metadata, "spec": spec})


async def prepare(stage: Stage, **nodes: int) -> None:
    """Nodes with so many devices each."""
    await classes(stage)
    await stage.make_template("t")
    for name, number in nodes.items():
        await stage.node(name, *(f"gpu-{index}" for index in range(number)))


async def test_a_gang_gets_the_room_of_less_important_pods(cluster: Cluster) -> None:
    """As many pods go as the gang needs, and no more."""
    async with cluster() as stage:
        await prepare(stage, a=2, b=2)
        await start(stage, "p", "q", "r", "s")
        await stage.bound("p", "q", "r", "s")
        await make_gang(stage, 3)
        await start(stage, "x", "y", "z", gang="g", priorityClassName="high")
        await stage.bound("x", "y", "z")
        assert len(await until_asked(stage, 3)) == 3


async def test_nobody_goes_for_a_gang_that_would_not_fit(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, a=2)
        await start(stage, "p", "q")
        await stage.bound("p", "q")
        await make_gang(stage, 3)
        await start(stage, "x", "y", "z", gang="g", priorityClassName="high")
        await stage.refused("x", "GangOversized")
        await stays(lambda: asked(stage), lambda names: not names)


@pytest.mark.parametrize("rank", ["polite", ""])
async def test_nobody_goes_for_a_gang_that_preempts_never_or_is_no_more_important(
    cluster: Cluster, rank: str
) -> None:
    async with cluster() as stage:
        await prepare(stage, a=2)
        await start(stage, "p", "q")
        await stage.bound("p", "q")
        await make_gang(stage, 2)
        await start(stage, "x", gang="g", priorityClassName="high")
        await start(stage, "y", gang="g", priorityClassName=rank)
        await stage.refused("y", "GangTooLarge")
        await stays(lambda: asked(stage), lambda names: not names)


async def test_the_priority_of_a_group_counts_for_its_pods(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, a=2)
        await start(stage, "p", "q")
        await stage.bound("p", "q")
        await make_gang(stage, 2, priorityClassName="high")
        await start(stage, "x", "y", gang="g")
        await stage.bound("x", "y")


async def test_room_is_made_in_one_domain_of_the_level_that_is_required(cluster: Cluster) -> None:
    """Two pods of one rack go, though two in different racks would free as many devices."""
    async with cluster() as stage:
        await prepare(stage)
        racks = {"a0": "a", "a1": "a", "b0": "b", "b1": "b"}
        for node, rack in racks.items():
            await stage.node(node, "gpu-0", labels={RACK: rack})
        await start(stage, "p", "q", "r", "s")
        await stage.bound("p", "q", "r", "s")
        constraints = {"topology": [{"key": RACK}]}
        await make_gang(stage, 2, schedulingConstraints=constraints)
        await start(stage, "x", "y", gang="g", priorityClassName="high")
        nodes = [await stage.bound(name) for name in ("x", "y")]
        assert len({racks[node] for node in nodes}) == 1
        assert len(await until_asked(stage, 2)) == 2


async def test_pods_under_a_budget_are_spared(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, a=2, b=2)
        await start(stage, "p", "q", "r", "s")
        await stage.bound("p", "q", "r", "s")
        await protect(stage, "p", "s")
        await make_gang(stage, 2)
        await start(stage, "x", "y", gang="g", priorityClassName="high")
        await stage.bound("x", "y")
        assert await until_asked(stage, 2) == ["q", "r"]


async def test_what_victims_leave_is_kept_for_all_members(
    alone: AbstractAsyncContextManager[Stage],
) -> None:
    """While one of them has yet to go, nobody else gets what is free already, and nobody else is asked to go."""
    async with alone as stage:
        await classes(stage)
        for name in ("a", "b", "c"):
            await stage.node(name)
        fields = {"containers": [_most_of_a_node()], "terminationGracePeriodSeconds": 30}
        await _cpu_pods(stage, "p", "q", "r", **fields)
        await stage.bound("p", "q", "r")
        await make_gang(stage, 2)
        group = {"podGroupName": "g"}
        await _cpu_pods(stage, "x", "y", schedulingGroup=group, priorityClassName="high", **fields)
        first = await until_asked(stage, 2)
        assert {await nominated(stage, "x"), await nominated(stage, "y")} <= {"a", "b", "c"}
        await let_go(stage, first[0])
        await _cpu_pods(stage, "late", **fields)
        await stage.refused("late", "NodesFull")
        await stays(lambda: asked(stage), lambda names: names == first)
        await let_go(stage, first[1])
        await stage.bound("x", "y")


async def test_room_is_everybodys_when_the_gang_goes(
    alone: AbstractAsyncContextManager[Stage],
) -> None:
    async with alone as stage:
        fields = await _preempt_both_nodes(stage)
        await let_go(stage, "p", "q")
        await stage.bound("x", "y")
        await let_go(stage, "x", "y")
        await _cpu_pods(stage, "late", **fields)
        await stage.bound("late")


async def test_a_group_that_goes_as_one_goes_as_one(cluster: Cluster) -> None:
    """For a single pod, too; and the group says why."""
    async with cluster() as stage:
        await prepare(stage, a=1, b=1)
        await make_gang(stage, 1, "low", disruptionMode="PodGroup")
        await start(stage, "p", "q", gang="low")
        await stage.bound("p", "q")
        await start(stage, "x", priorityClassName="high")
        await stage.bound("x")
        assert await until_asked(stage, 2) == ["p", "q"]

        async def read() -> PodGroup:
            return await stage.client.get(POD_GROUPS, "low", NAMESPACE)

        def says(group: PodGroup) -> bool:
            return any(c.reason == "PreemptionByScheduler" for c in group.status.conditions)

        await eventually(read, says)


async def test_members_of_a_group_go_singly_where_it_says_nothing(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, a=1, b=1)
        await make_gang(stage, 2, "low")
        await start(stage, "p", "q", gang="low")
        await stage.bound("p", "q")
        await start(stage, "x", priorityClassName="high")
        await stage.bound("x")
        first = await until_asked(stage)
        await stays(lambda: asked(stage), lambda names: names == first)
        assert len(first) == 1


async def test_members_beyond_the_quorum_go_first_and_singly(cluster: Cluster) -> None:
    """Below it the rest is of no use, so all of them go."""
    async with cluster() as stage:
        await prepare(stage, a=1, b=1, c=1)
        gang = {"drayman.dev/gang": "2", "drayman.dev/gang-name": "low"}
        await start_stating(stage, gang, "p", "q", "r")
        await stage.bound("p", "q", "r")
        await start(stage, "x", priorityClassName="high")
        await stage.bound("x")
        assert len(await until_asked(stage, 1)) == 1
        await start(stage, "y", priorityClassName="high")
        await stage.bound("y")
        assert await until_asked(stage, 3) == ["p", "q", "r"]


async def test_a_group_that_is_not_preemptible_stays(cluster: Cluster) -> None:
    async with cluster() as stage:
        await prepare(stage, a=1)
        spec = {"minMember": 1, "preemptibility": "non-preemptible"}
        await stage.create(KAI_GROUPS, {"metadata": {"name": "kept"}, "spec": spec})
        await start_stating(stage, {"pod-group-name": "kept"}, "p")
        await stage.bound("p")
        await start(stage, "x", priorityClassName="high")
        await stage.refused("x", "DevicesInUse")
        await stays(lambda: asked(stage), lambda names: not names)


@pytest.mark.parametrize("gang", ["", "g"])
async def test_a_pod_is_left_alone_until_it_has_had_its_time(
    alone: AbstractAsyncContextManager[Stage], clock: Clock, gang: str
) -> None:
    """The preemptor is tried again when that ends, though nothing happens."""
    async with alone as stage:
        await classes(stage)
        await stage.node("a")
        container = _most_of_a_node()
        metadata = {"name": "p", "annotations": {"drayman.dev/min-runtime": "30m"}}
        spec: JsonObject = {"containers": [container]}
        await stage.create(POD_VALUES, {"metadata": metadata, "spec": spec})
        await stage.bound("p")
        fields: dict[str, Any] = {"containers": [container], "priorityClassName": "high"}
        if gang:
            await make_gang(stage, 1, gang)
            fields["schedulingGroup"] = {"podGroupName": gang}
        await _cpu_pods(stage, "x", **fields)
        await stage.refused("x", "not now")
        await stays(lambda: asked(stage), lambda names: not names)
        clock.ahead_s = 31 * 60.0
        await _cpu_pods(stage, "nudge", containers=[container])  # so that the clock is read
        assert await until_asked(stage) == ["p"]


async def test_a_gang_waits_for_a_while_before_others_go(
    alone: AbstractAsyncContextManager[Stage], clock: Clock
) -> None:
    """As long as its group says; then it is tried again though nothing happens."""
    async with alone as stage:
        await classes(stage)
        await stage.node("a")
        containers = [_most_of_a_node()]
        await _cpu_pods(stage, "p", containers=containers)
        await stage.bound("p")
        spec = {"minMember": 1, "preemptionDelay": "10m"}
        await stage.create(KAI_GROUPS, {"metadata": {"name": "g"}, "spec": spec})
        metadata = {"name": "x", "annotations": {"pod-group-name": "g"}}
        fields = {"containers": containers, "priorityClassName": "high"}
        await stage.create(POD_VALUES, {"metadata": metadata, "spec": fields})
        await stage.refused("x", "Pod group default/g")
        await stays(lambda: asked(stage), lambda names: not names)
        clock.ahead_s = 11 * 60.0
        await _cpu_pods(stage, "nudge", containers=containers)  # so that the clock is read
        assert await until_asked(stage) == ["p"]


async def test_a_job_says_for_its_pods_how_long_they_are_left_alone(
    alone: AbstractAsyncContextManager[Stage], clock: Clock
) -> None:
    """Also where the controller that made them does not copy annotations."""
    async with alone as stage:
        await classes(stage)
        await stage.node("a")
        containers = [_most_of_a_node()]
        template = {"spec": {"containers": containers, "restartPolicy": "Never"}}
        metadata = {"name": "j", "annotations": {"drayman.dev/min-runtime": "30m"}}
        await stage.create(JOB_VALUES, {"metadata": metadata, "spec": {"template": template}})
        job = await stage.client.get(JOBS, "j", NAMESPACE)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "controller": True}
        owners = [{**owner, "uid": job.metadata.uid}]
        made = {"metadata": {"name": "p", "ownerReferences": owners}}
        await stage.create(POD_VALUES, {**made, "spec": {"containers": containers}})
        await stage.bound("p")
        await _cpu_pods(stage, "x", containers=containers, priorityClassName="high")
        await stage.refused("x", "not now")
        await stays(lambda: asked(stage), lambda names: not names)
        clock.ahead_s = 31 * 60.0
        await _cpu_pods(stage, "nudge", containers=containers)
        assert await until_asked(stage) == ["p"]


async def test_a_run_time_that_is_none_is_reported(cluster: Cluster) -> None:
    """It protects nothing, and an event says so."""
    async with cluster() as stage:
        await prepare(stage, a=1)
        await start_stating(stage, {"drayman.dev/min-runtime": "soon"}, "p")
        await stage.bound("p")

        async def read() -> list[str]:
            listed = (await stage.client.list(EVENTS, NAMESPACE)).items
            return [e["note"] for e in listed if e["reason"] == "InvalidMinRuntime"]

        (note,) = await eventually(read, bool)
        assert "drayman.dev/min-runtime" in note
        assert "'soon' is not a duration" in note
        await start(stage, "x", priorityClassName="high")
        await stage.bound("x")
        assert await until_asked(stage) == ["p"]
        assert "x" in await alive(stage)


def _most_of_a_node() -> JsonObject:
    resources = {"requests": {"cpu": "5"}}
    return {"name": "main", "image": "example.com/image:1", "resources": resources}


async def _preempt_both_nodes(stage: Stage) -> dict[str, Any]:
    """A gang of two has asked those to go that have a node each. Returns the fields of all these pods."""
    await classes(stage)
    await stage.node("a")
    await stage.node("b")
    fields = {"containers": [_most_of_a_node()], "terminationGracePeriodSeconds": 30}
    await _cpu_pods(stage, "p", "q", **fields)
    await stage.bound("p", "q")
    await make_gang(stage, 2)
    group = {"podGroupName": "g"}
    await _cpu_pods(stage, "x", "y", schedulingGroup=group, priorityClassName="high", **fields)
    await until_asked(stage, 2)
    return fields


async def _cpu_pods(stage: Stage, *names: str, **spec: Any) -> None:
    for name in names:
        await stage.create(POD_VALUES, {"metadata": {"name": name}, "spec": spec})


@pytest.mark.parametrize("lost", ["a member", "the group"])
async def test_room_is_not_kept_for_ever_for_a_gang_that_cannot_start(
    alone: AbstractAsyncContextManager[Stage], clock: Clock, lost: str
) -> None:
    """A member may be replaced, or the group be made again, but that has to happen soon."""
    async with alone as stage:
        fields = await _preempt_both_nodes(stage)
        if lost == "a member":
            await let_go(stage, "y")
        else:
            patch = merge_patch({"metadata": {"finalizers": None}})
            await stage.client.patch(GROUP_VALUES, "g", patch, NAMESPACE)
            await stage.delete(GROUP_VALUES, "g")
        await stage.refused("x", "GangIncomplete" if lost == "a member" else "PodGroupMissing")
        await let_go(stage, "p", "q")
        await _cpu_pods(stage, "late", "later", **fields)
        await stage.refused("later", "NodesFull")
        clock.ahead_s = KEPT_S + 1
        await _cpu_pods(stage, "nudge", containers=[_most_of_a_node()])  # so that the clock is read
        await stage.bound("late", "later")


@pytest.mark.parametrize("where", ["pod", "job"])
async def test_who_is_no_longer_left_alone_goes_at_once(
    alone: AbstractAsyncContextManager[Stage], where: str
) -> None:
    """Nothing else has to happen, and nobody waits for the time that was stated before."""
    async with alone as stage:
        await classes(stage)
        await stage.node("a")
        containers = [_most_of_a_node()]
        stated = {"annotations": {"drayman.dev/min-runtime": "1000h"}}
        template = {"spec": {"containers": containers, "restartPolicy": "Never"}}
        job = {"metadata": {"name": "p"}, "spec": {"template": template}}
        pod: JsonObject = {"metadata": {"name": "p"}, "spec": {"containers": containers}}
        (job if where == "job" else pod)["metadata"] |= stated
        await stage.create(JOB_VALUES, job)
        made = await stage.client.get(JOBS, "p", NAMESPACE)
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "p", "controller": True}
        pod["metadata"]["ownerReferences"] = [{**owner, "uid": made.metadata.uid}]
        await stage.create(POD_VALUES, pod)
        await stage.bound("p")
        await _cpu_pods(stage, "x", containers=containers, priorityClassName="high")
        await stage.refused("x", "not now")
        await stays(lambda: asked(stage), lambda names: not names)
        patch = merge_patch({"metadata": {"annotations": {"drayman.dev/min-runtime": None}}})
        resource = JOB_VALUES if where == "job" else POD_VALUES
        await stage.client.patch(resource, "p", patch, NAMESPACE)
        assert await until_asked(stage) == ["p"]


async def test_a_group_that_becomes_preemptible_makes_way(cluster: Cluster) -> None:
    """Whoever waits for its room is tried again when the group says something else."""
    async with cluster() as stage:
        await prepare(stage, a=1)
        spec = {"minMember": 1, "preemptibility": "non-preemptible"}
        await stage.create(KAI_GROUPS, {"metadata": {"name": "kept"}, "spec": spec})
        await start_stating(stage, {"pod-group-name": "kept"}, "p")
        await stage.bound("p")
        await start(stage, "x", priorityClassName="high")
        await stage.refused("x", "DevicesInUse")
        await stays(lambda: asked(stage), lambda names: not names)
        patch = merge_patch({"spec": {"preemptibility": "preemptible"}})
        await stage.client.patch(KAI_GROUPS, "kept", patch, NAMESPACE)
        assert await until_asked(stage) == ["p"]


@pytest.mark.parametrize(
    "now", [{"drayman.dev/gang": "2"}, {"drayman.dev/gang-name": "h", "drayman.dev/gang": "2"}]
)
async def test_pods_that_say_something_else_about_their_gang_are_tried_again(
    cluster: Cluster, now: dict[str, str]
) -> None:
    """Also where they are in another gang by that."""
    async with cluster() as stage:
        await prepare(stage, a=2)
        stated = {"drayman.dev/gang": "3", "drayman.dev/gang-name": "g"}
        await start_stating(stage, stated, "p", "q")
        await stage.refused("p", "GangIncomplete")
        for name in ("p", "q"):
            patch = merge_patch({"metadata": {"annotations": now}})
            await stage.client.patch(POD_VALUES, name, patch, NAMESPACE)
        await stage.bound("p", "q")


async def test_room_is_not_kept_for_ever_for_a_pod_whose_claim_is_gone(
    alone: AbstractAsyncContextManager[Stage], clock: Clock
) -> None:
    """The claim may be made again, but that has to happen soon."""
    async with alone as stage:
        await classes(stage)
        await stage.node("a", "gpu-0")
        fields = {"containers": [_most_of_a_node()], "terminationGracePeriodSeconds": 30}
        await _cpu_pods(stage, "p", **fields)
        await stage.bound("p")
        await stage.make_claim("c", wants())
        claims = [{"name": "c", "resourceClaimName": "c"}]
        await _cpu_pods(stage, "x", resourceClaims=claims, priorityClassName="high", **fields)
        await until_asked(stage)
        await stage.delete(CLAIM_VALUES, "c")
        await stage.refused("x", "Claim")
        await let_go(stage, "p")
        await _cpu_pods(stage, "late", **fields)
        await stage.refused("late", "NodesFull")
        clock.ahead_s = KEPT_S + 1
        await _cpu_pods(stage, "nudge", **fields)  # so that the clock is read
        await stage.bound("late")
