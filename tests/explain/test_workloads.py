"""Deployments and other workloads: how many of their pods run, and what the others wait for."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.explain.answer import Explanation
from drayman.explain.workload import explain_workload
from explain.town import Town
from oracle.build import claim, device, exactly

HASH = "5d4f"
FIELDS = {
    "Deployment": "deployments",
    "ReplicaSet": "replica_sets",
    "StatefulSet": "stateful_sets",
    "DaemonSet": "daemon_sets",
}


def made_by(kind: str) -> dict[str, Any]:
    """Metadata of a pod of the workload `web`."""
    if kind == "Deployment":
        owner = {"kind": "ReplicaSet", "name": f"web-{HASH}", "uid": "rs"}
        labels = {"pod-template-hash": HASH}
    else:
        owner, labels = {"kind": kind, "name": "web", "uid": "uid-web"}, {}
    return {"ownerReferences": [{**owner, "controller": True}], "labels": labels}


def workload(town: Town, kind: str, **fields: Any) -> Explanation:
    metadata = {"name": "web", "namespace": "default", "uid": "uid-web", "resourceVersion": "9"}
    metadata |= fields.pop("metadata", {})
    town.workloads[FIELDS[kind]].append({"metadata": metadata, **fields})
    world = town.world()
    (found,) = getattr(world.objects, FIELDS[kind])
    return explain_workload(world, found)


@pytest.mark.parametrize("kind", FIELDS)
def test_pods_are_told_by_reason_with_what_helps(kind: str) -> None:
    """How many wait of how many, for what, and the remedies that the pod itself has."""
    made = made_by(kind)
    town = Town().node("n0", 2).holds("web-0", "n0", "d0", metadata=made)
    town.holds("other", "n0", "d1").runs("stranger", "n0")
    for number in (1, 2):
        town.wants(claim(exactly("gpus", 1)), name=f"web-{number}", metadata=made)
    found = workload(town, kind, spec={"replicas": 3})
    assert (found.kind, found.name, found.headline.reason.value) == (kind, "web", "DevicesInUse")
    assert found.headline.sentence.startswith("2 of 3 pods wait: ")
    assert [(part.headline.reason.value, part.count) for part in found.parts] == [
        ("DevicesInUse", 2),
        ("Runs", 1),
    ]
    assert [each.sentence for each in found.remedies] == ["Delete pod default/other."]
    assert found.remedies == found.parts[0].remedies
    assert found.evidence[kind.lower()] == "9"


STATES: list[tuple[str, str, dict[str, Any], str, str]] = [
    (
        "being deleted",
        "Deployment",
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        "Terminating",
        "The deployment is being deleted.",
    ),
    (
        "scaled to nothing",
        "Deployment",
        {"spec": {"replicas": 0}},
        "Runs",
        "The deployment has no pods: it wants none.",
    ),
    ("paused", "Deployment", {"spec": {"replicas": 1, "paused": True}}, "Suspended", "paused"),
    (
        "refused",
        "ReplicaSet",
        {
            "status": {
                "conditions": [
                    {
                        "type": "ReplicaFailure",
                        "status": "True",
                        "message": "exceeded quota: small.",
                    }
                ]
            }
        },
        "NoPods",
        "No pods can be created for the replica set: exceeded quota: small.",
    ),
    (
        "not made",
        "StatefulSet",
        {"spec": {"replicas": 2}},
        "NoPods",
        "No pods have been created for the stateful set.",
    ),
    ("for no node", "DaemonSet", {}, "Runs", "no node is eligible for its pods"),
]


@pytest.mark.parametrize(
    ("kind", "fields", "reason", "says"), [s[1:] for s in STATES], ids=[s[0] for s in STATES]
)
def test_without_pods(kind: str, fields: dict[str, Any], reason: str, says: str) -> None:
    """What is known of a workload that has none."""
    found = workload(Town().node("n0"), kind, **fields)
    assert found.headline.reason.value == reason
    assert says in found.headline.sentence


def test_pods_on_their_way_out_do_not_count() -> None:
    """They are told, but the workload does not wait for them."""
    made = made_by("Deployment")
    leaving = made | {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    town = Town().node("n0").runs("web-0", "n0", metadata=made)
    found = workload(town.runs("web-1", "gone", metadata=leaving), "Deployment")
    assert found.headline.reason.value == "Runs"
    assert found.headline.sentence == (
        "The deployment's only pod has its node. 1 more pod is being deleted."
    )
    assert [part.headline.reason.value for part in found.parts] == ["Runs", "Terminating"]


def test_pods_that_have_lost_something_do_not_just_wait() -> None:
    """They have a node already."""
    made = made_by("StatefulSet")
    town = Town().node("n0").runs("web-0", "n0", metadata=made).runs("web-1", "gone", metadata=made)
    found = workload(town, "StatefulSet", spec={"replicas": 2})
    assert found.headline.sentence.startswith("1 of 2 pods is in trouble: The pod is on node gone")


def test_pods_whose_devices_are_tainted_do_not_just_wait() -> None:
    """They have a node, and run there until they are evicted."""
    broken = device("d0", taints=[{"key": "broken", "effect": "NoExecute"}])
    town = Town().node("n0", [broken]).holds("web-0", "n0", "d0", metadata=made_by("ReplicaSet"))
    found = workload(town, "ReplicaSet", spec={"replicas": 1})
    assert found.headline.reason.value == "DevicesTainted"
    assert found.headline.sentence.startswith("1 of 1 pod is in trouble: The pod is on node n0")


def test_pods_that_are_still_to_be_made_are_counted() -> None:
    """A stateful set makes one pod after the other."""
    town = Town().node("n0").runs("web-0", "n0", metadata=made_by("StatefulSet"))
    found = workload(town, "StatefulSet", spec={"replicas": 3})
    assert found.headline.reason.value == "Runs"
    assert found.headline.sentence == (
        "The stateful set's only pod has its node. 2 more pods are still to be created."
    )
