"""Nodes for pods with volumes, one pod after the other."""

from __future__ import annotations

from typing import Any

from drayman.api.core import Pod
from drayman.inventory.features import Features
from drayman.placement.decision.deciding import Decider, Round
from drayman.placement.placing import Found
from drayman.placement.state import ClusterState
from placement.fit.objects import make_node, make_pod
from placement.fit.storage import HOST, claim, storage_class, volume

DONE = {"pv.kubernetes.io/bind-completed": "yes"}


def town(*nodes: str) -> tuple[ClusterState, Round]:
    state = ClusterState(Features(), lambda _: None)
    for name in nodes:
        state.set_node(make_node(name, labels={HOST: name}))
    state.volumes.set_class(storage_class())
    return state, Decider(state).round(0.0)


def user(name: str = "data", **fields: Any) -> Pod:
    return make_pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": name}}], **fields)


def place(round_: Round, pod: Pod) -> str:
    """The node of a pod, which counts from now on; empty if it gets none."""
    demand = round_.demand(pod)
    found = round_.find(demand)
    if not isinstance(found, Found):
        return ""
    round_.place(demand, found)
    return found.node.facts.name


def test_claims_of_one_name_in_two_namespaces_are_two() -> None:
    """Pods that differ in nothing but their namespace go each to where its own volume is."""
    state, round_ = town("n1", "n2")
    for namespace, node in (("a", "n1"), ("b", "n2")):
        state.volumes.set_volume(volume(f"disk-{node}", host=node))
        state.volumes.set_claim(
            claim(namespace=namespace, annotations=DONE, volumeName=f"disk-{node}")
        )
    assert place(round_, user(namespace="b")) == "n2"
    assert place(round_, user(namespace="a")) == "n1"
    assert place(round_, user(namespace="b")) == "n2"


def test_a_volume_that_moves_takes_its_pods_along() -> None:
    """What was found out about nodes does not outlast the volume that it depended on."""
    state, round_ = town("n1", "n2")
    state.volumes.set_volume(volume("disk", host="n1"))
    state.volumes.set_claim(claim(annotations=DONE, volumeName="disk"))
    assert place(round_, user()) == "n1"
    state.volumes.set_volume(volume("disk", host="n2", version="2"))
    assert place(round_, user()) == "n2"


def test_each_pod_gets_a_disk_of_its_own() -> None:
    """Pods are placed where disks are left, until there are none."""
    state, round_ = town("n1", "n2", "n3")
    for node in ("n1", "n3"):
        state.volumes.set_volume(volume(f"disk-{node}", host=node))
    for number in range(3):
        state.volumes.set_claim(claim(f"data-{number}"))
    placed = [place(round_, user(f"data-{number}")) for number in range(3)]
    assert sorted(placed) == ["", "n1", "n3"]
