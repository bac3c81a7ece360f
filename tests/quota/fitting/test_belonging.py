"""Which pods are a workload's, and in which of its pod sets they are."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.api.kueue_workload import Workload
from drayman.quota.fitting.belonging import handles_of, handles_of_pod, pod_set_of, pods_of


def pod(uid: str = "p", **metadata: Any) -> Pod:
    about = {"name": uid, "namespace": "default", "uid": uid, **metadata}
    return convert(Pod, {"metadata": about, "spec": {"containers": [{"name": "c"}]}})


def owner(uid: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Job", "name": uid, "uid": uid}


WORKLOAD = convert(
    Workload,
    {
        "metadata": {
            "name": "w",
            "namespace": "default",
            "uid": "u",
            "ownerReferences": [owner("job"), owner("p")],
        },
        "spec": {},
    },
)

CASES = {
    "it is what the workload was made for": (pod("p"), True),
    "the same job has made it": (pod("x", ownerReferences=[owner("other"), owner("job")]), True),
    "it is in the group of that name": (
        pod("x", labels={"kueue.x-k8s.io/pod-group-name": "w"}),
        True,
    ),
    "it was told its workload": (pod("x", annotations={"kueue.x-k8s.io/workload": "w"}), True),
    "a group of another namespace has that name": (
        pod("x", namespace="elsewhere", labels={"kueue.x-k8s.io/pod-group-name": "w"}),
        False,
    ),
    "another job has made it": (pod("x", ownerReferences=[owner("other")]), False),
}


@pytest.mark.parametrize(("given", "belongs"), CASES.values(), ids=CASES)
def test_a_pod_is_a_workloads_if_they_have_a_handle_in_common(given: Pod, belongs: bool) -> None:
    """By what made it, by its group, or by what it was told; once, by however many handles."""
    found = pods_of(
        handles_of(WORKLOAD), lambda handle: [given] if handle in handles_of_pod(given) else []
    )
    assert list(found) == ([given.metadata.uid] if belongs else [])


@pytest.mark.parametrize(
    ("given", "names", "found"),
    [
        (pod(labels={"kueue.x-k8s.io/podset": "b"}), ["a", "b"], "b"),
        (pod(annotations={"kueue.x-k8s.io/role-hash": "b"}), ["a", "b"], "b"),
        (pod(), ["only"], "only"),
        (pod(labels={"kueue.x-k8s.io/podset": "old"}), ["only"], "only"),
        (pod(), ["a", "b"], ""),
    ],
    ids=[
        "by its label",
        "by its role",
        "the only one",
        "the only one, whatever it says",
        "unknown",
    ],
)
def test_the_pod_set_of_a_pod(given: Pod, names: list[str], found: str) -> None:
    """The only one that its workload has, or the one that the pod names."""
    assert pod_set_of(given, names) == found
