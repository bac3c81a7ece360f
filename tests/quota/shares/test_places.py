"""Where pods of groups go on the nodes of a cluster."""

from __future__ import annotations

import pytest

from drayman.quota.shares.places import PlaceError
from quota.shares.town import group, outcome, queue

ONE = [queue("a", 100)]


def nodes_of(found: dict[str, str], name: str) -> list[str]:
    return sorted(node for pod, node in found.items() if pod.startswith(f"{name}-"))


def test_pods_go_where_the_least_is_left() -> None:
    found = outcome({"large": 4, "small": 2}, ONE, [group("g", "a", "1", "1", "1", least=3)])
    assert nodes_of(dict(found.result.placement), "g") == ["large", "small", "small"]


def test_a_place_that_exists_is_found_whatever_the_order_of_pods() -> None:
    """One after the other, the small pod would take what a large one needs."""
    found = outcome({"n": 2, "m": 3}, ONE, [group("g", "a", "1", "2", "2", least=3)])
    assert found.running == {"g": 3}


def test_a_required_level_is_kept_and_pins_those_that_come_later() -> None:
    near = {"topology": "t", "requiredTopologyLevel": "rack"}
    gang = group("g", "a", "1@n1", "1", "1", least=1, topology_constraint=near)
    racks = {"n1": "r1", "n2": "r1", "n3": "r2"}
    found = outcome({"n1": 1, "n2": 1, "n3": 4}, ONE, [gang], racks)
    assert nodes_of(dict(found.result.placement), "g") == ["n1", "n2"]


@pytest.mark.parametrize(
    "constraint",
    [
        pytest.param({"topology": "none", "requiredTopologyLevel": "rack"}, id="no such topology"),
        pytest.param({"topology": "t", "requiredTopologyLevel": "none"}, id="no such level"),
    ],
)
def test_what_names_no_level_that_exists_waits(constraint: dict[str, str]) -> None:
    gang = group("g", "a", "1", topology_constraint=constraint)
    assert outcome({"n": 1}, ONE, [gang], {"n": "r"}).running == {"g": 0}


def test_any_children_that_fit_are_enough() -> None:
    parts = ({"name": "x", "minMember": 2}, {"name": "y", "minMember": 1})
    gang = group("g", "a", "1/x", "1/x", "1/y", sub_groups=parts, min_sub_group=1)
    found = outcome({"n": 1}, ONE, [gang])
    assert set(found.result.placement) == {"g-2"}


def test_more_than_a_node_has_is_refused() -> None:
    with pytest.raises(PlaceError, match="pod g-1 does not fit on node n"):
        outcome({"n": 1}, ONE, [group("g", "a", "1@n", "1@n")])
