"""Taints that only discourage pods: they rank nodes, and cost a pod nothing on all the other nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from drayman.allocator import Policy
from drayman.placement.decision.deciding import Decider
from drayman.placement.demand import Demands
from drayman.placement.placing import Found, Placer
from drayman.placement.state import ClusterState
from oracle.build import exactly, first_available, taint
from placement.domains.cluster import add_node, make_claim, make_pod, make_state
from steps import steps_of

SOFT = "PreferNoSchedule"


def cluster(taints: list[list[str]], devices: int = 2) -> ClusterState:
    """Nodes `n00`, `n01`, ... with these keys of taints that discourage."""
    state = make_state()
    for number, keys in enumerate(taints):
        soft = [taint(key, effect=SOFT) for key in keys]
        add_node(state, f"n{number:02}", {}, devices, cpu=4, taints=soft)
    return state


def place(state: ClusterState, name: str, **spec: object) -> str | None:
    """The node of one more pod of a cpu, which then uses it; compared with the order of all nodes."""
    pod = make_pod(name, **spec)
    round_ = Decider(state).round(0.0)
    demand = round_.demand(pod)
    placer = round_.placer(demand)
    ranked = [each.node.facts.name for each in placer.standings(demand)]
    found = placer.find(demand)
    if not isinstance(found, Found):
        assert not ranked
        return None
    node = found.node.facts.name
    assert node == ranked[0]
    state.set_pod(replace(pod, spec=replace(pod.spec, node_name=node)))
    return node


@given(
    st.lists(st.lists(st.sampled_from("abc"), max_size=3, unique=True), min_size=1, max_size=5),
    st.lists(st.sets(st.sampled_from("ab"), max_size=2), max_size=12),
)
def test_the_first_of_all_nodes_in_their_order_is_found(
    taints: list[list[str]], pods: list[set[str]]
) -> None:
    """Whatever pods tolerate, and however full nodes are: fewer taints come before everything that is not a stated preference."""
    state = cluster(taints)
    for number, tolerated in enumerate(pods):
        tolerations = [{"key": key, "operator": "Exists"} for key in sorted(tolerated)]
        place(state, f"p{number}", tolerations=tolerations)


def test_discouraged_nodes_are_filled_last() -> None:
    """One without the taint as long as it has room, then the one with fewer taints."""
    state = cluster([["a", "b"], ["a"], []])
    assert [place(state, f"p{n}") for n in range(12)] == ["n02"] * 4 + ["n01"] * 4 + ["n00"] * 4


def test_a_node_that_gets_or_loses_its_taint() -> None:
    """The next pod avoids the one that has it now."""
    state = cluster([[], []])
    first = place(state, "p0")
    assert first is not None
    other = {"n00": "n01", "n01": "n00"}[first]
    add_node(state, other, {}, 2, cpu=4, taints=[taint("a", effect=SOFT)])
    assert place(state, "p1") == first
    add_node(state, other, {}, 2, cpu=4)
    assert place(state, "p2") == other


def test_alternatives_of_devices_are_weighed_against_taints() -> None:
    """The first alternative is on a discouraged node only, and the taint weighs more, as in kube-scheduler."""
    state = cluster([], 0)
    add_node(state, "soft", {}, 2, taints=[taint("a", effect=SOFT)])
    add_node(state, "plain", {}, 1)
    request = first_available("r", exactly("two", 2), exactly("one", 1))
    demand = Demands(state, 600.0).of(make_pod("p"), (make_claim("c", request),), 0.0)
    placer = Placer(state, Policy.BEST)
    found = placer.find(demand)
    assert isinstance(found, Found)
    assert found.node.facts.name == "plain"
    assert [each.node.facts.name for each in placer.standings(demand)] == ["plain", "soft"]


@pytest.mark.parametrize("policy", list(Policy))
def test_one_discouraging_node_costs_other_pods_nothing(policy: Policy) -> None:
    """The steps of placing ten pods are the same with many nodes as with few, after the first pod of the shape."""

    def ten(nodes: int) -> int:
        state = cluster([["a"], *([] for _ in range(nodes))], devices=0)
        round_ = Decider(state, policy=policy).round(0.0)
        pods = [make_pod(f"p{number}") for number in range(11)]
        demands = [round_.demand(each) for each in pods]
        placer = round_.placer(demands[0])
        assert isinstance(placer.find(demands[0]), Found)

        def find() -> None:
            for pod, demand in zip(pods[1:], demands[1:], strict=True):
                found = placer.find(demand)
                assert isinstance(found, Found)
                bound = replace(pod, spec=replace(pod.spec, node_name=found.node.facts.name))
                state.set_pod(bound)

        return steps_of(find)

    few, many = ten(10), ten(160)
    assert many < 1.5 * few, (few, many)
