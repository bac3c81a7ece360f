"""Where nodes are, by their labels and by what their devices state."""

from __future__ import annotations

from drayman.api.codec import convert
from drayman.api.core import Node
from drayman.api.resource import ResourceSlice
from drayman.placement.domains.choosing import Request, choose
from drayman.placement.domains.following import Domains
from drayman.placement.domains.rooms import Rooms
from drayman.topology import configured
from oracle.build import device, piece
from placement.domains.cluster import RACK, ZONE, add_node, make_state

BLOCK = "oke.dra.net/networkBlockId"
OWN_RACK = "oke.dra.net/rackId"


def test_devices_state_where_a_node_is() -> None:
    """Where no label says it; a node whose devices disagree is nowhere."""
    state = make_state()
    add_node(state, "a", {}, 2, attrs={BLOCK: "b1", OWN_RACK: "r1"})
    add_node(state, "b", {}, 2, attrs={BLOCK: "b1", OWN_RACK: "r2"})
    add_node(state, "c", {}, 0)
    odd = [device("x", attrs={BLOCK: "b1"}), device("y", attrs={BLOCK: "b2"})]
    state.set_slice(convert(ResourceSlice, piece(odd, pool="c", name="c", nodeName="c")))
    domains = Domains(state)
    found = domains.hierarchy()
    assert [level.key for level in found.levels] == [BLOCK, OWN_RACK]
    tree = domains.tree(found)
    assert tree.domains(1) == (("b1", "r1"), ("b1", "r2"))
    assert tree.of_node("c", 0) is None
    assert tree.lacking(0) == 1


def test_any_attribute_can_be_a_level() -> None:
    """Its full name names it, whichever driver publishes it; the driver's own attributes have the driver's name."""
    state = make_state()
    add_node(state, "a", {}, 1, attrs={"switch": "s1"})
    add_node(state, "b", {}, 1, attrs={"switch": "s2"})
    tree = Domains(state).tree(configured(["gpu.example.com/switch"]))
    assert tree.domains(0) == (("s1",), ("s2",))
    assert tree.title(("s1",)) == "switch s1"


def test_devices_that_several_nodes_reach_say_nothing() -> None:
    """They are not at any of these nodes."""
    state = make_state()
    add_node(state, "a", {ZONE: "z"}, 0)
    fabric = piece([device("f", attrs={BLOCK: "b"})], pool="fabric", name="fabric", allNodes=True)
    state.set_slice(convert(ResourceSlice, fabric))
    assert [level.key for level in Domains(state).hierarchy().levels] == [ZONE]


def test_a_required_level_is_named_by_its_value_alone() -> None:
    """Racks of the same name in two zones are one domain where the rack is required, and two where a topology lists both."""
    state = make_state()
    for zone in "ab":
        add_node(state, f"n{zone}", {ZONE: zone, RACK: "r1"}, 0)
    domains = Domains(state)
    alone = domains.tree(domains.hierarchy(required=RACK))
    assert alone.nodes(("r1",)) == ("na", "nb")
    assert alone.title(("r1",)) == "rack r1"
    assert len(domains.tree(configured([ZONE, RACK])).domains(1)) == 2


def test_only_what_is_required_keeps_unlabelled_nodes_out() -> None:
    """Nodes without the labels of a configured topology are in none of its domains, but a gang that only prefers one may use them."""
    state = make_state()
    add_node(state, "labelled", {ZONE: "z", RACK: "r"}, 1)
    add_node(state, "partly", {ZONE: "z"}, 1)
    tree = Domains(state).tree(configured([ZONE, RACK]))
    assert tree.nodes(("z",)) == ("labelled",)
    held = Rooms(tree, dict.fromkeys(state.nodes, (1,)), 1)
    assert list(choose(held, Request((2,), 0))) == []
    (found,) = choose(held, Request((2,), preferred=1))
    assert set(found.nodes) == {"labelled", "partly"}
    assert not found.is_preferred(Request((2,), preferred=1))


def test_what_changes_in_a_trial_is_as_before_when_it_ends() -> None:
    """A node that moves, a node that goes and a slice that says something else."""
    state = make_state()
    add_node(state, "a", {RACK: "r1"}, 0)
    add_node(state, "b", {}, 1, attrs={OWN_RACK: "r9"})
    domains = Domains(state)

    def racks() -> dict[str, tuple[str, ...]]:
        found = domains.hierarchy()
        tree = domains.tree(found)
        return {
            level.key: tuple(path[-1] for path in tree.domains(index))
            for index, level in enumerate(found.levels)
        }

    before = racks()
    assert before == {RACK: ("r1",), OWN_RACK: ("r9",)}
    with state.trial():
        moved = {"metadata": {"name": "a", "labels": {RACK: "r2", ZONE: "z"}}}
        state.set_node(convert(Node, moved))
        state.remove_node("b")
        assert racks() == {ZONE: ("z",), RACK: ("r2",)}
    assert racks() == before
