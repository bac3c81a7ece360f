"""The behavioural cases of topology-aware placement, by their numbers."""

from __future__ import annotations

import pytest

from drayman.api.core import Taint, Toleration
from drayman.api.kueue_workload import SliceConstraint, TopologyRequest
from drayman.quota.demands import NotPlaced
from drayman.quota.topology.replacing import replaced
from drayman.quota.topology.usage import DomainUsage
from quota.topology.trees import BLOCK, HOST, LEVELS, RACK, demand, node, placed, refused, topology

ANYWHERE = TopologyRequest(unconstrained=True)


def slices(level: str, size: int, **more: str) -> TopologyRequest:
    return TopologyRequest(
        pod_set_slice_required_topology=level,
        pod_set_slice_size=size,
        **more,  # type: ignore[arg-type]
    )


def test_g19_best_fit_takes_large_hosts_and_a_tight_last_one_and_least_free_small_ones() -> None:
    """G19: hosts of 3, 3, 2 and 1, seven pods: 3, 3, and 1 on the smallest; or 1, 2, 3, and 1 on the last."""
    hosts = topology({"b": {"r": [3, 3, 2, 1]}})
    assert placed(hosts, demand(7, TopologyRequest(required=RACK))) == {
        "r-0": 3,
        "r-1": 3,
        "r-3": 1,
    }
    assert placed(hosts, demand(7, ANYWHERE)) == {"r-0": 3, "r-1": 1, "r-2": 2, "r-3": 1}


def test_g20_slices_count_in_whole() -> None:
    """G20: hosts of 6, 5, 4, 3 and 2 with slices of two pods on a host."""
    hosts = topology({"b": {"r": [6, 5, 4, 3, 2]}})
    best = placed(hosts, demand(12, slices(HOST, 2, required=RACK)))
    assert best == {"r-0": 6, "r-2": 4, "r-4": 2}
    least = placed(hosts, demand(10, slices(HOST, 2)))
    assert least == {"r-1": 2, "r-2": 4, "r-3": 2, "r-4": 2}


def test_g21_one_rack_of_small_hosts_beats_two_racks_of_large_ones() -> None:
    """G21: four pods in a block: the rack with four hosts of one pod, not two racks with a host of two."""
    hosts = topology({"b": {"large-a": [2], "large-b": [2], "small": [1, 1, 1, 1]}})
    found = placed(hosts, demand(4, TopologyRequest(required=BLOCK)))
    assert found == {f"small-{n}": 1 for n in range(4)}


def test_g22_what_is_left_over_of_a_host_holds_no_slice() -> None:
    """G22: three hosts of 3, slices of two: 2, 2, 2."""
    hosts = topology({"b": {"r": [3, 3, 3]}})
    found = placed(hosts, demand(6, slices(HOST, 2, required=RACK)))
    assert found == {"r-0": 2, "r-1": 2, "r-2": 2}


@pytest.mark.parametrize(
    ("racks", "count", "expected"),
    [
        ({"a": [15], "b": [15]}, 25, {"a-0": 13, "b-0": 12}),
        ({"a": [15, 15]}, 25, {"a-0": 13, "a-1": 12}),
        ({"a": [15, 13, 10]}, 23, {"a-0": 12, "a-1": 11}),
        ({"a": [20, 10], "b": [15, 15]}, 22, {"b-0": 11, "b-1": 11}),
    ],
)
def test_g23_balanced_placement_gives_the_least_as_much_as_possible(
    racks: dict[str, list[int]], count: int, expected: dict[str, int]
) -> None:
    """G23: preferred racks with the gate for balanced placement."""
    hosts = topology({"b": racks}, is_balanced=True)
    assert placed(hosts, demand(count, TopologyRequest(preferred=RACK))) == expected


def test_g23_without_the_gate_it_is_best_fit() -> None:
    """G23: only the gate makes the difference."""
    hosts = topology({"b": {"a": [15, 15]}})
    found = placed(hosts, demand(25, TopologyRequest(preferred=RACK)))
    assert found == {"a-0": 15, "a-1": 10}


def test_g24_a_required_level_that_is_too_small_is_refused_with_figures() -> None:
    """G24: how many would fit, where, and what limits that; a preferred level gives way to the next coarser one."""
    hosts = topology({"b0": {"r0": [2, 2], "r1": [3]}, "b1": {"r2": [1]}})
    message = refused(hosts, demand(5, TopologyRequest(required=RACK)))
    assert "only 4 out of 5 pods in one domain of level 'example.com/rack'" in message
    assert "rack b0/r0" in message
    assert "4 limited by cpu" in message
    message = refused(hosts, demand(6, slices(HOST, 2, required=RACK)))
    assert "only 2 out of 3 slices of 2 pods" in message
    found = placed(hosts, demand(5, TopologyRequest(preferred=RACK)))
    assert sum(found.values()) == 5
    assert "r2-0" not in found
    # No block holds as many, so they are spread over blocks.
    assert sum(placed(hosts, demand(8, TopologyRequest(preferred=RACK))).values()) == 8
    assert "only 8 out of 9 pods;" in refused(hosts, demand(9, TopologyRequest(preferred=RACK)))


GPU = Taint(key="gpu", effect="NoSchedule")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ready": "False"}, "1 not ready"),
        ({"ready": "Unknown"}, "1 not ready"),
        ({"unschedulable": True}, "1 cordoned"),
        ({"taints": (GPU,)}, "1 tainted"),
    ],
)
def test_g25_nodes_that_take_no_pods_do_not_count(settings: dict[str, object], words: str) -> None:
    """G25: not ready, unschedulable, or with a taint that is not tolerated."""
    hosts = topology({"b": {"r": [2]}})
    hosts.set_node(node("more", 8, {BLOCK: "b", RACK: "r"}, **settings), {})  # type: ignore[arg-type]
    message = refused(hosts, demand(3))
    assert "only 2 out of 3 pods" in message
    assert words in message


def test_g25_what_other_pods_use_does_not_count() -> None:
    """G25: a node that is filled by pods that no workload brought has no room, be it processors or slots for pods."""
    hosts = topology({"b": {"r": [2]}})
    place = {BLOCK: "b", RACK: "r"}
    hosts.set_node(node("more", 8, place), {"cpu": 7000, "pods": 3})
    assert "only 3 out of 4 pods" in refused(hosts, demand(4))
    hosts.set_node(node("more", 8, place, pods=4), {"cpu": 0, "pods": 3})
    assert "only 3 out of 4 pods" in refused(hosts, demand(4))


def test_g25_a_tolerated_taint_and_a_selector_decide() -> None:
    """G25: a node counts for pods that tolerate its taint, and only if they select it."""
    hosts = topology({"b": {"r": [2]}})
    labels = {BLOCK: "b", RACK: "r", "model": "h100"}
    hosts.set_node(node("more", 8, labels, taints=(GPU,)), {})
    tolerant = (Toleration(key="gpu", operator="Exists"),)
    assert placed(hosts, demand(8, tolerations=tolerant)) == {"more": 8}
    message = refused(hosts, demand(9, tolerations=tolerant, node_selector={"model": "h100"}))
    assert "only 8 out of 9 pods" in message
    assert "1 not selected by the pods" in message


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (slices(BLOCK, 2, required=RACK), "wider than the level"),
        (TopologyRequest(pod_set_slice_required_topology=HOST), "no size"),
        (TopologyRequest(pod_set_slice_size=2), "no level"),
        (TopologyRequest(required="example.com/row"), "no level is called 'example.com/row'"),
        (slices("example.com/row", 2), "no level is called 'example.com/row'"),
        (slices(HOST, 3), "cannot be divided into slices of 3"),
        (slices(HOST, 0), "at least 1"),
        (
            TopologyRequest(
                podset_slice_required_topology_constraints=(
                    SliceConstraint(topology=HOST, size=4),
                    SliceConstraint(topology=RACK, size=2),
                )
            ),
            "not below",
        ),
        (
            TopologyRequest(
                podset_slice_required_topology_constraints=(
                    SliceConstraint(topology=RACK, size=4),
                    SliceConstraint(topology=HOST, size=3),
                )
            ),
            "slices of 4 pods cannot be divided into slices of 3",
        ),
    ],
)
def test_g26_requests_that_make_no_sense_are_refused(request_: TopologyRequest, words: str) -> None:
    """G26: slices above the main level, without a size, of an unknown level, or of sizes that do not divide."""
    assert words in refused(topology({"b": {"r": [8, 8]}}), demand(4, request_))


def test_g27_nested_slices() -> None:
    """G27: 64 pods in block slices of 32 and rack slices of 16, on two racks of four hosts of 8: 8 on each host."""
    hosts = topology({"b": {"r0": [8] * 4, "r1": [8] * 4}})
    layers = (SliceConstraint(topology=BLOCK, size=32), SliceConstraint(topology=RACK, size=16))
    request = TopologyRequest(podset_slice_required_topology_constraints=layers)
    found = placed(hosts, demand(64, request))
    assert found == {f"r{rack}-{host}": 8 for rack in (0, 1) for host in range(4)}


def test_g28_leader_and_workers_are_in_one_domain() -> None:
    """G28: a rack that holds the workers, but not the leader beside them, is skipped."""
    hosts = topology({"b": {"tight": [2, 2], "wide": [3, 2]}})
    request = TopologyRequest(required=RACK, pod_set_group_name="g")
    leader = demand(1, request, name="leader")
    result = hosts.place([leader, demand(4, request, name="workers")], {})
    assert not isinstance(result, NotPlaced)
    assert {d[-1] for d, _ in result["leader"].domains} <= {"wide-0", "wide-1"}
    assert dict(result["workers"].domains) != {}
    together = [*result["leader"].domains, *result["workers"].domains]
    assert sum(count for _, count in together) == 5
    assert all(domain[-1].startswith("wide") for domain, _ in together)
    message = refused(hosts, leader, demand(5, request, name="workers"))
    assert "only 4 out of 5 pods beside the leader" in message


def test_g29_a_placement_is_made_again_when_others_took_the_nodes() -> None:
    """G29: with the usage of the one that came first, the other gets another rack of the same flavor."""
    hosts = topology({"b": {"r0": [2], "r1": [2]}})
    used = DomainUsage()
    asked = demand(2, TopologyRequest(required=RACK))
    first = hosts.place([asked], used)
    again = hosts.place([asked], used)
    assert first == again
    assert not isinstance(first, NotPlaced)
    used.add(first["main"], asked.per_pod)
    second = hosts.place([asked], used)
    assert not isinstance(second, NotPlaced)
    assert second["main"].domains == ((("r1-0",), 2),)


def test_g30_a_lost_node_is_replaced_in_its_required_domain() -> None:
    """G30: in the same rack, or not at all."""
    hosts = topology({"b": {"r0": [2, 2, 1], "r1": [8]}})
    asked = demand(4, TopologyRequest(required=RACK))
    used = DomainUsage()
    first = hosts.place([demand(4, TopologyRequest(required=RACK))], used)
    assert not isinstance(first, NotPlaced)
    assert dict(first["main"].domains) == {("r0-0",): 2, ("r0-1",): 2}
    used.add(first["main"], asked.per_pod)
    hosts.remove_node("r0-1")
    refusal = replaced(hosts, asked, first["main"], [("r0-1",)], used)
    assert isinstance(refusal, NotPlaced)
    assert "2 pods lost their node, and there is no room for them in rack b/r0" in refusal.message
    hosts.set_node(node("spare", 1, {BLOCK: "b", RACK: "r0"}), {})
    found = replaced(hosts, asked, first["main"], [("r0-1",)], used)
    assert not isinstance(found, NotPlaced)
    assert dict(found.domains) == {("r0-0",): 2, ("r0-2",): 1, ("spare",): 1}


def test_g30_what_is_missing_of_a_slice_goes_to_the_rest_of_it() -> None:
    """G30: a slice that lost a part stays in its rack, though another rack is nearer to being full."""
    hosts = topology({"b": {"r0": [2, 2, 2], "r1": [2, 2]}})
    request = slices(RACK, 4, required=BLOCK)
    asked = demand(8, request)
    used = DomainUsage()
    first = hosts.place([asked], used)
    assert not isinstance(first, NotPlaced)
    used.add(first["main"], asked.per_pod)
    hosts.remove_node("r0-0")
    found = replaced(hosts, asked, first["main"], [("r0-0",)], used)
    assert not isinstance(found, NotPlaced)
    assert sum(n for d, n in found.domains if d[-1].startswith("r0")) == 4
    # Without any of its pods the slice is not bound to its rack, but the other rack is full.
    hosts.remove_node("r0-1")
    assert isinstance(replaced(hosts, asked, first["main"], (), used), NotPlaced)
    hosts.set_node(node("r1-2", 4, {BLOCK: "b", RACK: "r1"}), {})
    moved = replaced(hosts, asked, first["main"], (), used)
    assert not isinstance(moved, NotPlaced)
    assert dict(moved.domains) == {("r1-0",): 2, ("r1-1",): 2, ("r1-2",): 4}


def test_levels_above_hosts_only() -> None:
    """A topology that ends with racks is assigned by racks, and no node gets more than it could hold by itself."""
    hosts = topology({"b": {"r0": [3, 3], "r1": [4]}}, levels=LEVELS[:2])
    result = hosts.place([demand(3, cpu=2)], {})
    assert not isinstance(result, NotPlaced)
    assert result["main"].levels == LEVELS[:2]
    assert sorted(result["main"].domains) == [(("b", "r0"), 1), (("b", "r1"), 2)] or sorted(
        result["main"].domains
    ) == [(("b", "r0"), 2), (("b", "r1"), 1)]
    # Two nodes of 3 processors hold one pod of 2 each, and not three together.
    assert "only 4 out of 5" in refused(hosts, demand(5, cpu=2))
