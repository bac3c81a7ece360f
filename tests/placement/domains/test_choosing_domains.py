"""Where a gang could go: the finest level, the least spread, the tightest fit, as brute force finds them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.placement.domains.choosing import Candidate, Request, choose, slices_of
from drayman.placement.domains.rooms import Amounts, Rooms, holds
from drayman.topology import Path
from placement.domains.trees import any_rooms, racks, rooms_of

ZONE, RACK = 0, 1


def first(rooms: Rooms, request: Request) -> Candidate | None:
    return next(iter(choose(rooms, request)), None)


CASES: dict[str, tuple[Rooms, Request, tuple[str, ...]]] = {
    "the domain that holds it, though another one is fuller": (
        racks([1, 1, 1], [1, 1, 1, 1]),
        Request((4,), RACK),
        ("r2-n1", "r2-n2", "r2-n3", "r2-n4"),
    ),
    "one node, if one holds it": (racks([1, 1], [2]), Request((2,), RACK), ("r2-n1",)),
    "the tightest of the nodes that hold it": (racks([8, 4], [8]), Request((3,)), ("r1-n2",)),
    "the tightest rack": (
        racks([2, 2, 2], [2, 2]),
        Request((4,), RACK),
        ("r2-n1", "r2-n2"),
    ),
    "the node in the fuller rack, of nodes that are alike": (
        racks([2, 2], [1, 2]),
        Request((2,)),
        ("r2-n2",),
    ),
    "the node in the fuller rack before the tighter node, if racks are what is asked for": (
        racks([2, 4], [3, 1]),
        Request((2,), RACK),
        ("r2-n1",),
    ),
    "the fewest racks": (
        racks([2, 2], [2, 2], [1, 1], [3]),
        Request((7,)),
        ("r1-n1", "r1-n2", "r4-n1"),
    ),
    "the rack where members run, though another one is roomier": (
        racks([1], [4]),
        Request((1,), RACK, pinned=(("z", "r1", "r1-n1"),)),
        ("r1-n1",),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_first_candidate(name: str) -> None:
    """Named cases of the order of candidates."""
    rooms, request, nodes = CASES[name]
    found = first(rooms, request)
    assert found is not None
    assert found.nodes == nodes


def test_nodes_without_the_required_label_are_never_used() -> None:
    """What they hold does not count, and no candidate has them."""
    rooms = rooms_of({"a": (("z", "r"), 1), "b": (("z", ""), 9), "c": (("", "r"), 1)})
    assert [c.nodes for c in choose(rooms, Request((2,), RACK))] == []
    assert all("c" not in c.nodes for c in choose(rooms, Request((1,), ZONE)))
    anywhere = first(rooms, Request((11,)))
    assert anywhere is not None
    assert anywhere.nodes == ("c", "b", "a")


def test_members_that_run_in_two_domains_leave_no_choice() -> None:
    """No domain of the level includes both."""
    rooms = racks([4], [4])
    pinned = (("z", "r1", "r1-n1"), ("z", "r2", "r2-n1"))
    assert list(choose(rooms, Request((1,), RACK, pinned=pinned))) == []
    wider = first(rooms, Request((1,), ZONE, pinned=pinned))
    assert wider is not None
    assert wider.domain == ("z",)


def test_after_the_least_spread_comes_the_whole_domain() -> None:
    """Every domain that could hold it is offered in the end, each of them once, finer levels first."""
    found = list(choose(racks([2, 2], [1, 1, 1]), Request((2,))))
    assert [c.domain for c in found] == [
        ("z", "r1", "r1-n1"),
        ("z", "r1", "r1-n2"),
        ("z", "r2"),
        ("z", "r2"),
        ("z", "r1"),
        ("z",),
    ]
    assert len({(c.domain, c.nodes) for c in found}) == len(found)


def test_places_that_look_the_same_do_not_keep_others_waiting() -> None:
    """After a few of them other levels have their turn, and the rest comes last."""
    found = list(choose(racks(*[[2] * 10 for _ in range(3)]), Request((2,))))
    lengths = [len(candidate.domain) for candidate in found]
    assert lengths == [3, 3, 3, 3, 2, 2, 2, 1, *[3] * 26]


def subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(names, size) for size in range(1, len(names) + 1))


def rank(rooms: Rooms, names: Sequence[str]) -> tuple[int, tuple[int, ...]]:
    """How good it is to be on these nodes: the level of the smallest domain around them, and the spread below it."""
    leaves = [leaf for name in names if (leaf := rooms.tree.leaf(name))]
    length = max(
        size
        for size in range(len(leaves[0]) + 1)
        if len({leaf[:size] for leaf in leaves}) == 1 and (size == 0 or leaves[0][size - 1])
    )
    spread = (len({leaf[:size] for leaf in leaves}) for size in range(length + 1, 4))
    return -length, tuple(spread)


def enough(rooms: Rooms, names: Sequence[str], need: Amounts) -> bool:
    each = [rooms.of(leaf) for name in names if (leaf := rooms.tree.leaf(name))]
    return holds(tuple(map(sum, zip(*each, strict=True))), need)


def is_allowed(rooms: Rooms, names: Sequence[str], required: int | None) -> bool:
    if required is None:
        return True
    domains = {rooms.tree.of_node(name, required) for name in names}
    return len(domains) == 1 and None not in domains


@given(st.data(), st.integers(1, 2))
def test_level_and_spread_are_the_best_there_is(data: st.DataObject, kinds: int) -> None:
    """No set of nodes that meets the need is in a finer domain or spread less; and if there is none, there is no candidate."""
    rooms = data.draw(any_rooms(size=kinds))
    need = tuple(data.draw(st.lists(st.integers(1, 6), min_size=kinds, max_size=kinds)))
    required = data.draw(st.sampled_from([None, ZONE, RACK, 2]))
    choice = choose(rooms, Request(need, required))
    found = next(iter(choice), None)
    names = rooms.tree.nodes(())
    able = [
        rank(rooms, each)
        for each in subsets(names)
        if is_allowed(rooms, each, required) and enough(rooms, each, need)
    ]
    assert not choice.gave_up
    if found is None:
        assert not able
        return
    assert found.is_best
    assert enough(rooms, found.nodes, need)
    assert (-len(found.domain), found.spread) == min(able)


@given(st.data())
def test_every_domain_that_could_hold_it_is_offered(data: st.DataObject) -> None:
    """Whatever keeps the first candidates from working, each domain of the required level is offered with all nodes that hold anything."""
    rooms = data.draw(any_rooms())
    need, required = (data.draw(st.integers(1, 5)),), data.draw(st.sampled_from([ZONE, RACK]))
    offered = [frozenset(c.nodes) for c in choose(rooms, Request(need, required))]
    for domain in rooms.tree.domains(required):
        useful = {name for name in rooms.tree.nodes(domain) if rooms_on(rooms, name)}
        if holds(rooms.of(domain), need):
            assert frozenset(useful) in offered


def rooms_on(rooms: Rooms, name: str) -> bool:
    leaf = rooms.tree.leaf(name)
    return leaf is not None and any(rooms.of(leaf))


@given(st.data())
def test_pinned_gangs_stay(data: st.DataObject) -> None:
    """Every candidate is in the domain of the required level in which members run."""
    rooms = data.draw(any_rooms())
    names = rooms.tree.nodes(())
    leaf = rooms.tree.leaf(data.draw(st.sampled_from(names)))
    assert leaf is not None
    required = data.draw(st.sampled_from([ZONE, RACK]))
    request = Request((data.draw(st.integers(1, 4)),), required, pinned=(leaf,))
    for candidate in choose(rooms, request):
        assert leaf[required]
        assert candidate.domain[: required + 1] == leaf[: required + 1]


def test_slices_are_counted_whole() -> None:
    """Two racks of five hold two slices of four, though ten are not fewer than eight and a third would be needed for three."""
    rooms = racks([5], [5], [3])
    two = first(rooms, Request((8,), ZONE, parts=slices_of("s", (1,), 8, 4, required=RACK)))
    assert two is not None
    assert {each.domain for each in two.assigned} == {("z", "r1"), ("z", "r2")}
    three = Request((12,), ZONE, parts=slices_of("s", (1,), 12, 4, required=RACK))
    assert first(rooms, three) is None


def test_the_last_slice_has_what_remains() -> None:
    """Ten members in slices of four are two slices and one of two, which is number 2."""
    rooms = racks([5], [5], [2])
    request = Request((10,), ZONE, parts=slices_of("s", (1,), 10, 4, required=RACK))
    found = first(rooms, request)
    assert found is not None
    rest: list[Path] = [each.domain for each in found.assigned if each.number == 2]
    assert rest == [("z", "r3")]
