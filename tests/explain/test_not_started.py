"""Pods that have their nodes and do not run there: what made them says so, in the words of the pods."""

from __future__ import annotations

import pytest

from drayman.explain.admitted import explain_queued_workload
from drayman.explain.answer import Explanation
from drayman.explain.group import explain_group
from drayman.explain.pod import explain_pod
from drayman.explain.workload import explain_job
from drayman.reasons.reason import Reason
from explain.hall import Hall
from explain.queues.cases import one_queue
from explain.scenarios.scene import Scene
from explain.scenarios.test_gangs import group
from oracle.nodes import JsonObject

WAITS = {"name": "main", "state": {"waiting": {"reason": "ErrImageNeverPull"}}}
STUCK: JsonObject = {"phase": "Pending", "containerStatuses": [WAITS]}
RUNNING: JsonObject = {"phase": "Running"}
RING = {"schedulingGroup": {"podGroupName": "ring"}}
ALLOCATABLE = {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "20"}}
SAID = (
    "The pod is on node node-a, and has not started yet: container main waits (ErrImageNeverPull)."
)


def ring(*statuses: JsonObject) -> Explanation:
    """A gang of pods that are on a node, each with this status."""
    scene = Scene().node("node-a").add("pod_groups", group(len(statuses)))
    for number, status in enumerate(statuses):
        scene.waits(f"ring-{number}", nodeName="node-a", status=status, **RING)
    world = scene.world()
    return explain_group(world, world.objects.pod_groups[0])


def admitted(owner: JsonObject, *pods: JsonObject, jobs: tuple[JsonObject, ...] = ()) -> Hall:
    """A workload with quota, a node, and what the workload is for."""
    hall = one_queue().workload("w", "q", 1, has="f", owner=owner)
    hall.objects["nodes"] = [{"metadata": {"name": "node-a"}, "status": ALLOCATABLE}]
    hall.objects["pods"] = list(pods)
    hall.objects["jobs"] = list(jobs)
    return hall


def pod(name: str, status: JsonObject, owner: JsonObject | None = None) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    spec = {"containers": [{"name": "main"}], "nodeName": "node-a"}
    return {"metadata": metadata, "spec": spec, "status": status}


def owned_by(kind: str, name: str) -> JsonObject:
    owner = {"apiVersion": "v1", "kind": kind, "name": name, "uid": f"uid-{name}"}
    return {**owner, "controller": True}


def told(hall: Hall) -> Explanation:
    world = hall.world()
    return explain_queued_workload(world, world.objects.queued_workloads[0])


def test_a_gang_whose_containers_wait_has_not_started() -> None:
    """The reason is that of its pods, and each member says how it is."""
    found = ring(STUCK, RUNNING)
    assert found.headline.reason is Reason.NOT_STARTED
    assert found.headline.sentence == f"1 of 2 pods does not run: {SAID}"
    assert found.gang is not None
    assert [member.state for member in found.gang.members] == ["placed", "runs"]
    assert found.gang.where == " on node node-a"
    assert [part.gang for part in found.parts] == [None, None]  # it is told of once


def test_a_gang_whose_containers_run_runs() -> None:
    """Nothing is said about single pods then."""
    found = ring(RUNNING, RUNNING)
    assert found.headline.reason is Reason.RUNS
    assert (
        found.headline.sentence
        == "2 pods of pod group default/ring have their nodes on node node-a."
    )
    assert found.parts == ()


def test_a_gang_that_has_lost_its_node_says_so() -> None:
    """What a pod says of a node that is gone, its group says too."""
    scene = Scene().node("node-b").add("pod_groups", group(1))
    world = scene.waits("ring-0", nodeName="node-a", status=RUNNING, **RING).world()
    found = explain_group(world, world.objects.pod_groups[0])
    alone = explain_pod(world, world.objects.pods[0])
    assert found.headline.reason is alone.headline.reason is Reason.NODE_GONE


JOB = {
    "metadata": {"name": "j", "namespace": "default", "uid": "uid-j"},
    "spec": {"parallelism": 1},
}
MEMBER_JOB = {**JOB, "metadata": {**JOB["metadata"], "ownerReferences": [owned_by("JobSet", "s")]}}
OWNED = {
    "by a Job": (owned_by("Job", "j"), pod("p", STUCK, owned_by("Job", "j")), JOB),
    "by a pod": (owned_by("Pod", "p"), pod("p", STUCK), None),
    "by a set of Jobs": (
        owned_by("JobSet", "s"),
        pod("p", STUCK, owned_by("Job", "j")),
        MEMBER_JOB,
    ),
    "by a cluster of Ray": (
        owned_by("RayCluster", "r"),
        pod("p", STUCK, owned_by("RayCluster", "r")),
        None,
    ),
}


@pytest.mark.parametrize("name", OWNED)
def test_an_admitted_workload_whose_pods_do_not_run_says_so(name: str) -> None:
    """Quota is named first, then what the pods wait for, however the workload is owned."""
    owner, its_pod, job = OWNED[name]
    found = told(admitted(owner, its_pod, jobs=() if job is None else (job,)))
    assert found.headline.reason is Reason.NOT_STARTED
    assert found.headline.sentence == (
        "The workload is admitted: it has quota of ClusterQueue q, of flavor f."
        f" 1 of 1 pod does not run: {SAID}"
    )
    assert found.queue is not None
    assert [part.name for part in found.parts] == ["p"]


def test_a_workload_and_its_job_agree() -> None:
    """Also where the job has no pods yet."""
    hall = admitted(owned_by("Job", "j"), jobs=(JOB,))
    world = hall.world()
    job = explain_job(world, world.objects.jobs[0])
    assert told(hall).headline.reason is job.headline.reason is Reason.NO_PODS


@pytest.mark.parametrize("status", [RUNNING, {"phase": "Succeeded"}])
def test_an_admitted_workload_whose_pods_run_runs(status: JsonObject) -> None:
    """Its sentence is about what it holds."""
    found = told(admitted(owned_by("Pod", "p"), pod("p", status)))
    assert found.headline.reason is Reason.RUNS
    assert found.headline.sentence.endswith("it has quota of ClusterQueue q, of flavor f.")
    assert found.parts == ()


def test_pods_of_others_do_not_count() -> None:
    """A pod beside those of the workload may wait for anything."""
    hall = admitted(owned_by("Pod", "p"), pod("p", RUNNING), pod("other", STUCK))
    assert told(hall).headline.reason is Reason.RUNS


FAILED = {
    "type": "Finished",
    "status": "True",
    "reason": "Failed",
    "message": "Job has reached the specified backoff limit",
    "lastTransitionTime": "2027-01-15T07:30:00Z",
}
ENDS = {
    "well": ({**FAILED, "reason": "Succeeded"}, Reason.RUNS, "The workload has finished."),
    "not well": (
        FAILED,
        Reason.FAILED,
        "The workload has failed: Job has reached the specified backoff limit.",
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_workload_that_has_ended_says_how(name: str) -> None:
    """In the words of its condition."""
    condition, reason, sentence = ENDS[name]
    hall = one_queue().workload("w", "q", 1, status={"conditions": [condition]})
    found = told(hall)
    assert (found.headline.reason, found.headline.sentence) == (reason, sentence)
