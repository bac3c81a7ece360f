"""Decisions about gangs: who starts, and where."""

from __future__ import annotations

from typing import Any

from drayman.allocator import Policy
from drayman.api.codec import convert
from drayman.api.core import Node, Pod
from drayman.api.pod_groups import PodGroup
from drayman.placement.decision.deciding import Decider
from drayman.placement.domains.copies import CopyCounts
from drayman.placement.domains.following import Domains
from drayman.placement.gangs.gang import Gang
from drayman.placement.joint.gangs import GangDecider, Incomplete, NoRoom, Starting
from drayman.placement.state import ClusterState
from drayman.placement.world import state_of
from simulate.cluster import NOW, cluster, node, pod

RACK = "topology.kubernetes.io/rack"
ZONE = "topology.kubernetes.io/zone"


def group(least: int, level: str = "", **spec: Any) -> PodGroup:
    spec["schedulingPolicy"] = {"gang": {"minCount": least}}
    if level:
        spec["schedulingConstraints"] = {"topology": [{"key": level}]}
    metadata = {"name": "g", "namespace": "default", "uid": "g"}
    return convert(PodGroup, {"metadata": metadata, "spec": spec})


def members(number: int, template: str = "one", **fields: Any) -> list[Pod]:
    return [
        pod(f"p{n}", template, schedulingGroup={"podGroupName": "g"}, **fields)
        for n in range(number)
    ]


def town(
    devices: dict[str, int], racks: dict[str, str], pods: list[Pod], gang: PodGroup
) -> ClusterState:
    nodes: tuple[Node, ...] = tuple(
        node(name, labels={RACK: racks[name]} if racks.get(name) else {}) for name in devices
    )
    return state_of(cluster(devices, nodes=nodes, pods=tuple(pods), pod_groups=(gang,)).objects)


def decide(state: ClusterState, pods: list[Pod]) -> Incomplete | NoRoom | Starting:
    round_ = Decider(state).round(NOW)
    decider = GangDecider(round_, Domains(state), CopyCounts(state), Policy.BEST)
    for each in pods:
        state.gangs.see(each)
    gang = state.gangs.gang_of(pods[0])
    assert isinstance(gang, Gang)
    return decider.decide(gang, pods)


def where(outcome: object) -> dict[str, str]:
    assert isinstance(outcome, Starting), outcome
    return {s.demand.pod.metadata.name: s.found.node.facts.name for s in outcome.seats}


def test_the_domain_that_holds_all_is_taken_though_another_is_fuller() -> None:
    racks = {f"a{n}": "a" for n in range(3)} | {f"b{n}": "b" for n in range(4)}
    pods = members(4)
    state = town(dict.fromkeys(racks, 1), racks, pods, group(4, RACK))
    assert {racks[n] for n in where(decide(state, pods)).values()} == {"b"}


def test_no_domain_is_large_enough() -> None:
    racks = {"a0": "a", "a1": "a", "b0": "b", "b1": "b", "x": ""}
    pods = members(3)
    state = town(dict.fromkeys(racks, 1), racks, pods, group(3, RACK))
    assert isinstance(decide(state, pods), NoRoom)


def test_the_quorum_starts_if_not_all_fit() -> None:
    racks = {"a0": "a", "a1": "a", "b0": "b"}
    pods = members(3)
    state = town(dict.fromkeys(racks, 1), racks, pods, group(2, RACK))
    assert sorted(where(decide(state, pods)).values()) == ["a0", "a1"]


def test_a_running_member_pins_the_domain() -> None:
    racks = {"a0": "a", "a1": "a", "b0": "b", "b1": "b", "b2": "b"}
    running = pod("p9", schedulingGroup={"podGroupName": "g"}, nodeName="a0")
    pods = members(1)
    state = town({"a0": 0, "a1": 1, "b0": 1, "b1": 1, "b2": 1}, racks, pods, group(2, RACK))
    state.set_placed_pod(running)
    assert where(decide(state, pods)) == {"p0": "a1"}


def test_fewer_members_than_needed_wait() -> None:
    pods = members(2)
    state = town({"a": 8}, {"a": "a"}, pods, group(3))
    outcome = decide(state, pods)
    assert isinstance(outcome, Incomplete)
    assert (outcome.lack.has, outcome.lack.needs) == (2, 3)


def test_without_a_wish_members_stay_close() -> None:
    racks = {"a0": "a", "b0": "b", "a1": "a", "b1": "b"}
    pods = members(4, "two")
    state = town({"a0": 4, "b0": 2, "a1": 4, "b1": 2}, racks, pods, group(4))
    assert {racks[n] for n in where(decide(state, pods)).values()} == {"a"}
