"""Recorded scenarios of the KAI Scheduler, played to the scheduler of a cluster: at rest each queue has what it has in the recording.

The file is beside the repository (`../shared`). Which of equals run is not compared: the recording has ages, and here all are of the same
second.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controllers.world import NAMESPACE
from drayman.cluster.resources import PODS, JsonObject, generic
from patience import PATIENCE_S
from scheduler.behaviour.conftest import Cluster
from scheduler.behaviour.stage import NODE_VALUES, POD_VALUES, Stage
from scheduler.behaviour.test_kai_queues import GPU, KAI_GROUPS, QUEUES

RECORDED = Path(__file__).parents[4] / "shared/conformance/queues/scenarios.jsonl"
CLASSES = generic("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", namespaced=False)
ROUNDS = 200
"""So many looks in a row at a cluster in which nothing changes are rest."""
PLAYED = (
    "limit-parent-reclaim-inside",
    "np-np-over-quota-does-not-reclaim",
    "reclaim-fair-share-no-quota",
    "dept-borrow-inside-first",
)


def recorded() -> dict[str, Any]:
    if not RECORDED.exists():
        pytest.skip(f"{RECORDED} is not here")
    lines = RECORDED.read_text().splitlines()
    return {each["name"]: each for each in map(json.loads, lines)}


@pytest.mark.parametrize("name", PLAYED)
async def test_each_queue_gets_the_same(cluster: Cluster, name: str) -> None:
    """All pods of these ask for the same."""
    scenario = recorded()[name]
    expected = {name: each["running"] for name, each in scenario["expect"]["groups"].items()}
    wanted = in_queues(scenario, expected)
    async with cluster() as stage:
        pods = await played(stage, scenario)
        await at_rest(stage, pods, lambda running: in_queues(scenario, running), wanted)


def in_queues(scenario: Any, running: dict[str, int]) -> Counter[str]:
    """Pods of each queue, by those of each group."""
    found: Counter[str] = Counter()
    for each in scenario["podGroups"]:
        found[each["queue"]] += running[each["name"]]
    return +found


async def played(stage: Stage, scenario: Any) -> dict[str, JsonObject]:
    """Makes everything, and returns the pods by name."""
    for node in scenario["nodes"]:
        amounts = {GPU: str(node["gpus"]), "cpu": "1k", "memory": "1Ti"}
        fields = {"labels": node.get("labels", {}), "spec": {"unschedulable": True}}
        await stage.node(node["name"], allocatable=amounts, **fields)
    for value in {each.get("priority", 0) for each in scenario["podGroups"]} - {0}:
        await stage.create(CLASSES, {"metadata": {"name": f"p{value}"}, "value": value})
    for each in scenario["queues"]:
        gpu = {"quota": -1, "limit": -1, "overQuotaWeight": 1, **each.get("gpu", {})}
        kept = ("parentQueue", "priority", "preemptMinRuntime", "reclaimMinRuntime")
        spec = {"resources": {"gpu": gpu}, **{k: each[k] for k in kept if each.get(k) is not None}}
        await stage.create(QUEUES, {"metadata": {"name": each["name"]}, "spec": spec})
    pods: dict[str, JsonObject] = {}
    # The oldest first: the time of creation is the server's.
    ordered = sorted(scenario["podGroups"], key=lambda each: -each.get("createdSecondsAgo", 0))
    for is_running in (True, False):
        for each in ordered:
            if is_running == any(p.get("nodeName") for p in each["pods"]):
                await submit(stage, each, pods)
    for node in scenario["nodes"]:  # everything is there, so it begins
        await stage.patch(NODE_VALUES, node["name"], {"spec": {"unschedulable": None}})
    return pods


async def submit(stage: Stage, given: Any, pods: dict[str, JsonObject]) -> None:
    kept = ("queue", "minMember", "preemptibility", "preemptionDelay", "stalenessGracePeriod")
    spec = {key: given[key] for key in kept if given.get(key) is not None}
    await stage.create(KAI_GROUPS, {"metadata": {"name": given["name"]}, "spec": spec})
    for each in given["pods"]:
        amounts = {GPU: str(each.get("gpus", 0))}
        resources = {"requests": amounts, "limits": amounts}
        container = {"name": "main", "image": "example.com/image:1", "resources": resources}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
        if given.get("priority"):
            spec["priorityClassName"] = f"p{given['priority']}"
        metadata = {"name": each["name"], "annotations": {"pod-group-name": given["name"]}}
        pods[each["name"]] = {"metadata": metadata, "spec": spec}
        there = {"nodeName": each["nodeName"]} if each.get("nodeName") else {}
        await stage.create(POD_VALUES, {"metadata": metadata, "spec": {**spec, **there}})


async def at_rest(
    stage: Stage,
    pods: dict[str, JsonObject],
    counted: Callable[[dict[str, int]], Counter[str]],
    wanted: Counter[str],
) -> None:
    """Returns when as many pods run as wanted, and stay. Pods that are evicted come back at once, as in the recording."""
    loop = asyncio.get_running_loop()
    end, before, rounds = loop.time() + PATIENCE_S, None, 0
    groups = {
        name: each["metadata"]["annotations"]["pod-group-name"] for name, each in pods.items()
    }
    while rounds < ROUNDS:
        listed = (await stage.client.list(PODS, NAMESPACE)).items
        present = {each.metadata.name: each.spec.node_name for each in listed}
        for name in pods.keys() - present.keys():
            await stage.create(POD_VALUES, pods[name])
        running = dict.fromkeys(groups.values(), 0)
        running |= Counter(groups[name] for name, node in present.items() if node)
        is_as_wanted = present == before and counted(running) == wanted
        assert is_as_wanted or loop.time() < end, f"{counted(running)} is not {wanted}"
        rounds = rounds + 1 if is_as_wanted else 0
        before = present
        await asyncio.sleep(0.01)
