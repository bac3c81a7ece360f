"""Who has made a pod, as its owner and its labels tell."""

from __future__ import annotations

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.workloads.makers import known_as, maker_of, makers_of

HASH = {"pod-template-hash": "5d9c7"}


def pod(kind: str = "", name: str = "", *, controls: bool = True, **labels: str) -> Pod:
    """A pod with an owner, where a kind is given."""
    owners = [{"kind": kind, "name": name, "controller": controls}] if kind else []
    metadata = {"name": "p", "labels": labels, "ownerReferences": owners}
    return convert(Pod, {"metadata": metadata})


CASES = {
    "nobody": (pod(), []),
    "a job": (pod("Job", "train"), ["Job/train"]),
    "an owner that does not manage it": (pod("Job", "train", controls=False), []),
    "a replica set": (pod("ReplicaSet", "web-5d9c7"), ["ReplicaSet/web-5d9c7"]),
    "a replica set of a deployment": (
        pod("ReplicaSet", "web-5d9c7", **HASH),
        ["ReplicaSet/web-5d9c7", "Deployment/web"],
    ),
    "a replica set that has adopted it from a deployment": (
        pod("ReplicaSet", "other", **HASH),
        ["ReplicaSet/other"],
    ),
    "something else with such a label": (
        pod("StatefulSet", "web-5d9c7", **HASH),
        ["StatefulSet/web-5d9c7"],
    ),
}


@pytest.mark.parametrize("title", CASES)
def test_who_makes_a_pod(title: str) -> None:
    """The nearest first; people know a pod by the last, and one that nobody makes by itself."""
    made, makers = CASES[title]
    assert [str(maker) for maker in makers_of(made)] == makers
    assert str(maker_of(made)) == (makers[-1] if makers else "None")
    assert str(known_as(made)) == (makers[-1] if makers else "Pod/p")
