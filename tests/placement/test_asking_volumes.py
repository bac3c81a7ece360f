"""Nodes for pods with volumes, one pod after the other."""

from __future__ import annotations

from typing import Any

from drayman.api.core import Pod
from drayman.inventory.features import Features
from drayman.placement.asking import Asker
from drayman.placement.placing import Found
from drayman.placement.state import ClusterState
from placement.fit.objects import make_node, make_pod
from placement.fit.storage import HOST, claim, storage_class, volume

DONE = {"pv.kubernetes.io/bind-completed": "yes"}


def town(*nodes: str) -> tuple[ClusterState, Asker]:
    state = ClusterState(Features(), lambda _: None)
    for name in nodes:
        state.set_node(make_node(name, labels={HOST: name}))
    state.volumes.set_class(storage_class())
    return state, Asker(state, 0.0)


def user(name: str = "data", **fields: Any) -> Pod:
    return make_pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}], **fields)


def place(asker: Asker, pod: Pod) -> str:
    """The node of a pod, which counts from now on; empty if it gets none."""
    demand = asker.demand(pod)
    found = asker.find(demand)
    if not isinstance(found, Found):
        return ""
    asker.assume(demand, found)
    return found.node.facts.name


def test_claims_of_one_name_in_two_namespaces_are_two() -> None:
    """Pods that differ in nothing but their namespace go each to where its own volume is."""
    state, asker = town("n1", "n2")
    for namespace, node in (("a", "n1"), ("b", "n2")):
        state.volumes.set_volume(volume(f"disk-{node}", host=node))
        state.volumes.set_claim(
            claim(namespace=namespace, annotations=DONE, volumeName=f"disk-{node}")
        )
    assert place(asker, user(namespace="b")) == "n2"
    assert place(asker, user(namespace="a")) == "n1"
    assert place(asker, user(namespace="b")) == "n2"


def test_a_volume_that_moves_takes_its_pods_along() -> None:
    """What was found out about nodes does not outlast the volume that it depended on."""
    state, asker = town("n1", "n2")
    state.volumes.set_volume(volume("disk", host="n1"))
    state.volumes.set_claim(claim(annotations=DONE, volumeName="disk"))
    assert place(asker, user()) == "n1"
    state.volumes.set_volume(volume("disk", host="n2", version="2"))
    assert place(asker, user()) == "n2"


def test_each_pod_gets_a_disk_of_its_own() -> None:
    """Pods are placed where disks are left, until there are none."""
    state, asker = town("n1", "n2", "n3")
    for node in ("n1", "n3"):
        state.volumes.set_volume(volume(f"disk-{node}", host=node))
    for number in range(3):
        state.volumes.set_claim(claim(f"data-{number}"))
    placed = [place(asker, user(f"data-{number}")) for number in range(3)]
    assert sorted(placed) == ["", "n1", "n3"]
