"""What a plan says about workloads that are not submitted yet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from drayman.api.codec import convert
from drayman.api.custom_groups import KaiQueue, PluginPodGroup
from drayman.api.jobs import Job
from drayman.api.pod_groups import PodGroup
from drayman.explain.pod import explain_pod
from drayman.reasons.reason import Headline, Reason
from drayman.simulate.copying import Wanted, objects_of
from drayman.simulate.expanding import Workload
from drayman.simulate.plan_report import PlannedPod
from drayman.simulate.plan_steps import STEPS, PlanContext
from drayman.simulate.plan_turn import Turn
from drayman.simulate.planning import Planning, plan
from placement.fit.storage import claim as volume_claim
from placement.fit.storage import storage_class, volume
from simulate.cluster import alone, claim, cluster, held, place, pod, wanted, workload

DEFAULT = "storageclass.kubernetes.io/is-default-class"


def places(devices: dict[str, int], asked: Wanted, **options: Any) -> dict[str, str]:
    """Where each pod goes, by name."""
    objects = {name: options.pop(name) for name in ("pods", "claims") if name in options}
    report = plan(cluster(devices, **objects), asked, **options)
    return {planned.name: place(planned) for planned in report.pods}


CASES: dict[str, tuple[dict[str, int], Wanted, dict[str, str]]] = {
    "pods take devices one after the other": (
        {"a": 2},
        wanted(alone("p", "one"), alone("q", "one"), alone("r", "one")),
        {"p": "a: gpu-0", "q": "a: gpu-1", "r": "DevicesInUse"},
    ),
    "the more important pod is placed first, and told in the order of the files": (
        {"a": 1},
        wanted(alone("low", "one"), alone("high", "one", priority=10)),
        {"low": "DevicesInUse", "high": "a: gpu-0"},
    ),
    "a claim by name is shared": (
        {"a": 1},
        wanted(alone("p", claim="c"), alone("q", claim="c"), claims=(claim("c"),)),
        {"p": "a: gpu-0", "q": "a: gpu-0"},
    ),
    "a claim that nobody makes is missed": (
        {"a": 1},
        wanted(alone("p", claim="c")),
        {"p": "ClaimMissing"},
    ),
    "a pod behind a gate waits": (
        {"a": 1},
        wanted(alone("p", "one", schedulingGates=[{"name": "g"}])),
        {"p": "Gated"},
    ),
    "a pod that names its node is there": ({"a": 0}, wanted(alone("p", nodeName="a")), {"p": "a"}),
    "a pod that names its node gets no devices": (
        {"a": 1},
        wanted(alone("p", nodeName="a", claim="c"), claims=(claim("c"),)),
        {"p": "ClaimUnallocated"},
    ),
    "nor does one with a template": (
        {"a": 1},
        wanted(alone("p", "one", nodeName="a")),
        {"p": "ClaimUnallocated"},
    ),
    "a pod that names its node needs its claims": (
        {"a": 1},
        wanted(alone("p", nodeName="a", claim="c")),
        {"p": "ClaimMissing"},
    ),
    "a pod that names a node that is not there": (
        {"a": 1},
        wanted(alone("p", nodeName="b")),
        {"p": "NodeGone"},
    ),
    "a pod that names the node where its claim is": (
        {"a": 1},
        wanted(alone("p", nodeName="a", claim="c"), claims=(held("c", "a", "gpu-0"),)),
        {"p": "a"},
    ),
    "processors run out before devices": (
        {"a": 4},
        wanted(alone("p", "one", cpu="30"), alone("q", "one", cpu="30")),
        {"p": "a: gpu-0", "q": "NodesFull"},
    ),
    "an ordered set stops at the pod that does not fit": (
        {"a": 3},
        wanted(workload("StatefulSet", "db", "two", replicas=3)),
        {"db-0": "a: gpu-0,gpu-1", "db-1": "DevicesInUse", "db-2": "NoPods"},
    ),
    "a set that is not ordered goes on": (
        {"a": 3},
        wanted(workload("StatefulSet", "db", "two", replicas=3, podManagementPolicy="Parallel")),
        {"db-0": "a: gpu-0,gpu-1", "db-1": "DevicesInUse", "db-2": "DevicesInUse"},
    ),
    "daemons that do not fit on their nodes wait for those": (
        {"a": 1, "b": 0},
        wanted(workload("DaemonSet", "agent", "one")),
        {"agent-1": "a: gpu-0", "agent-2": "NodeMismatch"},
    ),
}


@pytest.mark.parametrize("title", CASES)
def test_where_pods_would_go(title: str) -> None:
    devices, asked, expected = CASES[title]
    assert places(devices, asked) == expected


def test_pods_that_wait_already_come_first() -> None:
    """A pod of the cluster that is older gets the last device, and is not part of the report."""
    older = pod("older", "one", metadata={"creationTimestamp": "2026-01-01T00:00:00Z"})
    asked = wanted(alone("p", "one"))
    assert places({"a": 1}, asked, pods=(older,)) == {"p": "DevicesInUse"}
    assert places({"a": 1}, asked, pods=(older,), pending_first=False) == {"p": "a: gpu-0"}


def test_what_is_held_counts() -> None:
    """Devices that a claim of the cluster holds are not given again."""
    found = places({"a": 2}, wanted(alone("p", "one")), claims=(held("c", "a", "gpu-0"),))
    assert found == {"p": "a: gpu-1"}


def test_the_world_is_left_as_it_is() -> None:
    """A plan made twice on one world says the same twice."""
    world, asked = cluster({"a": 1}), wanted(alone("p", "one"))
    assert plan(world, asked) == plan(world, asked)


def test_copies_have_claims_of_their_own() -> None:
    """Copies count as fitting where all of their pods fit, and do not share the claims of the first."""
    asked = wanted(alone("p", claim="c"), alone("q", claim="c"), claims=(claim("c", 2),))
    report = plan(cluster({"a": 4, "b": 3}), asked, times=5)
    assert (report.copies, report.copies_fitting, report.fits) == (5, 3, False)
    found = {planned.name: place(planned) for planned in report.pods}
    assert found["p-2"] == found["q-2"] != found["p"] == found["q"]


def test_the_pods_of_a_group_share_its_claim() -> None:
    """Pods whose entry is their group's use the devices of the group, which are taken once."""
    entry = {"name": "gpu", "resourceClaimTemplateName": "two"}
    group = convert(
        PodGroup,
        {
            "metadata": {"name": "gang", "namespace": "default", "uid": "gang"},
            "spec": {"resourceClaims": [entry]},
        },
    )
    member = {"schedulingGroup": {"podGroupName": "gang"}}
    asked = wanted(alone("p", "two", **member), alone("q", "two", **member), pod_groups=(group,))
    assert places({"a": 2}, asked) == {"p": "a: gpu-0,gpu-1", "q": "a: gpu-0,gpu-1"}


def test_copies_have_gangs_of_their_own() -> None:
    """Whichever way a gang is named: its object and its pods have the name of the copy. What is not copied keeps its name."""
    metadata = {"name": "g", "namespace": "default"}
    marks = {
        "scheduling.x-k8s.io/pod-group": "g",
        "kueue.x-k8s.io/pod-group-name": "k",
    }
    stated = {"pod-group-name": "elsewhere", "drayman.dev/gang-name": "d", "other": "g"}
    single = alone("p")
    single = replace(
        single,
        template=structs.replace(
            single.template,
            metadata=structs.replace(single.template.metadata, labels=marks, annotations=stated),
        ),
    )
    body = {"template": {"metadata": {"labels": marks, "annotations": stated}}}
    job = convert(Job, {"metadata": {**metadata, "annotations": stated}, "spec": body})
    asked = wanted(
        single,
        Workload(single.template, job),
        plugin_pod_groups=(convert(PluginPodGroup, {"metadata": metadata}),),
    )
    _, copy = asked.copies(2)
    assert [each.metadata.name for each in copy.objects.plugin_pod_groups] == ["g-2"]
    of_copy = {mark: f"{name}-2" for mark, name in marks.items()}
    names = {"pod-group-name": "elsewhere", "drayman.dev/gang-name": "d-2", "other": "g"}
    lone, owned = copy.workloads
    assert (lone.template.metadata.labels, lone.template.metadata.annotations) == (of_copy, names)
    assert isinstance(owned.owner, Job)
    assert owned.owner.metadata.annotations == names
    assert owned.owner.spec.template["metadata"] == {"labels": of_copy, "annotations": names}
    both = objects_of(list(asked.copies(2)))
    assert [each.metadata.name for each in both.plugin_pod_groups] == ["g", "g-2"]


def test_pods_of_one_shape_are_told_their_own_claims() -> None:
    """Sentences that are worked out once for many pods name the claim of each."""
    report = plan(cluster({"a": 1}), wanted(workload("ReplicaSet", "many", "two", replicas=3)))
    for planned in report.pods:
        assert planned.waits is not None
        others = {f"many-{number}-" for number in (1, 2, 3)} - {f"{planned.name}-"}
        assert not any(other in planned.waits.sentence for other in others)


def test_workloads_tell_why_they_make_no_pods() -> None:
    """A suspended job, one without replicas, one that has its pods, one of others, one that is paused: each says so."""
    owned = {"ownerReferences": [{"kind": "ReplicaSet", "name": "there", "controller": True}]}
    asked = wanted(
        workload("Job", "later", suspend=True),
        workload("ReplicaSet", "none", replicas=0),
        workload("ReplicaSet", "there", replicas=1),
        workload("Job", "elsewhere", managedBy="example.com/other"),
        workload("Deployment", "paused", paused=True),
    )
    world = cluster({"a": 0}, pods=(pod("there-x", nodeName="a", metadata=owned),))
    assert [(w.name, w.existing, w.note) for w in plan(world, asked).workloads] == [
        ("job/later", 0, "it is suspended"),
        ("replicaset/none", 0, "it asks for none"),
        ("replicaset/there", 1, "it has all of its pods already"),
        ("job/elsewhere", 0, "it is left to example.com/other"),
        ("deployment/paused", 0, "it is paused"),
    ]


def test_what_is_there_and_waits_is_not_passed_over_in_silence() -> None:
    """Pods that the cluster has are not planned again, but somebody who plans them wants to know that they wait."""
    owned = {"ownerReferences": [{"kind": "ReplicaSet", "name": "there", "controller": True}]}
    asked = wanted(workload("ReplicaSet", "there", replicas=2), alone("p"), alone("q"))
    there = (pod("there-x", metadata=owned), pod("there-y", nodeName="a", metadata=owned))
    world = cluster({"a": 0}, pods=(*there, pod("p"), pod("q", nodeName="a")))
    waits = "must still find a node: `drayman explain` says why"
    assert [w.note for w in plan(world, asked).workloads] == [
        f"it has all of its pods already, but 1 of them {waits}",
        f"it is there already, but it {waits}",
        "it is there already",
    ]


def test_a_rule_can_be_added_as_a_step() -> None:
    """A step in front of the others decides about the pods that it has something to say about."""

    def closed_on_sundays(context: PlanContext, turn: Turn) -> PlannedPod | None:
        if turn.pod.metadata.name != "p":
            return None
        return turn.result(waits=Headline.of(Reason.GATED, "It is Sunday."))

    asked = wanted(alone("p", "one"), alone("q", "one"))
    found = places({"a": 1}, asked, steps=(closed_on_sundays, *STEPS))
    assert found == {"p": "Gated", "q": "a: gpu-0"}


FIRST = (alone("p", "two"), alone("q", claim="c"), workload("ReplicaSet", "r", "one", replicas=2))
SECOND = (alone("s", "two"), alone("t", claim="c"), alone("u", "one"), alone("v", "one"))


def test_a_plan_on_what_a_plan_leaves_is_one_plan() -> None:
    """Two plans, the second on the cluster that the first leaves, come to the same as both at once."""
    world, shared = cluster({"a": 3, "b": 4}), {"claims": (claim("c"),)}
    first = Planning(world, wanted(*FIRST, **shared))
    first.carried_out()
    after, _, _ = first.afterwards()
    apart = plan(after, wanted(*SECOND), pending_first=False)
    together = plan(world, wanted(*FIRST, *SECOND, **shared))
    assert [place(p) for p in apart.pods] == [place(p) for p in together.pods[-4:]]
    assert "DevicesInUse" in {place(p) for p in apart.pods}


def test_what_the_plan_takes_is_told_from_what_is_in_use() -> None:
    """Somebody has two of six devices, two pods of the plan would get two each, and the third is told so: now and in what explains it."""
    world = cluster({"a": 6}, claims=(held("x", "a", "gpu-0"), held("y", "a", "gpu-1")))
    asked = wanted(workload("ReplicaSet", "r", "two", replicas=3))
    planning = Planning(world, asked)
    (waits,) = [p.waits for p in planning.carried_out().pods if p.waits is not None]
    told = "of 6 that match, 2 are in use and 4 are taken by pods that come before it."
    assert waits.sentence == f"Claim gpu, request gpu wants 2 devices; {told}"
    after, planned, (pod,) = planning.afterwards()
    assert explain_pod(after, pod, planned=planned).headline.sentence.endswith(told)


def test_what_waits_is_left_with_the_claims_that_the_plan_named() -> None:
    """The cluster after a plan has the pods that wait, each with the claim of which its headline speaks."""
    planning = Planning(cluster({"a": 1}), wanted(workload("ReplicaSet", "r", "two", replicas=2)))
    report = planning.carried_out()
    world, _, waiting = planning.afterwards()
    (first,) = waiting
    (status,) = first.status.resource_claim_statuses
    assert status.resource_claim_name is not None
    assert world.claim("default", status.resource_claim_name) is not None
    assert report.pods[0].waits is not None
    assert f"Claim {status.name}, " in report.pods[0].waits.sentence


def test_pods_get_the_volumes_that_live_as_long_as_they_do() -> None:
    """Their claims are made with them, so they wait for nothing but what a volume needs."""

    def user(name: str, of: str) -> Workload:
        spec = {"storageClassName": of, "resources": {"requests": {"storage": "1Gi"}}}
        source = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
        return alone(name, "one", volumes=[source])

    world = cluster({"a": 2}, storage_classes=(storage_class("fast", "ebs.csi.aws.com"),))
    planning = Planning(world, wanted(user("p", "fast"), user("q", "missing")))
    found = {planned.name: place(planned) for planned in planning.carried_out().pods}
    assert found == {"p": "a: gpu-0", "q": "VolumeUnbound"}
    after, _, (waiting,) = planning.afterwards()
    told = explain_pod(after, waiting).headline.sentence
    assert told.endswith("q-v is not bound to a volume yet; its class missing does not exist.")


def test_volumes_are_planned_with_the_nodes() -> None:
    """Pods go where their disks are, each to one of its own; claims of the default class get a volume anywhere."""

    def user(name: str, claim_name: str) -> Workload:
        source = {"name": "v", "persistentVolumeClaim": {"claimName": claim_name}}
        return alone(name, "one", volumes=[source])

    disks = tuple(volume(f"disk-{n}", host=n, phase="") for n in ("b", "c"))
    usual = storage_class("usual", "ebs.csi.aws.com", metadata={"annotations": {DEFAULT: "true"}})
    claims = [volume_claim(f"local-{number}") for number in range(3)]
    claims.append(volume_claim("any", storageClassName=None))
    world = cluster({"a": 1, "b": 2, "c": 2}, storage_classes=(storage_class(), usual))
    asked = wanted(
        *(user(f"p{number}", f"local-{number}") for number in range(3)),
        user("q", "any"),
        volumes=disks,
        volume_claims=tuple(claims),
    )
    found = {planned.name: place(planned).partition(":")[0] for planned in plan(world, asked).pods}
    assert sorted(found[f"p{number}"] for number in range(3)) == ["VolumeLacking", "b", "c"]
    assert found["q"] in ("a", "b", "c")


def test_pods_of_a_plan_stay_within_the_limits_of_their_queue() -> None:
    """Each counts for those behind it, as soon as it has a place; a queue that does not exist takes nobody."""
    limits = {"resources": {"gpu": {"quota": 0, "limit": 2}}}
    queue = convert(KaiQueue, {"metadata": {"name": "small"}, "spec": limits})
    in_queues = [("p", "small"), ("q", "small"), ("r", "small"), ("s", "smal"), ("t", "")]
    asked = wanted(
        *(
            alone(name, "one", metadata={"labels": {"kai.scheduler/queue": queue} if queue else {}})
            for name, queue in in_queues
        )
    )
    report = plan(cluster({"a": 8}, kai_queues=(queue,)), asked)
    assert {planned.name: place(planned) for planned in report.pods} == {
        "p": "a: gpu-0",
        "q": "a: gpu-1",
        "r": "OverLimit",
        "s": "QueueDoesNotExist",
        "t": "a: gpu-2",
    }
