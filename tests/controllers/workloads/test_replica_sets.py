"""ReplicaSets and ReplicationControllers through the API."""

from __future__ import annotations

import pytest

from controllers.workloads.stage import Stage, stage, template
from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.cluster.resources import PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, JsonObject
from drayman.controllers.workloads.replica_sets import ReplicaSetController, ReplicationManager
from drayman.workloads.pod_state import expendable_first


def replica_set(name: str = "web", replicas: int = 3, **spec: object) -> JsonObject:
    selector = {"matchLabels": {"app": name}}
    body = {"replicas": replicas, "selector": selector, "template": template(app=name), **spec}
    return {"metadata": {"name": name}, "spec": body}


def bare_pod(name: str, **labels: str) -> JsonObject:
    body = template(**labels)
    return {"metadata": {"name": name, **body["metadata"]}, "spec": body["spec"]}


async def settled(place: Stage, replicas: int) -> None:
    await place.until_one(REPLICA_SETS, "web", lambda s: s.status.replicas == replicas)
    await place.until(PODS, lambda pods: len(pods) == replicas)


async def test_a_replica_set_keeps_its_number_of_pods() -> None:
    """Pods are made, replaced when one is lost, and given up when fewer are wanted."""
    async with stage(ReplicaSetController) as place:
        await place.create(REPLICA_SETS, replica_set())
        await settled(place, 3)
        lost = (await place.pods())[0]
        await place.remove_pod(lost)
        pods = await place.until(
            PODS, lambda pods: len(pods) == 3 and lost.metadata.uid not in _uids(pods)
        )
        assert {p.metadata.labels["app"] for p in pods} == {"web"}
        await place.scale(REPLICA_SETS, "web", 1)
        await settled(place, 1)


async def test_the_status_counts_ready_and_available_pods() -> None:
    """A pod is available once it has been ready for minReadySeconds."""
    async with stage(ReplicaSetController) as place:
        await place.create(REPLICA_SETS, replica_set(replicas=2, minReadySeconds=100))
        await settled(place, 2)
        await place.run_pod((await place.pods())[0])
        ready = await place.until_one(REPLICA_SETS, "web", lambda s: s.status.ready_replicas == 1)
        assert ready.status.available_replicas == 0
        assert ready.status.fully_labeled_replicas == 2
        place.clock.ahead = 101.0
        await place.patch(REPLICA_SETS, "web", {"metadata": {"annotations": {"look": "again"}}})
        await place.until_one(REPLICA_SETS, "web", lambda s: s.status.available_replicas == 1)


async def test_a_replica_set_adopts_and_releases_by_labels() -> None:
    """A loose pod that matches is taken in; one whose labels change is let go and replaced."""
    async with stage(ReplicaSetController) as place:
        await place.create(PODS, bare_pod("loose", app="web"))
        await place.create(REPLICA_SETS, replica_set(replicas=2))
        pods = await place.until(PODS, lambda pods: len(pods) == 2)
        assert "loose" in {pod.metadata.name for pod in pods}
        await place.until_one(PODS, "loose", lambda pod: bool(pod.metadata.owner_references))
        await place.patch(PODS, "loose", {"metadata": {"labels": {"app": "other"}}})
        await place.until_one(PODS, "loose", lambda pod: not pod.metadata.owner_references)
        await place.until(PODS, lambda pods: len(pods) == 3)


async def test_a_refusal_is_told_once_and_in_the_status() -> None:
    """Where pods are refused, ReplicaFailure says why, and goes away when they no longer are."""
    async with stage(ReplicaSetController) as place:
        body = template(app="web")
        body["spec"]["priorityClassName"] = "missing"
        await place.create(REPLICA_SETS, replica_set(template=body))
        failed = await place.until_one(
            REPLICA_SETS,
            "web",
            lambda s: any(c.type_ == "ReplicaFailure" for c in s.status.conditions),
        )
        (condition,) = failed.status.conditions
        assert (condition.status, condition.reason) == ("True", "FailedCreate")
        assert "missing" in condition.message
        await place.told("FailedCreate")
        template_fix = {"spec": {"template": {"spec": {"priorityClassName": None}}}}
        await place.patch(REPLICA_SETS, "web", template_fix)
        fixed = await place.until_one(REPLICA_SETS, "web", lambda s: s.status.replicas == 3)
        await place.until_one(REPLICA_SETS, "web", lambda s: not s.status.conditions)
        assert fixed.metadata.uid == failed.metadata.uid


def replication_controller(replicas: int) -> JsonObject:
    spec = {"replicas": replicas, "template": template(app="web")}
    return {"metadata": {"name": "web"}, "spec": spec}


async def test_a_replication_controller_keeps_its_number_of_pods() -> None:
    """Its pods are made, adopted by labels, replaced and given up like those of a replica set, and it is their owner."""
    async with stage(ReplicationManager) as place:
        await place.create(PODS, bare_pod("loose", app="web"))
        await place.create(REPLICATION_CONTROLLERS, replication_controller(3))
        pods = await place.until(PODS, lambda pods: len(pods) == 3)
        assert "loose" in {pod.metadata.name for pod in pods}
        await place.until_one(PODS, "loose", lambda pod: bool(pod.metadata.owner_references))
        await place.run_pod(pods[0])
        found = await place.until_one(
            REPLICATION_CONTROLLERS, "web", lambda c: c.status.ready_replicas == 1
        )
        assert (found.status.replicas, found.status.fully_labeled_replicas) == (3, 3)
        (owner,) = (await place.pods())[0].metadata.owner_references
        assert (owner.api_version, owner.kind) == ("v1", "ReplicationController")
        await place.scale(REPLICATION_CONTROLLERS, "web", 1)
        await place.until_one(REPLICATION_CONTROLLERS, "web", lambda c: c.status.replicas == 1)
        await place.until(PODS, lambda pods: len(pods) == 1)
        await place.told("SuccessfulCreate", "SuccessfulDelete")


async def test_replica_sets_and_replication_controllers_leave_each_other_alone() -> None:
    """Of the same name and the same labels, each counts the pods that are its own."""
    async with stage(ReplicaSetController, ReplicationManager) as place:
        await place.create(REPLICA_SETS, replica_set(replicas=2))
        await place.until(PODS, lambda pods: len(pods) == 2)
        await place.create(REPLICATION_CONTROLLERS, replication_controller(1))
        pods = await place.until(PODS, lambda pods: len(pods) == 3)
        owners = sorted(pod.metadata.owner_references[0].kind for pod in pods)
        assert owners == ["ReplicaSet", "ReplicaSet", "ReplicationController"]


async def test_a_restarted_controller_makes_no_pod_twice() -> None:
    """A crash amid the creation of many pods leaves as many as there should be, not more."""
    async with stage(ReplicaSetController) as place:
        await place.create(REPLICA_SETS, replica_set(replicas=200))
        await place.until(PODS, lambda pods: len(pods) > 20)
        await place.crash()
        await place.start(ReplicaSetController)
        await place.until_one(REPLICA_SETS, "web", lambda s: s.status.replicas == 200)
        assert len(await place.pods()) == 200


def _uids(pods: list[Pod]) -> set[str]:
    return {pod.metadata.uid for pod in pods}


def _pod(name: str, **more: object) -> Pod:
    return convert(
        Pod, {"metadata": {"name": name, "uid": name, **more.pop("metadata", {})}, **more}
    )


READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
RECENT = READY | {"lastTransitionTime": "2026-01-01T02:00:00Z"}
RUNNING = {"phase": "Running", "conditions": [READY]}
CHEAP = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}
RANKINGS = {
    "not placed before placed": ({}, {"spec": {"nodeName": "n"}}),
    "pending before running": (
        {"spec": {"nodeName": "n"}, "status": {"phase": "Pending"}},
        {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}},
    ),
    "not ready before ready": (
        {"spec": {"nodeName": "n"}, "status": {"phase": "Running"}},
        {"spec": {"nodeName": "n"}, "status": RUNNING},
    ),
    "cheap before dear": ({"metadata": CHEAP, "status": RUNNING}, {"status": RUNNING}),
    "ready for a short time before a long one": (
        {"status": {"phase": "Running", "conditions": [RECENT]}},
        {"status": RUNNING},
    ),
    "often restarted before never": (
        {"status": RUNNING | {"containerStatuses": [{"name": "c", "restartCount": 3}]}},
        {"status": RUNNING},
    ),
    "young before old": (
        {"metadata": {"creationTimestamp": "2026-01-01T02:59:00Z"}},
        {"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}},
    ),
}


@pytest.mark.parametrize("case", RANKINGS)
def test_pods_that_do_least_are_given_up_first(case: str) -> None:
    """The first of the two pods goes before the second, whatever they are called."""
    first, second = RANKINGS[case]
    now = 1767236400.0  # 2026-01-01T03:00:00Z
    for names in (("a", "b"), ("b", "a")):
        pods = [_pod(names[0], **first), _pod(names[1], **second)]
        ranked = expendable_first(reversed(pods), now)
        assert [pod.metadata.name for pod in ranked] == list(names)


def test_crowded_nodes_are_thinned_out_first() -> None:
    """Of two equal pods the one goes whose node holds more of the same deployment."""
    lonely = _pod("lonely", spec={"nodeName": "n1"})
    crowded = _pod("with-others", spec={"nodeName": "n2"})
    other = _pod("other", spec={"nodeName": "n2"})
    ranked = expendable_first([lonely, crowded], 0.0, [lonely, crowded, other])
    assert [pod.metadata.name for pod in ranked] == ["with-others", "lonely"]
