"""Reservations on a whole cluster: who runs ahead of a gang that waits, who does not, and what they are told."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.world import NAMESPACE, eventually, stays
from drayman.cluster.options import DeleteOptions
from drayman.cluster.patches import merge_patch
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import POD_VALUES, Stage, from_template, message_of
from scheduler.behaviour.test_preemption import asked, classes, until_asked

RUNTIME = "drayman.dev/runtime"


async def prepare(stage: Stage) -> None:
    """Two nodes with one device each, of which a pod that runs for an hour has one."""
    await stage.device_class()
    await stage.make_template("t")
    await stage.node("node-a", "gpu-0")
    await stage.node("node-b", "gpu-0")
    await run(stage, "first", "1h")
    await stage.bound("first")


async def run(stage: Stage, name: str, runtime: str = "", **stated: str) -> None:
    annotations = {**stated, **({RUNTIME: runtime} if runtime else {})}
    await stage.start_pod(name, from_template(), annotations=annotations)


async def start_gang(stage: Stage) -> None:
    for name in ("g-0", "g-1"):
        stated: Any = {"drayman.dev/gang": "2", "drayman.dev/gang-name": "g"}
        await run(stage, name, "", **stated)
    await stage.refused("g-0", "GangTooLarge")


async def until_reserved(stage: Stage) -> None:
    """Until room is found for the gang nothing is held back, and that takes a moment: pods are sent ahead until one of them is."""
    while True:
        await run(stage, "probe", "5h")
        probe = await stage.until_pod(
            "probe", lambda pod: bool(pod.spec.node_name) or "RoomReserved" in message_of(pod)
        )
        await stage.client.delete(
            POD_VALUES, "probe", NAMESPACE, options=DeleteOptions(grace_period_seconds=0)
        )
        await eventually(lambda: stage.get_pod("probe"), lambda pod: pod is None)
        if not probe.spec.node_name:
            return


async def test_only_what_ends_in_time_runs_ahead_of_a_gang(cluster: Cluster) -> None:
    """A pod of unknown length waits and is told for whom; one that declares to be short gets the free device."""
    async with cluster() as stage:
        await prepare(stage)
        await start_gang(stage)
        await until_reserved(stage)
        await run(stage, "long", "3h")
        await run(stage, "endless")
        await stage.refused(
            "long", "RoomReserved (held): There is room, but it is reserved for gang"
        )
        await stage.refused("endless", "it is not known how long the pod runs")
        await run(stage, "short", "10m")
        await stage.bound("short")


async def test_what_was_held_back_runs_when_the_gang_is_gone(cluster: Cluster) -> None:
    """A reservation ends with its gang, and those that it held back are tried again at once."""
    async with cluster() as stage:
        await prepare(stage)
        await start_gang(stage)
        await until_reserved(stage)
        await run(stage, "long", "3h")
        await stage.refused("long", "RoomReserved")
        for name in ("g-0", "g-1"):
            await stage.delete(POD_VALUES, name)
        await stage.bound("long")


async def test_nothing_is_held_back_while_no_run_time_is_known(cluster: Cluster) -> None:
    """Without run times a small pod takes what is free, as in Kubernetes, though a gang waits."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.make_template("t")
        await stage.node("node-a", "gpu-0")
        await stage.node("node-b", "gpu-0")
        await run(stage, "first")
        await stage.bound("first")
        await start_gang(stage)
        await run(stage, "small")
        await stage.bound("small")


async def test_a_run_time_that_makes_no_sense_is_reported(cluster: Cluster) -> None:
    """An event names the annotation and its value, and the pod is placed all the same."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.make_template("t")
        await stage.node("node-a", "gpu-0")
        await run(stage, "p", "soon")
        await stage.bound("p")
        event = await stage.event("p", "InvalidRuntime")
        assert "metadata.annotations[drayman.dev/runtime]: 'soon' is not a duration" in str(
            event["note"]
        )


async def test_saying_how_long_it_runs_is_enough(cluster: Cluster) -> None:
    """A pod that is held back starts as soon as it declares to end in time."""
    async with cluster() as stage:
        await prepare(stage)
        await start_gang(stage)
        await until_reserved(stage)
        await run(stage, "p")
        await stage.refused("p", "RoomReserved")
        await annotate(stage, "p", "5m")
        await stage.bound("p")


async def test_what_is_declared_later_counts(cluster: Cluster) -> None:
    """A pod that already runs may be given a run time: then room is reserved, and from then on others wait."""
    async with cluster() as stage:
        await stage.device_class()
        await stage.make_template("t")
        for name in ("node-a", "node-b"):
            await stage.node(name, "gpu-0", allocatable={"cpu": "2"})
        await run(stage, "first")
        await stage.bound("first")
        await start_gang(stage)
        await annotate(stage, "first", "1h")
        await until_reserved(stage)
        await run(stage, "p", "5h")
        await stage.refused("p", "RoomReserved")


async def annotate(stage: Stage, name: str, runtime: str) -> None:
    change = {"metadata": {"annotations": {RUNTIME: runtime}}}
    await stage.client.patch(POD_VALUES, name, merge_patch(change), NAMESPACE)


@pytest.mark.parametrize("gang", [False, True], ids=["pod", "gang"])
@pytest.mark.parametrize(
    ("runtime", "victims"),
    [
        pytest.param("", [], id="would delay the reserved unit"),
        pytest.param("10m", ["first"], id="ends before that"),
    ],
)
async def test_nobody_goes_for_room_that_is_reserved(
    cluster: Cluster, runtime: str, victims: list[str], gang: bool
) -> None:
    """Pods are preempted only for room that the preemptor may have: not for what is reserved for those that come before it."""
    async with cluster() as stage:
        await classes(stage)
        await stage.make_template("t")
        await stage.node("node-a", "gpu-0")
        await stage.node("node-b", "gpu-0")
        soon = {"terminationGracePeriodSeconds": 0}
        await stage.start_pod("first", from_template(), annotations={RUNTIME: "1h"}, **soon)
        await stage.bound("first")
        later = {RUNTIME: "2h"}
        await stage.start_pod(
            "other", from_template(), annotations=later, priorityClassName="higher"
        )
        await stage.bound("other")
        stated = {"drayman.dev/gang": "2", "drayman.dev/gang-name": "g"}
        for name in ("g-0", "g-1"):
            await stage.start_pod(
                name, from_template(), annotations=stated, priorityClassName="polite"
            )
        await stage.refused("g-0", "GangTooLarge")
        mine = {"drayman.dev/gang": "1", "drayman.dev/gang-name": "late"} if gang else {}
        mine |= {RUNTIME: runtime} if runtime else {}
        await stage.start_pod("late", from_template(), annotations=mine, priorityClassName="high")
        if victims:
            assert await until_asked(stage) == victims
            await stage.bound("late")
        else:
            await stage.refused("late", "")
            await stays(lambda: asked(stage), lambda names: not names)
