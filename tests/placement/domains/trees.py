"""Small trees of domains, given or drawn."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from drayman.placement.domains.rooms import Amounts, Rooms
from drayman.placement.domains.tree import DomainTree
from drayman.topology import Hierarchy, Level, Path

LEVELS = (Level("zone", "zone"), Level("rack", "rack"))


def tree_of(places: Mapping[str, Path], levels: tuple[Level, ...] = LEVELS) -> DomainTree:
    """A tree with nodes by name."""
    tree = DomainTree(Hierarchy(levels))
    for name, place in places.items():
        tree.set(name, place)
    return tree


def rooms_of(given: Mapping[str, tuple[Path, int]]) -> Rooms:
    """What nodes hold of one kind of pods: by name, the place of each and how many."""
    tree = tree_of({name: place for name, (place, _) in given.items()})
    return Rooms(tree, {name: (amount,) for name, (_, amount) in given.items() if amount}, 1)


def racks(*amounts: list[int]) -> Rooms:
    """Racks in one zone, with what each node of each of them holds."""
    given = {
        f"r{rack}-n{number}": (("z", f"r{rack}"), amount)
        for rack, held in enumerate(amounts, 1)
        for number, amount in enumerate(held, 1)
    }
    return rooms_of(given)


@st.composite
def any_rooms(draw: st.DrawFn, most_nodes: int = 6, size: int = 1) -> Rooms:
    """A few nodes in two levels, some without a value for one of them."""
    places: dict[str, Path] = {}
    by_node: dict[str, Amounts] = {}
    for number in range(draw(st.integers(1, most_nodes))):
        name = f"n{number}"
        places[name] = (
            draw(st.sampled_from(["a", "b", ""])),
            draw(st.sampled_from("xyz") | st.just("")),
        )
        amounts = tuple(draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)))
        if any(amounts):
            by_node[name] = amounts
    return Rooms(tree_of(places), by_node, size)
