"""The levels of a cluster in their order."""

from __future__ import annotations

import pytest

from drayman.topology import configured, recognised

ZONE, RACK, BLOCK = (f"topology.kubernetes.io/{name}" for name in ("zone", "rack", "block"))
CLIQUE = "nvidia.com/gpu.clique"


def keys(*args: object, **kwargs: object) -> list[str]:
    return [level.key for level in recognised(*args, **kwargs).levels]  # type: ignore[arg-type]


def test_known_levels_go_from_wide_to_fine() -> None:
    """Whatever the order in which they are found."""
    assert keys([CLIQUE, RACK, ZONE]) == [ZONE, RACK, CLIQUE]
    assert keys([]) == []


def test_nothing_above_a_required_level_counts() -> None:
    """The required level is the first one: only its own value makes a domain."""
    found = recognised([ZONE, RACK, CLIQUE], wanted=[RACK], widest=RACK)
    assert [level.key for level in found.levels] == [RACK, CLIQUE]
    assert (found.position(ZONE), found.position(RACK), found.position(CLIQUE)) == (None, 0, 1)
    with pytest.raises(KeyError):
        found.position("example.com/row")


ROWS = {
    "a row of racks": ([("r1", "w1"), ("r2", "w1"), ("r3", "w2")], ["zone", "row", "rack"]),
    "half of a rack": ([("r1", "w1"), ("r1", "w2"), ("r2", "w3")], ["zone", "rack", "row"]),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_nodes_say_where_an_unknown_level_belongs(name: str) -> None:
    """It is above the levels that divide its places."""
    values, expected = ROWS[name]
    rows = [{ZONE: "z", RACK: rack, "example.com/row": row} for rack, row in values]
    found = recognised([ZONE, RACK], rows, wanted=["example.com/row"])
    assert [level.title for level in found.levels] == expected


def test_an_nvlink_domain_may_be_larger_than_a_rack() -> None:
    """Two racks of one domain are below it; several domains in a rack, or one for each, are below the rack."""
    two = [{ZONE: "z", RACK: f"r{n}", CLIQUE: f"c{n // 2}"} for n in range(4)]
    one = [{ZONE: "z", RACK: f"r{n}", CLIQUE: f"c{n}"} for n in range(4)]
    assert keys([ZONE, RACK, CLIQUE], two) == [ZONE, CLIQUE, RACK]
    assert keys([ZONE, RACK, CLIQUE], one) == [ZONE, RACK, CLIQUE]


def test_a_node_without_all_labels_of_a_configured_topology_is_in_none_of_its_domains() -> None:
    """Where levels are recognised, a node without one is still in the others."""
    labels = {ZONE: "z"}
    strict, lenient = configured([ZONE, RACK]), recognised([ZONE, RACK])
    assert strict.path(lambda level: labels.get(level.key, "")) == ("", "")
    assert lenient.path(lambda level: labels.get(level.key, "")) == ("z", "")
    assert (strict.index(RACK), strict.levels[1].title) == (1, "rack")
    with pytest.raises(KeyError):
        strict.index(CLIQUE)


def test_a_configured_topology_may_name_its_levels() -> None:
    """Its names are what is said about them."""
    assert configured(["x/a"], {"x/a": "aisle"}).levels[0].title == "aisle"
