"""What domains hold, counted by devices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.allocator import Policy
from drayman.api.codec import convert
from drayman.api.resource import ResourceSlice
from drayman.placement.domains.choosing import Request, choose
from drayman.placement.domains.copies import CopiesWanted, CopyCounts, kinds_of
from drayman.placement.domains.following import Domains
from drayman.placement.domains.rooms import Amounts, Rooms, Wanted, rooms
from drayman.placement.placing import Placer
from drayman.placement.state import ClusterState
from drayman.topology import Path, configured
from oracle.build import piece
from placement.domains.cluster import (
    HOST,
    RACK,
    ZONE,
    add_node,
    demand_for,
    make_state,
    racked,
)

HIERARCHY = configured([ZONE, RACK])
LEVEL = 1
REPELLING = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": HOST}
        ]
    }
}


def rooms_for(state: ClusterState, *kinds: CopiesWanted) -> Rooms:
    tree = Domains(state).tree(HIERARCHY)
    return rooms(state, tree, CopyCounts(state), Wanted.of(kinds))


def test_a_room_says_how_many_and_on_how_few_nodes() -> None:
    """Three nodes of eight devices hold six pods of four; the largest node two of them, so five need all three."""
    state = racked(3, 1)
    found = rooms_for(state, CopiesWanted(demand_for(state, 4), 5))
    (room,) = found.of_level(LEVEL, 5)
    assert (room.domain, room.copies, room.largest, room.nodes_needed) == (("z0", "r00"), 6, 2, 3)
    assert found.is_exact
    (room,) = found.of_level(LEVEL, 7)
    assert room.nodes_needed is None


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "devices": ({}, {"devices": 3}, 2),
    "processors": ({"cpu": 4}, {"devices": 1, "cpu": "2"}, 2),
    "no devices": ({"cpu": 4}, {"devices": 0, "cpu": "2"}, 2),
    "one each, by its own wish": ({}, {"devices": 1, "affinity": REPELLING}, 1),
    "cordoned": ({"unschedulable": True}, {"devices": 1}, 0),
    "tainted": ({"taints": [{"key": "k", "effect": "NoSchedule"}]}, {"devices": 1}, 0),
    "other nodes wanted": ({}, {"devices": 1, "nodeSelector": {"k": "v"}}, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_node_holds(name: str) -> None:
    """The scarcest of everything that a pod needs counts."""
    fields, wanted, number = CASES[name]
    state = make_state()
    add_node(state, "n", {ZONE: "z", RACK: "r"}, **fields)
    counts = CopyCounts(state).of(CopiesWanted(demand_for(state, **wanted), 9))
    assert [count.at_most for count in counts.values()] == ([number] if number else [])


def filled(
    state: ClusterState, node: str, devices: int, cpu: str, name: str = "copy"
) -> Iterator[None]:
    """Place pods on a node one by one, as long as it takes them, and twenty at most."""
    for number in range(20):
        demand = demand_for(state, devices, name=f"{name}-{number}", cpu=cpu)
        found = Placer(state, Policy.BEST).found_on(demand, state.nodes[node])
        if found is None:
            return
        if found.plan is not None:
            state.assume_plan(found.plan)
        state.assume_pod(demand.needs, node)
        yield


@given(
    st.integers(0, 6), st.integers(1, 6), st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)
)
def test_a_count_is_what_fits(devices: int, cpu: int, each: int, cpu_each: int, taken: int) -> None:
    """As many pods that are alike can be placed one by one as are counted before, with others there already."""
    state = make_state()
    add_node(state, "n", {}, devices, cpu=cpu)
    for _, _ in zip(range(taken), filled(state, "n", 1, "1"), strict=False):
        pass
    with state.trial():
        demand = demand_for(state, each, cpu=str(cpu_each))
        counted = CopyCounts(state).of(CopiesWanted(demand, 20)).get("n")
        fitting = sum(1 for _ in filled(state, "n", each, str(cpu_each), "more"))
    assert min(20, 0 if counted is None else counted.at_most) == fitting


def test_kinds_that_compete_do_not_fit_twice() -> None:
    """A rack of four nodes holds four pods of eight devices, or eight of four, but not four and one."""
    state = racked(4, 1)
    large, small = demand_for(state, 8, name="large"), demand_for(state, 4, name="small")

    def fits(larges: int, smalls: int) -> bool:
        wanted = Wanted.of((CopiesWanted(large, larges), CopiesWanted(small, smalls)))
        tree = Domains(state).tree(HIERARCHY)
        found = rooms(state, tree, CopyCounts(state), wanted)
        return any(choose(found, Request(wanted.need, LEVEL)))

    assert fits(3, 2)
    assert not fits(4, 1)
    assert not fits(3, 3)


def test_kinds_that_do_not_compete_are_counted_apart() -> None:
    """A launcher without devices fits beside workers that take all of them."""
    state = racked(4, 1)
    kinds = (
        CopiesWanted(demand_for(state, 8, name="worker"), 4),
        CopiesWanted(demand_for(state, 0, name="launcher"), 1),
    )
    wanted = Wanted.of(kinds)
    assert any(choose(rooms_for(state, *kinds), Request(wanted.need, LEVEL)))


def test_claims_that_are_shared_are_not_copied() -> None:
    """Pods that share a claim for eight devices need eight devices, however many they are."""
    state = racked(1, 1)
    demand = demand_for(state, 8)
    alone = CopyCounts(state).of(CopiesWanted(demand, 9))
    shared = CopyCounts(state).of(CopiesWanted(demand, 9, frozenset({"p-claim"})))
    assert (alone["node-000"].at_most, shared["node-000"].at_most) == (1, 64)


def test_pods_of_a_gang_are_one_kind_though_their_labels_and_volumes_differ() -> None:
    """What tells them apart is left out of account, and the count says that it is only a bound."""
    state = racked(2, 1)
    demands = [
        demand_for(state, 1, name=f"p{index}", affinity=REPELLING, volumes=volume(index))
        for index in range(3)
    ]
    odd = demand_for(state, 2, name="odd")
    kinds, of_each = kinds_of([*demands, odd])
    assert of_each == (0, 0, 0, 1)
    assert [(kind.number, kind.is_mixed) for kind in kinds] == [(3, True), (1, False)]
    assert {(c.at_most, c.is_exact) for c in CopyCounts(state).of(kinds[0]).values()} == {
        (8, False)
    }


def volume(index: int) -> list[dict[str, Any]]:
    return [{"name": "v", "persistentVolumeClaim": {"claimName": f"data-{index}"}}]


def test_equal_nodes_are_counted_once() -> None:
    """Five hundred equal nodes cost one count, and a change to one of them costs one more."""
    state = racked(500, 32, 4)
    domains, counts = Domains(state), CopyCounts(state)
    demand = demand_for(state, 8)
    wanted = Wanted.of((CopiesWanted(demand, 512),))
    found = rooms(state, domains.tree(HIERARCHY), counts, wanted)
    assert found.of(())[0] == 500
    assert counts.searches == 1
    with state.trial():
        (_,) = zip(range(1), filled(state, "node-000", 1, "1"), strict=False)
        found = rooms(state, domains.tree(HIERARCHY), counts, wanted)
        assert found.of(())[0] == 499
        assert counts.searches == 2
    state.assume_pod(demand_for(state, 0, name="q").needs, "node-001")
    found = rooms(state, domains.tree(HIERARCHY), counts, wanted)
    assert found.of(())[0] == 500
    assert counts.searches == 2


class CountedRooms(Rooms):
    """Rooms that count how often they are looked at."""

    looks = 0

    def of(self, domain: Path) -> Amounts:
        self.looks += 1
        return super().of(domain)


@pytest.mark.parametrize("wanted", [1, 16, 100, 400, 501])
def test_a_choice_looks_at_each_domain_a_few_times(wanted: int) -> None:
    """Five hundred nodes in racks and zones: the first candidate, or none, costs a few looks for each of them."""
    state = racked(500, 32, 4)
    tree = Domains(state).tree(HIERARCHY)
    found = CountedRooms(tree, dict.fromkeys(state.nodes, (1,)), 1)
    candidate = next(iter(choose(found, Request((wanted,)))), None)
    assert (candidate is not None) == (wanted <= 500)
    if candidate is not None:
        assert len(candidate.nodes) == wanted
    assert found.looks <= 16 * 536


def test_what_domains_would_hold_with_nothing_in_use() -> None:
    """The same count on the cluster as if it were unused."""
    state = racked(2, 1)
    assert sum(1 for _ in filled(state, "node-000", 1, "1")) == 8
    wanted = CopiesWanted(demand_for(state, 1), 4)
    empty = state.emptied()
    assert CopyCounts(state).of(wanted).keys() == {"node-001"}
    found = CopyCounts(empty).of(wanted)
    assert {name: count.at_most for name, count in found.items()} == {
        "node-000": 8,
        "node-001": 8,
    }


def test_devices_that_nodes_share_are_counted_once() -> None:
    """Four nodes that reach the same three devices hold three pods between them, and each node up to three."""
    state = racked(4, 2, devices=0)
    fabric = piece([f"f{n}" for n in range(3)], pool="fabric", name="fabric", allNodes=True)
    state.set_slice(convert(ResourceSlice, fabric))
    found = rooms_for(state, CopiesWanted(demand_for(state, 1), 4))
    assert [found.of(path)[0] for path in ((), ("z0", "r00"), ("z0", "r00", "node-000"))] == [3] * 3
    assert not found.is_exact
    assert list(choose(found, Request((4,)))) == []
    assert next(iter(choose(found, Request((3,))))).nodes == ("node-000",)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=3),
    st.integers(0, 4),
    st.integers(1, 2),
)
def test_a_room_is_never_too_small(nodes: list[tuple[int, int]], shared: int, each: int) -> None:
    """Nodes with devices of their own and processors, and devices that all of them reach: every way to place pods is within the room."""
    state = make_state()
    for number, (devices, cpu) in enumerate(nodes):
        add_node(state, f"n{number}", {ZONE: "z", RACK: f"r{number}"}, devices, cpu=cpu)
    if shared:
        fabric = piece([f"f{n}" for n in range(shared)], pool="f", name="f", allNodes=True)
        state.set_slice(convert(ResourceSlice, fabric))
    found = rooms_for(state, CopiesWanted(demand_for(state, each), 20))
    ways = [
        placed
        for placed in product(*(range(cpu + 1) for _, cpu in nodes))
        if sum(max(0, each * n - own) for n, (own, _) in zip(placed, nodes, strict=True)) <= shared
    ]
    most = max(map(sum, ways))
    assert found.of(())[0] >= most
    if not shared:
        assert found.of(())[0] == most
    for number in range(len(nodes)):
        leaf = ("z", f"r{number}", f"n{number}")
        assert found.of(leaf)[0] == max(placed[number] for placed in ways)
    if not any(own for own, _ in nodes):
        assert found.of(())[0] == most or any(cpu < shared // each for _, cpu in nodes)
