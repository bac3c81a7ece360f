"""Jobs and pods that a queue holds are explained by their Workload, which is made for the answer if there is none."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.explain.answer import Explanation
from drayman.explain.overview import explain_all
from drayman.explain.pod import explain_pod
from drayman.explain.workload import explain_job
from drayman.placement.world import World
from drayman.reasons.reason import Reason
from explain.hall import Hall, moment
from explain.queues.cases import one_queue
from oracle.nodes import JsonObject
from steps import steps_of

QUEUE = "kueue.x-k8s.io/queue-name"
GATE = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}


def spec(cpu: int, **more: Any) -> JsonObject:
    resources = {"requests": {"cpu": str(cpu)}}
    containers = [{"name": "c", "image": "none", "resources": resources}]
    return {"restartPolicy": "Never", "containers": containers, **more}


def metadata(name: str, queue: str, **labels: str) -> JsonObject:
    found = {QUEUE: queue, **labels} if queue else labels
    created = moment(-50)
    return {
        "name": name,
        "namespace": "default",
        "uid": name,
        "labels": found,
        "creationTimestamp": created,
    }


def job(name: str, cpu: int, queue: str = "lq-q", **more: Any) -> JsonObject:
    body = {"suspend": True, "parallelism": 1, "completions": 1, "template": {"spec": spec(cpu)}}
    return {"metadata": metadata(name, queue), "spec": {**body, **more}}


def pod(name: str, cpu: int, queue: str = "lq-q", group: str = "", total: int = 0) -> JsonObject:
    labels = {"kueue.x-k8s.io/managed": "true"}
    annotations = {}
    if group:
        labels["kueue.x-k8s.io/pod-group-name"] = group
        annotations["kueue.x-k8s.io/pod-group-total-count"] = str(total)
    data = {**metadata(name, queue, **labels), "annotations": annotations}
    return {"metadata": data, "spec": spec(cpu, **GATE), "status": {"phase": "Pending"}}


def hall(**objects: list[JsonObject]) -> World:
    """A queue with 4 cpu, 3 of which are taken."""
    found: Hall = one_queue().workload("taken", "q", 3, has="f", runs="2h")
    for member, values in objects.items():
        found.objects[member] = values
    return found.world()


def of_pod(world: World) -> Explanation:
    return explain_pod(world, world.objects.pods[-1])


def test_a_suspended_job_says_what_quota_says() -> None:
    """Reason, position and remedies are those of the Workload that it would have."""
    world = hall(jobs=[job("j", 2)])
    found = explain_job(world, world.objects.jobs[0])
    assert (found.kind, found.name, found.headline.reason) == ("Job", "j", Reason.QUOTA_IN_USE)
    assert found.queue is not None
    assert (found.queue.position, found.queue.cluster_queue) == (1, "q")
    assert found.remedies[0].sentence.startswith("Wait until workload default/taken has ended")
    assert found.estimate is not None
    assert found.estimate.start == moment(3600)


def test_the_workload_that_exists_counts() -> None:
    """It is found by its owner, and no second one is made."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    built = one_queue().workload("made", "q", 9, owner=owner)
    built.objects["jobs"] = [job("j", 1)]
    world = built.world()
    found = explain_job(world, world.objects.jobs[0])
    assert found.headline.reason is Reason.QUOTA_TOO_SMALL
    assert found.queue is not None
    assert found.queue.workload == "default/made"


def test_a_workload_that_is_made_for_the_answer_costs_no_second_engine() -> None:
    """Queues and all their workloads are read into an engine once, whether the Workload exists or not."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    steps = []
    for exists in (True, False):
        built = one_queue()
        for number in range(40):
            built.workload(f"w{number}", "q", 1, **({"has": "f"} if number < 4 else {}))
        if exists:
            built.workload("made", "q", 1, owner=owner)
        built.objects["jobs"] = [job("j", 1)]
        world = built.world()
        engine = "explain/queues/engine.py"
        steps.append(
            steps_of(lambda world=world: explain_job(world, world.objects.jobs[0]), engine)
        )
    assert steps[1] < 1.25 * steps[0], steps


def test_a_job_with_quota_is_about_to_start() -> None:
    """It is suspended for a moment only."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    built = one_queue().workload("made", "q", 1, has="f", owner=owner)
    built.objects["jobs"] = [job("j", 1)]
    world = built.world()
    found = explain_job(world, world.objects.jobs[0])
    assert found.headline.reason is Reason.SUSPENDED
    assert "about to be resumed" in found.headline.sentence


@pytest.mark.parametrize("suspended", [True, False])
def test_a_job_that_runs_in_another_cluster_says_where(suspended: bool) -> None:
    """Whether its own controller holds it here or leaves it alone. It does not wait."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    built = one_queue().workload("made", "q", 1, has="f", owner=owner)
    built.objects["queued_workloads"][0]["status"]["clusterName"] = "east"
    managed = {} if suspended else {"managedBy": "kueue.x-k8s.io/multikueue"}
    built.objects["jobs"] = [job("j", 1, suspend=suspended, **managed)]
    world = built.world()
    found = explain_job(world, world.objects.jobs[0])
    assert found.headline.reason is Reason.RUNS
    assert "runs in cluster east: its pods and their logs are there" in found.headline.sentence
    assert "j" not in {part.name for part in explain_all(world).parts}


def test_a_pod_that_runs_in_another_cluster_says_where() -> None:
    """Its gate stays."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}
    built = one_queue().workload("made", "q", 1, has="f", owner=owner)
    built.objects["queued_workloads"][0]["status"]["clusterName"] = "east"
    built.objects["pods"] = [pod("p", 1)]
    world = built.world()
    found = of_pod(world)
    assert (found.headline.reason, "cluster east" in found.headline.sentence) == (Reason.RUNS, True)


def test_a_job_without_a_queue_is_just_suspended() -> None:
    """Quota has nothing to do with it."""
    world = hall(jobs=[job("j", 1, queue="")])
    assert explain_job(world, world.objects.jobs[0]).headline.reason is Reason.SUSPENDED


def test_a_priority_class_that_is_missing_is_named() -> None:
    """No Workload can be made without it."""
    waiting = job("j", 1)
    waiting["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "gold"
    world = hall(jobs=[waiting])
    found = explain_job(world, world.objects.jobs[0])
    assert "there is no WorkloadPriorityClass gold" in found.headline.sentence


def test_a_gated_pod_says_what_quota_says() -> None:
    """The gate itself is no reason."""
    found = of_pod(hall(pods=[pod("p", 2)]))
    assert (found.kind, found.headline.reason) == ("Pod", Reason.QUOTA_IN_USE)


def test_a_gated_pod_that_fits_is_let_go() -> None:
    """As soon as it is its turn."""
    assert of_pod(hall(pods=[pod("p", 1)])).headline.reason is Reason.FITS


def test_pods_of_a_group_wait_until_it_is_whole() -> None:
    """Then they ask for quota together."""
    two = [pod("p-0", 1, group="g", total=2), pod("p-1", 1, group="g", total=2)]
    found = of_pod(hall(pods=two[:1]))
    assert found.headline.reason is Reason.GANG_INCOMPLETE
    assert "has 1 of 2 pods" in found.headline.sentence
    together = of_pod(hall(pods=two))
    assert together.headline.reason is Reason.QUOTA_IN_USE
    assert together.queue is not None
    assert [str(each.wanted) for each in together.queue.needs] == ["2"]


def test_a_gated_pod_without_a_queue_says_so() -> None:
    """It names none."""
    assert of_pod(hall(pods=[pod("p", 1, queue="")])).headline.reason is Reason.QUEUE_MISSING


def test_without_queues_it_is_just_gated() -> None:
    """A world that was read without them has nothing to say."""
    bare = Hall()
    bare.objects["pods"] = [pod("p", 1)]
    assert of_pod(bare.world()).headline.reason is Reason.GATED


def test_what_waits_in_the_cluster_is_listed_by_what_quota_says() -> None:
    """Pods and Jobs alike."""
    world = hall(pods=[pod("p", 2)], jobs=[job("j", 9)])
    parts = {part.name: part.headline.reason for part in explain_all(world).parts}
    assert parts == {"p": Reason.QUOTA_IN_USE, "j": Reason.QUOTA_TOO_SMALL}
