"""Room of workloads that were admitted from queues: the scheduler keeps it until their pods are there."""

from __future__ import annotations

import json
from typing import Any

from controllers.world import POD_VALUES
from drayman.api.kueue_workload import Workload
from drayman.api.struct import Json
from drayman.cluster.resources import typed
from drayman.quota.fitting.rooms import ROOM
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import DRIVER, Stage, from_template, wants

WORKLOADS = typed(Workload).as_values()
DEVICE = {"request": "r", "driver": DRIVER, "pool": "node-a", "device": "gpu-0"}
PLACE = {"node": "node-a", "devices": [{"devices": {"results": [DEVICE]}}]}
RECORD = json.dumps({"places": [{"podSet": "main", "number": 0, **PLACE}]})


async def an_admitted_workload(stage: Stage, group: str, *, asks: bool = True) -> None:
    """One that has the only device of the cluster, and whose pod does not exist yet, whether that asks for it or not."""
    await stage.device_class()
    await stage.node("node-a", "gpu-0")
    await stage.make_template("one", wants())
    entry = from_template("one")
    container: dict[str, Any] = {"name": "main", "image": "example.com/image:1"}
    spec: dict[str, Any] = {"containers": [container], "restartPolicy": "Never"}
    if asks:
        container["resources"] = {"claims": [{"name": entry["name"]}]}
        spec["resourceClaims"] = [entry]
    template = {"spec": spec}
    await stage.create(
        WORKLOADS,
        {
            "metadata": {"name": group, "annotations": {ROOM: RECORD}},
            "spec": {
                "queueName": "l",
                "podSets": [{"name": "main", "count": 1, "template": template}],
            },
        },
    )
    await say(stage, group, "QuotaReserved", "Admitted")


async def say(stage: Stage, name: str, *conditions: str) -> None:
    moment = "2026-01-01T00:00:00Z"
    said = [
        {"type": each, "status": "True", "reason": "X", "message": "", "lastTransitionTime": moment}
        for each in conditions
    ]
    status: dict[str, Any] = {"conditions": said}
    if "QuotaReserved" in conditions:
        assignment: dict[str, Json] = {"name": "main", "count": 1}
        status["admission"] = {"clusterQueue": "q", "podSetAssignments": [assignment]}
    await stage.patch(WORKLOADS, name, {"status": status}, "status")


async def start_member(stage: Stage, name: str, group: str) -> None:
    """A pod of the group that the workload is for."""
    entry = from_template("one")
    container = {
        "name": "main",
        "image": "example.com/image:1",
        "resources": {"claims": [{"name": entry["name"]}]},
    }
    metadata = {
        "name": name,
        "labels": {"kueue.x-k8s.io/pod-group-name": group},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": "1"},
    }
    spec = {"containers": [container], "resourceClaims": [entry]}
    await stage.create(POD_VALUES, {"metadata": metadata, "spec": spec})


async def test_room_is_kept_until_the_pod_is_there(cluster: Cluster) -> None:
    """Another pod does not get the device, though nobody uses it; the pod of the workload does."""
    async with cluster() as stage:
        await an_admitted_workload(stage, "train")
        await stage.start_pod("stranger", from_template("one"))
        await stage.keeps_waiting("stranger")
        await start_member(stage, "member", "train")
        await stage.bound("member")
        await stage.keeps_waiting("stranger")


async def test_room_that_a_workload_has_no_use_for_is_not_kept(cluster: Cluster) -> None:
    """Whoever wrote it down: its pods do not ask for a device."""
    async with cluster() as stage:
        await an_admitted_workload(stage, "train", asks=False)
        await stage.start_pod("stranger", from_template("one"))
        await stage.bound("stranger")


async def test_room_is_free_once_the_workload_is_evicted(cluster: Cluster) -> None:
    """What was kept for a workload is for everybody when it has lost its quota."""
    async with cluster() as stage:
        await an_admitted_workload(stage, "train")
        await stage.start_pod("stranger", from_template("one"))
        await stage.keeps_waiting("stranger")
        await say(stage, "train", "QuotaReserved", "Evicted")
        await stage.bound("stranger")
