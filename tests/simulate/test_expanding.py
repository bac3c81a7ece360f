"""The pods that controllers would make of workloads."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.jobs import Job
from drayman.placement.fit import FITS, PodNeeds
from drayman.placement.world import World
from drayman.simulate.expanding import Expansion, Workload
from simulate.cluster import alone, cluster, node, pod, workload

OF_DEPLOYMENT = {"pod-template-hash": "5d9c7"}
TAINTED = {"taints": [{"key": "k", "effect": "NoSchedule"}]}


def expanded(made: Workload, world: World | None = None) -> list[Pod]:
    world = world or cluster({"a": 0, "b": 0})
    return [item.pod for item in Expansion(world).of(made)]


def owned(name: str, kind: str, owner: str, **fields: Any) -> Pod:
    """A pod of the cluster that belongs to a workload."""
    references = [{"kind": kind, "name": owner, "controller": True}]
    given = {key: fields.pop(key) for key in ("labels", "annotations") if key in fields}
    return pod(name, metadata={"ownerReferences": references, **given}, **fields)


NAMES: dict[str, tuple[Workload, list[str]]] = {
    "a pod is itself": (alone("p"), ["p"]),
    "a job makes as many as may run at once": (
        workload("Job", "j", parallelism=2, completions=5),
        ["j-1", "j-2"],
    ),
    "a job makes no more than are to complete": (
        workload("Job", "j", parallelism=9, completions=2),
        ["j-1", "j-2"],
    ),
    "an indexed job names its pods by index": (
        workload("Job", "j", parallelism=2, completions=2, completionMode="Indexed"),
        ["j-0", "j-1"],
    ),
    "a suspended job makes none": (workload("Job", "j", suspend=True), []),
    "nor does a job that is left to others": (
        workload("Job", "j", managedBy="example.com/other"),
        [],
    ),
    "nor does a deployment that is paused from the start": (
        workload("Deployment", "d", paused=True),
        [],
    ),
    "a deployment": (workload("Deployment", "d", replicas=2), ["d-1", "d-2"]),
    "a replica set has one replica unless it says otherwise": (
        workload("ReplicaSet", "r"),
        ["r-1"],
    ),
    "a replication controller": (
        workload("ReplicationController", "r", replicas=2),
        ["r-1", "r-2"],
    ),
    "a stateful set counts from where it says": (
        workload("StatefulSet", "s", replicas=2, ordinals={"start": 3}),
        ["s-3", "s-4"],
    ),
    "a daemon set has one on each node": (workload("DaemonSet", "d"), ["d-1", "d-2"]),
}


@pytest.mark.parametrize("title", NAMES)
def test_which_pods_there_are(title: str) -> None:
    made, names = NAMES[title]
    assert [pod.metadata.name for pod in expanded(made)] == names


THERE: dict[str, tuple[Workload, tuple[Pod, ...], list[str]]] = {
    "a pod of that name": (alone("p"), (pod("p", nodeName="a"),), []),
    "a running pod of a job, and one that has succeeded": (
        workload("Job", "j", parallelism=3, completions=3),
        (
            owned("x", "Job", "j", nodeName="a"),
            owned("y", "Job", "j", nodeName="a", status={"phase": "Succeeded"}),
        ),
        ["j-1"],
    ),
    "an index that has succeeded, and one that has failed": (
        workload("Job", "j", parallelism=3, completions=3, completionMode="Indexed"),
        tuple(
            owned(
                f"x{index}",
                "Job",
                "j",
                annotations={"batch.kubernetes.io/job-completion-index": index},
                status={"phase": phase},
            )
            for index, phase in (("0", "Succeeded"), ("1", "Failed"))
        ),
        ["j-1", "j-2"],
    ),
    "a pod of a deployment's replica set": (
        workload("Deployment", "web", replicas=2),
        (
            owned("x", "ReplicaSet", "web-5d9c7", labels=OF_DEPLOYMENT),
            owned("y", "ReplicaSet", "webhook-5d9c7", labels=OF_DEPLOYMENT),
        ),
        ["web-1"],
    ),
    "a pod of a replica set that only sounds like one of the deployment": (
        workload("Deployment", "web"),
        (owned("x", "ReplicaSet", "web-5d9c7"),),
        ["web-1"],
    ),
    "a job without a number of completions makes no more once one has succeeded": (
        workload("Job", "j", parallelism=3),
        (
            owned("x", "Job", "j", nodeName="a"),
            owned("y", "Job", "j", nodeName="a", status={"phase": "Succeeded"}),
        ),
        [],
    ),
    "an ordinal of a stateful set": (
        workload("StatefulSet", "s", replicas=2),
        (owned("s-0", "StatefulSet", "s"),),
        ["s-1"],
    ),
    "an ordinal whose pod has failed is made again": (
        workload("StatefulSet", "s", replicas=2),
        (owned("s-0", "StatefulSet", "s", nodeName="a", status={"phase": "Failed"}),),
        ["s-0", "s-1"],
    ),
    "a daemon that was evicted from its node is made again": (
        workload("DaemonSet", "d"),
        (owned("x", "DaemonSet", "d", nodeName="a", status={"phase": "Failed"}),),
        ["d-1", "d-2"],
    ),
    "a daemon that is on its way to its node": (
        workload("DaemonSet", "d"),
        (owned("x", "DaemonSet", "d", nodeName="a"),),
        ["d-1"],
    ),
    "a pod that is being deleted does not count": (
        workload("ReplicaSet", "r"),
        (
            pod(
                "x",
                metadata={
                    "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "controller": True}],
                    "deletionTimestamp": "2026-01-01T00:00:00Z",
                },
            ),
        ),
        ["r-1"],
    ),
}


@pytest.mark.parametrize("title", THERE)
def test_what_is_there_is_not_made_again(title: str) -> None:
    made, pods, names = THERE[title]
    world = cluster({"a": 0, "b": 0}, pods=pods)
    assert [pod.metadata.name for pod in expanded(made, world)] == names


def test_a_job_that_has_ended_makes_no_pods() -> None:
    """What its status says counts also when its pods are gone."""
    status = {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}
    metadata = {"name": "j", "namespace": "default"}
    done = convert(Job, {"metadata": metadata, "status": status})
    made = workload("Job", "j", completions=1)
    assert expanded(made, cluster({"a": 0}, jobs=(done,))) == []


def test_names_are_not_those_of_other_pods() -> None:
    """The number that stands for a random name passes over what the cluster has."""
    world = cluster({"a": 0}, pods=(pod("r-1"), pod("r-3")))
    found = expanded(workload("ReplicaSet", "r", replicas=2), world)
    assert [made.metadata.name for made in found] == ["r-2", "r-4"]


def test_daemons_go_where_their_template_lets_them() -> None:
    """To cordoned nodes, but not to those whose taints they do not tolerate, and each to one node only."""
    nodes = (node("cordoned", spec={"unschedulable": True}), node("tainted", spec=TAINTED))
    world = cluster({"a": 0}, nodes=nodes)
    pods = expanded(workload("DaemonSet", "d"), world)
    facts = {name: known.facts for name, known in world.state.nodes.items()}
    fitting = [
        [
            name
            for name in facts
            if world.state.static_verdicts.verdict(PodNeeds.of(pod), facts[name]) is FITS
        ]
        for pod in pods
    ]
    assert fitting == [["a"], ["cordoned"]]


def test_the_pods_of_a_stateful_set_have_their_own_volumes() -> None:
    """A volume claim template takes the place of the volume of its name."""
    given = {"volumes": [{"name": "data"}, {"name": "cache"}]}
    claims = [{"metadata": {"name": "data"}}]
    made = workload("StatefulSet", "s", pods=given, replicas=1, volumeClaimTemplates=claims)
    (found,) = expanded(made)
    volumes = {
        volume.name: volume.persistent_volume_claim and volume.persistent_volume_claim.claim_name
        for volume in found.spec.volumes
    }
    assert volumes == {"data": "data-s-0", "cache": None}


def test_every_pod_has_an_identity_of_its_own() -> None:
    """No two pods of all workloads have the same uid."""
    world = cluster({"a": 0, "b": 0})
    expansion = Expansion(world)
    made = [workload("ReplicaSet", "r", replicas=3), workload("DaemonSet", "d"), alone("p")]
    uids = [item.pod.metadata.uid for each in made for item in expansion.of(each)]
    assert len(set(uids)) == len(uids) == 6
