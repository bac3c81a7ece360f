"""Domains and their nodes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drayman.placement.domains.tree import WHOLE, DomainTree, enclosing
from drayman.topology import Hierarchy, Path
from placement.domains.trees import LEVELS, tree_of

PLACES: dict[str, Path] = {
    "n1": ("z1", "r1"),
    "n2": ("z1", "r1"),
    "n3": ("z1", "r2"),
    "n4": ("z2", "r1"),
    "n5": ("z2", ""),
    "n6": ("", ""),
}


def test_names_count_within_the_level_above() -> None:
    """A rack of the same name in two zones is two domains."""
    tree = tree_of(PLACES)
    assert tree.domains(0) == (("z1",), ("z2",))
    assert tree.domains(1) == (("z1", "r1"), ("z1", "r2"), ("z2", "r1"))
    assert tree.nodes(("z1", "r1")) == ("n1", "n2")
    assert tree.title(("z2", "r1")) == "rack z2/r1"


def test_nodes_without_a_value_are_in_no_domain() -> None:
    """They are in the domains of other levels, if they have values for those, and counted as lacking."""
    tree = tree_of(PLACES)
    assert tree.of_node("n5", 1) is None
    assert tree.of_node("n5", 0) == ("z2",)
    assert tree.nodes(("z2",)) == ("n5", "n4")
    assert tree.of_node("n6", 0) is None
    assert "n6" in tree.nodes(WHOLE)
    assert (tree.lacking(0), tree.lacking(1)) == (1, 2)


def test_the_smallest_domain_around_nodes() -> None:
    """It is the longest path that they have in common."""
    tree = tree_of(PLACES)
    leaves = [leaf for name in ("n1", "n3") if (leaf := tree.leaf(name))]
    assert enclosing(leaves) == ("z1",)
    assert enclosing([]) == WHOLE


_places = st.tuples(st.sampled_from(["a", "b", ""]), st.sampled_from(["x", "y", ""]))


@given(st.lists(st.tuples(st.sampled_from("npq"), _places, st.booleans()), max_size=20))
def test_it_does_not_matter_how_nodes_came_to_be_where_they_are(
    moves: list[tuple[str, Path, bool]],
) -> None:
    """After any changes the tree is as if it had been made of what is there."""
    tree, left = DomainTree(Hierarchy(LEVELS)), dict[str, Path]()
    for name, place, goes in moves:
        if goes:
            tree.remove(name)
            left.pop(name, None)
        else:
            assert tree.set(name, place) == (name not in left or left[name] != place)
            left[name] = place
    fresh = tree_of(left)
    for level in range(3):
        assert tree.within(WHOLE, level) == fresh.within(WHOLE, level)
        assert tree.lacking(level) == fresh.lacking(level)
    assert [tree.leaf(name) for name in "npq"] == [fresh.leaf(name) for name in "npq"]
