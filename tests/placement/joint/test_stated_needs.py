"""What a gang is said to need as a whole, and what the cluster has."""

from __future__ import annotations

import pytest

from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.custom_groups import PluginPodGroup
from drayman.placement.gangs.gang import Gang
from drayman.placement.joint.stated_needs import scarce
from drayman.placement.world import state_of
from simulate.cluster import cluster, node, pod

KEYED = {"labels": {"scheduling.x-k8s.io/pod-group": "g"}}


def member(name: str, cpu: str, where: str = "") -> Pod:
    return pod(name, cpu=cpu, nodeName=where, metadata=KEYED)


def boards() -> Node:
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "2", "example.com/board": "3"}}
    return convert(Node, {"metadata": {"name": "c"}, "status": status})


CASES = {
    "all of it is free": ({"cpu": "12", "memory": "1Gi"}, ""),
    "others use some": ({"cpu": "12500m"}, "cpu 12500m 12 16"),
    "members use some": ({"cpu": "12"}, ""),
    "more than there is": ({"memory": "1Ti"}, "memory 1Ti 136Gi 136Gi"),
    "extended resources": ({"example.com/board": "4"}, "example.com/board 4 3 3"),
    "nobody has it": ({"example.com/pump": "1"}, "example.com/pump 1 0 0"),
    "pods": ({"pods": "300"}, "pods 300 221 222"),
    "devices serve it": ({"deviceclass.resource.kubernetes.io/gpu": "99"}, ""),
    "nothing": ({}, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_what_there_is_not_enough_of(case: str) -> None:
    """Two nodes with 6 cpus, of which another pod has 4 and a member 2, and one with 4 and boards."""
    given, wanted = CASES[case]
    metadata = {"name": "g", "namespace": "default", "uid": "g"}
    group = convert(PluginPodGroup, {"metadata": metadata, "spec": {"minResources": given}})
    nodes = (node("a", cpu="6"), node("b", cpu="6"), boards())
    world = cluster({}, nodes=nodes, plugin_pod_groups=(group,))
    state = state_of(world.objects)
    state.set_placed_pod(pod("other", cpu="4", nodeName="a"))
    mine = member("mine", "2", "b")
    state.set_placed_pod(mine)
    gang = state.gangs.gang_of(mine)
    assert isinstance(gang, Gang)
    found = scarce(state, gang)
    shown = f"{found.resource} {found.wants} {found.free} {found.there_is}" if found else ""
    assert shown == wanted
