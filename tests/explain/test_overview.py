"""All that waits, by reason and by whose it is."""

from __future__ import annotations

from typing import Any

from drayman.api.codec import convert
from drayman.api.custom_groups import KaiQueue
from drayman.api.pod_groups import PodGroup
from drayman.explain.answer import Explanation
from drayman.explain.overview import explain_all, explain_namespace
from drayman.explain.pod import explain_pod
from explain.town import Town
from oracle.build import claim, exactly
from simulate.cluster import cluster, pod

SWEEP = {
    "ownerReferences": [{"kind": "Job", "name": "sweep", "uid": "uid-sweep", "controller": True}]
}


def named(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default", "uid": f"{kind}-{name}"}, **fields}


def town() -> Town:
    """A full node, four pods that wait for devices, one that waits for something that is not there, and things without pods."""
    made = Town().node("n0", 1).holds("holder", "n0", "d0")
    for number in range(3):
        made.wants(claim(exactly("gpus", 1)), name=f"sweep-{number}", metadata=SWEEP)
    made.wants(claim(exactly("gpus", 1)), name="alone")
    made.wants(claim(exactly("gpus", 9)), name="greedy")
    made.runs("elsewhere", "gone", namespace="other")
    made.jobs.append(named("Job", "later", spec={"suspend": True}))
    made.jobs.append(named("Job", "done", status={"conditions": [{"type": "Complete", "status": "True"}]}))  # fmt: skip
    made.workloads["deployments"].append(named("Deployment", "empty", spec={"replicas": 1}))
    made.workloads["deployments"].append(named("Deployment", "none", spec={"replicas": 0}))
    made.claims.append({**claim(exactly("gpus", 1)), "metadata": named("c", "spare")["metadata"]})
    return made


def told(found: Explanation) -> list[tuple[str, str, int]]:
    return [
        (part.headline.reason.value, f"{part.kind}/{part.name}", part.count) for part in found.parts
    ]


IN_DEFAULT = [
    ("DevicesInUse", "Job/sweep", 3),
    ("DevicesInUse", "Pod/alone", 1),
    ("ClaimUnused", "ResourceClaim/spare", 1),
    ("CountTooHigh", "Pod/greedy", 1),
    ("NoPods", "Deployment/empty", 1),
    ("Suspended", "Job/later", 1),
]


def test_what_waits_in_a_namespace_is_told_by_reason() -> None:
    """The reasons of most objects first; pods of one workload once, with their number; what runs or is over not at all."""
    found = explain_namespace(town().world(), "default")
    assert (found.kind, found.name) == ("Namespace", "default")
    assert told(found) == IN_DEFAULT
    assert found.headline.reason.value == "DevicesInUse"
    assert found.headline.sentence == (
        "8 objects wait in namespace default:"
        " 4 DevicesInUse, 1 ClaimUnused, 1 CountTooHigh, 1 NoPods and 1 Suspended."
    )


def test_the_whole_cluster_has_all_namespaces() -> None:
    """Each part says where it is."""
    found = explain_all(town().world())
    assert found.kind == "Cluster"
    assert sorted(told(found)) == sorted([*IN_DEFAULT, ("NodeGone", "Pod/elsewhere", 1)])
    assert {part.namespace for part in found.parts} == {"default", "other"}


def test_an_only_reason_is_not_repeated() -> None:
    """The word before the sentence says it."""
    made = Town().node("n0", 1).holds("a", "n0", "d0")
    made.wants(claim(exactly("gpus", 1)), name="b")
    found = explain_all(made.world())
    assert found.headline.sentence == "1 object waits in the cluster."


def test_where_nothing_waits_that_is_said() -> None:
    """It is no reason to wait."""
    found = explain_all(Town().node("n0", 1).holds("a", "n0", "d0").world())
    assert (found.headline.reason.value, found.parts) == ("Runs", ())
    assert found.headline.sentence == "Nothing waits in the cluster; 1 pod runs."


def test_what_waits_with_pods_that_have_ended_is_told() -> None:
    """As a Job does that was suspended when some of its pods had ended, or that waits before it tries again."""
    made = Town().node("n0", 1)
    for name, spec in (("held", {"suspend": True}), ("again", {})):
        owner = {"kind": "Job", "name": name, "uid": f"Job-{name}", "controller": True}
        made.runs(f"{name}-0", "n0", metadata={"ownerReferences": [owner]})
        made.pods[-1]["status"] = {"phase": "Failed"}
        made.jobs.append(named("Job", name, spec=spec, status={"failed": 1}))
    found = explain_all(made.world())
    assert told(found) == [("NoPods", "Job/again", 1), ("Suspended", "Job/held", 1)]


def test_pods_on_nodes_whose_containers_do_not_run_are_told() -> None:
    """A pod that its node has not started does not count as one that runs."""
    made = Town().node("n0", 1).runs("well", "n0").runs("ill", "n0")
    waiting = {"reason": "ErrImageNeverPull", "message": "no such image"}
    status = {"name": "c", "state": {"waiting": waiting}}
    made.pods[-1]["status"] = {"phase": "Pending", "containerStatuses": [status]}
    found = explain_all(made.world())
    assert told(found) == [("NotStarted", "Pod/ill", 1)]
    assert found.headline.sentence == "1 object waits in the cluster."


def test_a_gang_is_told_once() -> None:
    """Its members wait for the same reason. It is called after its object, or after one of its pods if there is none."""
    of_a_group = [pod(f"p{n}", "one", schedulingGroup={"podGroupName": "g"}) for n in range(3)]
    lost = [pod(f"lost-{n}", "one", schedulingGroup={"podGroupName": "gone"}) for n in range(2)]
    stated = {"annotations": {"drayman.dev/gang": "5", "drayman.dev/gang-name": "few"}}
    few = [pod(f"few-{n}", "one", metadata=stated) for n in range(4)]
    spec = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    metadata = {"name": "g", "namespace": "default", "uid": "g"}
    group = convert(PodGroup, {"metadata": metadata, "spec": spec})
    pods = (*of_a_group, *lost, *few)
    found = explain_all(cluster({"a": 1}, pods=pods, pod_groups=(group,)))
    assert told(found) == [
        ("GangIncomplete", "Pod/few-0", 4),
        ("GangOversized", "PodGroup/g", 3),
        ("PodGroupMissing", "Pod/lost-0", 2),
    ]


def test_what_a_queue_of_kai_keeps_out_is_told_with_the_same_reason_as_alone() -> None:
    """Where its devices are in use as well, the queue is what comes first."""
    queues = tuple(
        convert(
            KaiQueue, {"metadata": {"name": name}, "spec": {"resources": {"gpu": {"limit": 1}}}}
        )
        for name in ("small", "free")
    )
    pods = tuple(
        pod(name, "two", metadata={"labels": {"kai.scheduler/queue": queue}})
        for name, queue in (("astray", "smal"), ("large", "small"))
    )
    world = cluster({"a": 0}, pods=pods, kai_queues=queues)
    assert told(explain_all(world)) == [
        ("OverLimit", "Pod/large", 1),
        ("QueueDoesNotExist", "Pod/astray", 1),
    ]
    alone = [explain_pod(world, each).headline for each in pods]
    assert [part.headline for part in explain_all(world).parts] == alone[::-1]
