"""Plans of manifests that name a queue: admitted on which flavors and at what charge, or why not and behind whom."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from drayman.placement.world import World
from drayman.questions.plan import PlanAnswer, plan
from drayman.reasons.reason import Reason
from explain.hall import Hall
from oracle.nodes import JsonObject

QUEUE = "kueue.x-k8s.io/queue-name"


def node(name: str, **labels: str) -> JsonObject:
    allocatable = {"cpu": "8", "memory": "16Gi", "pods": "20"}
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": allocatable, "conditions": ready},
    }


def hall() -> Hall:
    """A queue with 4 cpu of nodes with a label, 1 of which is taken."""
    found = Hall().flavor("f", nodeLabels={"pool": "x"}).queue("q", f=4)
    found.objects["nodes"] = [node("other"), node("right", pool="x")]
    return found.workload("taken", "q", 1, has="f", runs="2h")


def job(name: str, cpu: int, queue: str = "lq-q", pods: int = 1, **spec: Any) -> JsonObject:
    resources = {"requests": {"cpu": str(cpu)}}
    containers = [{"name": "c", "image": "none", "resources": resources}]
    template = {"spec": {"restartPolicy": "Never", "containers": containers}}
    body = {"suspend": True, "parallelism": pods, "completions": pods, "template": template, **spec}
    metadata = {"name": name, "labels": {QUEUE: queue}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": body}


def planned(world: World, *objects: JsonObject, times: int = 1) -> PlanAnswer:
    text = "\n---\n".join(map(json.dumps, objects))
    return asyncio.run(plan(world, [("f.yaml", text.encode())], "default", times=times))


def test_what_is_admitted_is_planned_as_it_would_start() -> None:
    """A suspended Job is resumed, and its pods go to the nodes of their flavor."""
    found = planned(hall().world(), job("j", 1, pods=2))
    assert found.fits
    assert {pod.node for pod in found.pods} == {"right"}
    (quota,) = found.queued
    assert (quota.name, quota.headline.reason) == ("job/j", Reason.FITS)
    assert [(each.flavor, each.resource, str(each.amount)) for each in quota.place.charges] == [
        ("f", "cpu", "2")
    ]


def test_what_gets_no_quota_waits_and_takes_no_room() -> None:
    """Its pods say why, and others that are planned are not kept from nodes by it."""
    found = planned(hall().world(), job("large", 8), job("small", 1))
    waits = {pod.name: pod.waits and pod.waits.reason for pod in found.pods}
    assert waits == {"large-1": Reason.QUOTA_TOO_SMALL, "small-1": None}
    assert not found.fits


def test_it_comes_behind_those_that_wait_already() -> None:
    """And has an estimated start."""
    world = hall().workload("ahead", "q", 4).world()
    (quota,) = planned(world, job("j", 4)).queued
    assert quota.headline.reason is Reason.QUOTA_IN_USE
    assert (quota.place.position, quota.place.ahead) == (2, ("default/ahead",))
    assert quota.estimate is not None


def test_what_is_there_already_is_not_counted_twice() -> None:
    """Its Workload keeps its place in the queue."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    world = hall().workload("made", "q", 9, owner=owner).world()
    (quota,) = planned(world, job("j", 9)).queued
    assert (quota.place.workload, quota.place.waiting) == ("default/made", 1)


def test_copies_use_up_the_quota() -> None:
    """Those that fit and those that do not are told apart."""
    found = planned(hall().world(), job("j", 1), times=5)
    assert (found.copies, found.copies_fitting) == (5, 3)
    assert [(each.headline.reason, each.count) for each in found.queued] == [
        (Reason.FITS, 3),
        (Reason.QUOTA_IN_USE, 2),
    ]
    assert "1 cpu wanted, 0 free" in found.queued[1].headline.sentence


def test_each_pod_of_a_deployment_asks_for_itself() -> None:
    """As many are planned as get quota."""
    containers = [{"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {QUEUE: "lq-q"}},
        "spec": {"replicas": 5, "selector": {"matchLabels": {"a": "b"}}, "template": template},
    }
    found = planned(hall().world(), web)
    assert [(each.headline.reason, each.count) for each in found.queued] == [
        (Reason.FITS, 3),
        (Reason.QUOTA_IN_USE, 2),
    ]
    assert len([pod for pod in found.pods if pod.node]) == 3
    assert not found.fits


def test_queues_in_the_files_join_the_cluster() -> None:
    """A plan with a queue that is not there yet."""
    bare = Hall()
    bare.objects["nodes"] = [node("n")]
    resources = [{"name": "cpu", "nominalQuota": "2"}]
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": resources}]}
    version = "kueue.x-k8s.io/v1beta2"
    objects: list[JsonObject] = [
        {"apiVersion": version, "kind": "ResourceFlavor", "metadata": {"name": "f"}},
        {
            "apiVersion": version,
            "kind": "ClusterQueue",
            "metadata": {"name": "q"},
            "spec": {"namespaceSelector": {}, "resourceGroups": [group]},
        },
        {
            "apiVersion": version,
            "kind": "LocalQueue",
            "metadata": {"name": "lq-q", "namespace": "default"},
            "spec": {"clusterQueue": "q"},
        },
    ]
    found = planned(bare.world(), *objects, job("j", 3))
    assert [each.headline.reason for each in found.queued] == [Reason.QUOTA_TOO_SMALL]


def test_a_group_that_is_not_whole_says_so() -> None:
    """No Workload can be made of it."""
    labels = {QUEUE: "lq-q", "kueue.x-k8s.io/pod-group-name": "g"}
    annotations = {"kueue.x-k8s.io/pod-group-total-count": "2"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": labels, "annotations": annotations},
        "spec": {"containers": [{"name": "c", "image": "none"}]},
    }
    found = planned(hall().world(), pod)
    (quota,) = found.queued
    assert "1 of 2" in quota.headline.sentence
    assert not found.fits


def test_without_queues_nothing_changes() -> None:
    """A Job that names no queue is planned as before, and stays suspended."""
    unlabelled = job("j", 1)
    del unlabelled["metadata"]["labels"]
    found = planned(hall().world(), unlabelled)
    assert found.queued == ()
    assert found.workloads[0].note == "it is suspended"
