"""Room that is kept for pods: who may take it nevertheless."""

from __future__ import annotations

from typing import Any

import pytest

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.pod_groups import PodGroup
from drayman.inventory.features import Features
from drayman.placement.nominations import Nominations
from drayman.placement.state import ClusterState

CASES: dict[str, tuple[int | None, int, bool]] = {
    "a pod that is more important than the pod, but not than its group": (100, 50, False),
    "a pod that is more important than the group": (100, 150, True),
    "a pod that is more important than a pod on its own": (None, 50, True),
    "a pod that is not": (None, 0, False),
}


@pytest.mark.parametrize(("of_group", "priority", "is_open"), CASES.values(), ids=CASES)
def test_room_that_somebody_asked_for_is_as_safe_as_its_pod_is_important(
    of_group: int | None, priority: int, is_open: bool
) -> None:
    """A group says how important its pods are, also where room is kept for one of them."""
    state = ClusterState(Features(), lambda _: None)
    allocatable = {"cpu": "1", "memory": "1Gi", "pods": "10"}
    state.set_node(
        convert(Node, {"metadata": {"name": "n"}, "status": {"allocatable": allocatable}})
    )
    group: dict[str, Any] = {}
    if of_group is not None:
        group = {"schedulingGroup": {"podGroupName": "g"}}
        spec = {
            "schedulingPolicy": {"gang": {"minCount": 1}},
            "priorityClassName": "high",
            "priority": of_group,
        }
        made = {"metadata": {"name": "g", "namespace": "default", "uid": "g"}, "spec": spec}
        state.gangs.set_group(convert(PodGroup, made))
    waiting, other = make_pod("waiting", 0, **group), make_pod("other", priority)
    state.set_pod(waiting)
    nominations = Nominations(state)
    nominations.keep(waiting, "n", ())
    with nominations.as_seen_by(other):
        assert ("waiting" not in state.nodes["n"].usage.pods) == is_open


def make_pod(name: str, priority: int, **spec: Any) -> Pod:
    metadata = {"name": name, "namespace": "default", "uid": name}
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    return convert(
        Pod,
        {"metadata": metadata, "spec": {"containers": containers, "priority": priority, **spec}},
    )
