"""What a queue of the KAI Scheduler has to do with work that waits."""

from __future__ import annotations

from typing import Any

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.custom_groups import KaiQueue
from drayman.api.resource import DeviceClass, ResourceSlice
from drayman.explain.shares import part_of_queue
from drayman.inventory.features import Features
from drayman.placement.state import ClusterState

DRIVER = "gpu.example.com"


def a_pod(name: str, **spec: Any) -> Pod:
    """A pod of queue `team` that asks for a twentieth of a GPU, or says what it asks for."""
    labels = {"kai.scheduler/queue": "team"}
    annotations = {"gpu-fraction": spec.pop("fraction", "0.05")}
    metadata = {"name": name, "namespace": "default", "uid": name}
    return convert(
        Pod,
        {
            "metadata": {**metadata, "labels": labels, "annotations": annotations},
            "spec": {"containers": [{"name": "c"}], **spec},
        },
    )


def test_parts_of_gpus_are_told_as_decimal_numbers() -> None:
    """A fraction would be taken for the part of the fair share that is used."""
    state = ClusterState(Features(), lambda _: None)
    allocatable = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    state.set_node(
        convert(Node, {"metadata": {"name": "n"}, "status": {"allocatable": allocatable}})
    )
    state.set_class(convert(DeviceClass, {"metadata": {"name": DRIVER}, "spec": {}}))
    device = {
        "name": "gpu-0",
        "allowMultipleAllocations": True,
        "capacity": {"memory": {"value": "80Gi"}},
    }
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": "n", "devices": [device]}
    state.set_slice(convert(ResourceSlice, {"metadata": {"name": "s"}, "spec": spec}))
    state.set_queue(
        convert(KaiQueue, {"metadata": {"name": "team"}, "spec": {"resources": {"gpu": {}}}})
    )
    state.set_pod(a_pod("runs", nodeName="n"))
    state.set_pod(a_pod("waits", fraction="0.5"))
    assert part_of_queue(state, "waits", 0.0) == (
        "Queue team uses 0.05 of its fair share of 0.55 GPUs: nobody has to make way."
    )
