"""Objects of a cluster, put together."""

from __future__ import annotations

from drayman.placement.world import Objects
from simulate.cluster import claim, node


def test_what_joins_takes_the_place_of_its_namesake() -> None:
    """By name, and for objects in namespaces by namespace as well; everything else stays."""
    first = Objects(nodes=(node("a"), node("b")), claims=(claim("c"),))
    later = Objects(nodes=(node("b", cpu="1"), node("c")))
    joined = first.joined(later)
    assert [n.metadata.name for n in joined.nodes] == ["a", "b", "c"]
    assert str(joined.nodes[1].status.allocatable["cpu"]) == "1"
    assert joined.claims == first.claims


def test_rules_of_different_kinds_may_have_the_same_name() -> None:
    """A priority class does not take the place of a runtime class."""
    rules = tuple(
        {"kind": kind, "metadata": {"name": "fast"}} for kind in ("PriorityClass", "RuntimeClass")
    )
    assert Objects(rules=rules[:1]).joined(Objects(rules=rules[1:])).rules == rules
