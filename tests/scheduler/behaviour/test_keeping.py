"""Room that somebody asks the scheduler to keep for a pod: others of no higher priority leave it alone, until it is over."""

from __future__ import annotations

import time

import pytest

from controllers.world import POD_VALUES
from drayman.api.struct import Json
from drayman.cluster.patches import strategic_merge_patch
from drayman.cluster.resources import PODS
from drayman.inventory.identity import DeviceId
from drayman.placement.kept_room import CONDITION, KeptRoom, condition_of
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import DRIVER, Stage, from_template, wants

LONG_S = 300.0


async def keep(stage: Stage, name: str, node: str, *devices: str, for_s: float = LONG_S) -> None:
    """Ask for devices of a node to be kept for a pod."""
    kept = KeptRoom.of(
        node, tuple(DeviceId(DRIVER, node, each) for each in devices), time.time() + for_s
    )
    await say(stage, name, condition_of(kept, time.time()))


async def say(stage: Stage, name: str, condition: dict[str, Json]) -> None:
    patch = strategic_merge_patch({"status": {"conditions": [condition]}})
    await stage.client.patch(PODS, name, patch, "default", subresource="status")


async def a_pod_that_waits(stage: Stage) -> None:
    """One that wants both devices of a node of which one is in use."""
    await stage.device_class()
    await stage.node("node-a", "gpu-0", "gpu-1")
    await stage.make_template("one", wants())
    await stage.make_template("two", wants(count=2))
    await stage.start_pod("first", from_template("one"), terminationGracePeriodSeconds=0)
    await stage.bound("first")
    await stage.start_pod("big", from_template("two"))
    await stage.keeps_waiting("big")


async def test_others_leave_it_alone(cluster: Cluster) -> None:
    """A pod that comes later does not get a device that is kept; the pod for which it is kept gets it when the rest is free."""
    async with cluster() as stage:
        await a_pod_that_waits(stage)
        await keep(stage, "big", "node-a", "gpu-0", "gpu-1")
        await stage.until_pod("big", lambda pod: bool(pod.status.conditions))
        await stage.start_pod("late", from_template("one"))
        await stage.keeps_waiting("late")
        await stage.delete(POD_VALUES, "first")
        await stage.bound("big")
        await stage.keeps_waiting("late")


async def test_it_ends_when_it_is_taken_back(cluster: Cluster) -> None:
    """Once the condition is gone, others get what was kept."""
    async with cluster() as stage:
        await a_pod_that_waits(stage)
        await keep(stage, "big", "node-a", "gpu-0", "gpu-1")
        await stage.start_pod("late", from_template("one"))
        await stage.keeps_waiting("late")
        await say(stage, "big", {"type": CONDITION, "$patch": "delete"})
        await stage.bound("late")


async def test_it_ends_with_its_time(cluster: Cluster) -> None:
    """If nobody extends it, room is kept no longer than was asked for."""
    async with cluster() as stage:
        await a_pod_that_waits(stage)
        await keep(stage, "big", "node-a", "gpu-0", "gpu-1", for_s=2.0)
        await stage.start_pod("late", from_template("one"))
        await stage.bound("late")


@pytest.mark.parametrize(
    "record",
    [
        pytest.param('{"node":"node-a","until":1' + "0" * 400 + "}", id="for ever"),
        pytest.param('{"node":"nowhere","until":%d}', id="a node that does not exist"),
        pytest.param(
            '{"node":"node-a","until":%d,"devices":[{"driver":"x","pool":"y","device":"z"}]}',
            id="a device that does not exist",
        ),
    ],
)
async def test_what_makes_no_sense_harms_nobody(cluster: Cluster, record: str) -> None:
    """Others are placed, whatever the condition of a pod says."""
    async with cluster() as stage:
        await a_pod_that_waits(stage)
        text = record % (time.time() + LONG_S) if "%d" in record else record
        await say(stage, "big", {"type": CONDITION, "status": "True", "message": f"x\n{text}"})
        await stage.until_pod("big", lambda pod: len(pod.status.conditions) > 1)
        await stage.start_pod("late", from_template("one"), terminationGracePeriodSeconds=0)
        await stage.bound("late")
        await stage.delete(POD_VALUES, "late")
        await stage.delete(POD_VALUES, "first")
        await stage.bound("big")
