"""Objects that ask for more pods than nodes will ever take, and objects whose pods are refused for good."""

from __future__ import annotations

import asyncio

import pytest

from controllers.workloads.stage import NAMESPACE, Stage, stage, template
from drayman.api.core import Pod
from drayman.cluster.resources import (
    EVENTS,
    JOBS,
    NODES,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
    JsonObject,
    Resource,
)
from drayman.controllers.workloads.jobs import JobController
from drayman.controllers.workloads.owning_pods import HELD_BACK_S
from drayman.controllers.workloads.replica_sets import ReplicaSetController
from drayman.controllers.workloads.stateful_sets import StatefulSetController
from drayman.workloads.restraint import most_waiting, weight_of

MOST = 2**31 - 1


def heavy(**spec: object) -> JsonObject:
    """A template whose pods count for many objects each, so that few of them are made."""
    body = template(app="web")
    claims = [{"name": f"c{n}", "resourceClaimTemplateName": "t"} for n in range(200)]
    body["spec"] |= {"resourceClaims": claims, **spec}
    return body


SELECTOR = {"matchLabels": {"app": "web"}}
OWNERS: dict[str, tuple[type, Resource[object], JsonObject]] = {
    "ReplicaSet": (
        ReplicaSetController,
        REPLICA_SETS,
        {"replicas": MOST, "selector": SELECTOR, "template": heavy()},
    ),
    "StatefulSet": (
        StatefulSetController,
        STATEFUL_SETS,
        {
            "replicas": MOST,
            "selector": SELECTOR,
            "template": heavy(),
            "serviceName": "s",
            "podManagementPolicy": "Parallel",
        },
    ),
    "Job": (
        JobController,
        JOBS,
        {"parallelism": MOST, "completions": MOST, "template": heavy(restartPolicy="Never")},
    ),
}


async def place_one(place: Stage, pod: Pod) -> None:
    await place.client.bind(pod.metadata.name, NAMESPACE, "node", uid=pod.metadata.uid)


@pytest.mark.parametrize("kind", list(OWNERS))
async def test_no_more_pods_are_made_than_may_wait(kind: str) -> None:
    """However many are asked for. Each that gets a node is followed by another, and a warning says why there are no more."""
    controller, resource, spec = OWNERS[kind]
    most = most_waiting(weight_of(heavy()))
    async with stage(controller) as place:
        await place.create(NODES, {"metadata": {"name": "node"}})
        await place.create(resource, {"metadata": {"name": "web"}, "spec": spec})
        pods = await place.until(PODS, lambda pods: len(pods) == most)
        for pod in pods[:3]:
            await place_one(place, pod)
        await place.until(PODS, lambda pods: len(pods) == most + 3)
        place.clock.ahead = HELD_BACK_S + 1
        await place.patch(resource, "web", {"metadata": {"annotations": {"look": "again"}}})
        await _until_warned(place, f"{most} pods wait for a node")
        assert len(await place.pods()) == most + 3


async def test_a_replica_set_that_is_held_back_says_so_in_its_status() -> None:
    """ReplicaFailure is set while no more pods are made, and goes away when fewer are asked for."""
    controller, resource, spec = OWNERS["ReplicaSet"]
    most = most_waiting(weight_of(heavy()))
    async with stage(controller) as place:
        await place.create(resource, {"metadata": {"name": "web"}, "spec": spec})
        await place.until_one(resource, "web", lambda s: s.status.replicas == most)
        place.clock.ahead = HELD_BACK_S + 1
        await place.patch(resource, "web", {"metadata": {"annotations": {"look": "again"}}})
        held = await place.until_one(resource, "web", lambda s: bool(s.status.conditions))
        (condition,) = held.status.conditions
        assert (condition.type_, condition.status) == ("ReplicaFailure", "True")
        assert condition.message.startswith(f"{most} pods wait for a node")
        await place.scale(resource, "web", most)
        await place.until_one(resource, "web", lambda s: not s.status.conditions)


async def test_pods_that_are_refused_for_their_content_are_not_tried_again() -> None:
    """A name that is too long for a label stays too long. A change of the set is looked at at once."""
    name = "x" * 63
    spec = {"replicas": 1, "selector": SELECTOR, "template": template(app="web"), "serviceName": ""}
    async with stage(StatefulSetController) as place:
        await place.create(STATEFUL_SETS, {"metadata": {"name": name}, "spec": spec})
        await _until_warned(place, "must be no more than 63")
        assert place.running is not None
        queue = place.running.controllers[0].queue
        await _until_idle(place)
        (timer,) = queue._timers.values()
        assert timer.when() - asyncio.get_running_loop().time() > 60


async def _until_warned(place: Stage, words: str) -> None:
    """Looks at the events until one says so."""
    while True:
        found = (await place.client.list(EVENTS, NAMESPACE)).items
        if any(event["type"] == "Warning" and words in event["note"] for event in found):
            return
        await asyncio.sleep(0.01)


async def _until_idle(place: Stage) -> None:
    assert place.running is not None
    queue = place.running.controllers[0].queue
    while len(queue) or queue._taken or not queue._timers:
        await asyncio.sleep(0.01)
