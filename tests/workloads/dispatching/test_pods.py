"""Pods that run in another cluster: their copies, and what their originals show."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.workloads.dispatching.pods import (
    cluster_of,
    is_wanted,
    pod_copy,
    shown_status,
    shows_copy,
    waiting_status,
)

GATE = "kueue.x-k8s.io/admission"
ORIGINAL: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "p",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "7",
        "generateName": "p-",
        "labels": {"kueue.x-k8s.io/managed": "true", "app": "a"},
        "finalizers": ["kueue.x-k8s.io/managed"],
        "ownerReferences": [{"kind": "ReplicaSet", "name": "r", "uid": "r"}],
    },
    "spec": {
        "containers": [{"name": "c", "image": "i"}],
        "schedulingGates": [{"name": GATE}, {"name": "example.com/own"}],
    },
    "status": {"phase": "Pending"},
}
THERE: dict[str, Any] = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True"}],
    "startTime": "2026-01-01T00:00:00Z",
    "containerStatuses": [{"name": "c", "ready": True}],
    "hostIP": "10.0.0.1",
    "podIP": "10.1.0.1",
    "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu-x"}],
}


def test_a_copy_is_what_was_described() -> None:
    """Without what the manager's server and queue have added; a gate of its own stays."""
    made = pod_copy(ORIGINAL, "w", "o")
    assert made["metadata"] == {
        "name": "p",
        "namespace": "ns",
        "labels": {
            "app": "a",
            "kueue.x-k8s.io/prebuilt-workload-name": "w",
            "kueue.x-k8s.io/multikueue-origin": "o",
        },
        "annotations": {"drayman.dev/copy-of": "u"},
    }
    assert made["spec"]["schedulingGates"] == [{"name": "example.com/own"}]
    assert "status" not in made
    assert len(ORIGINAL["spec"]["schedulingGates"]) == 2


def test_an_original_shows_its_copy_and_then_waits_again() -> None:
    """Not what only means something there: addresses and claims. What was shown is gone afterwards, also where it waits."""
    shown = shown_status(THERE, "east", 0.0)
    assert cluster_of(shown) == "east"
    assert not {"hostIP", "podIP", "resourceClaimStatuses"} & shown.keys()
    assert shown["containerStatuses"] == THERE["containerStatuses"]
    waiting = waiting_status(0.0)
    assert shown.keys() == waiting.keys()
    assert cluster_of(waiting) == ""
    assert waiting["phase"] == "Pending"
    for status, wanted in ((shown, True), (waiting, False)):
        given = {name: value for name, value in status.items() if value is not None}
        assert shows_copy(convert(Pod, {**ORIGINAL, "status": given})) is wanted


@pytest.mark.parametrize(
    ("phase", "leaves", "wanted"),
    [
        ("Pending", False, True),
        ("Running", False, True),
        ("Succeeded", False, True),
        ("Failed", False, False),
        ("Running", True, False),
    ],
)
def test_there_is_a_copy_of(phase: str, leaves: bool, wanted: bool) -> None:
    metadata = {"name": "p", **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if leaves else {})}
    pod = convert(Pod, {"metadata": metadata, "status": {"phase": phase}})
    assert is_wanted(pod) is wanted
