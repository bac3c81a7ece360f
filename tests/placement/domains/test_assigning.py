"""Domains for the parts of a gang, compared with every way to assign them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.placement.domains.assigning import Part, assign
from drayman.placement.domains.budget import Budget, OutOfSteps
from drayman.placement.domains.choosing import Request, choose, slices_of
from drayman.placement.domains.rooms import Rooms, holds
from drayman.placement.domains.tree import WHOLE
from drayman.topology import Path
from placement.domains.trees import any_rooms, racks, rooms_of

ZONE, RACK = 0, 1


def test_subgroups_share_a_domain_only_if_it_holds_both() -> None:
    """The larger one takes the rack that holds it, and the smaller one what is left."""
    rooms = racks([2, 2], [3])
    parts = (Part("small", (3,), RACK), Part("large", (4,), RACK))
    found = assign(rooms, ("z",), parts)
    assert found is not None
    assert {each.name: each.domain for each in found} == {
        "large": ("z", "r1"),
        "small": ("z", "r2"),
    }
    assert assign(racks([6]), ("z",), parts) is None


def test_what_was_chosen_first_is_taken_back() -> None:
    """Both racks hold the first part, but only one way leaves room for the pinned one."""
    rooms = racks([3], [4])
    free, pinned = Part("a", (3,), RACK), Part("b", (3,), RACK, pinned=(("z", "r1", "r1-n1"),))
    found = assign(rooms, ("z",), (free, pinned))
    assert found is not None
    assert {each.name: each.domain for each in found} == {"a": ("z", "r2"), "b": ("z", "r1")}


def test_slices_in_subgroups_in_a_gang() -> None:
    """A pipeline over zones, each stage in a zone, each tensor-parallel slice in a rack."""
    rooms = rooms_of(
        {f"{zone}{rack}": ((zone, rack), 4) for zone, rack in product("ab", ("x", "y"))}
    )
    slices = slices_of("slice", (1,), 8, 4, required=RACK)
    stages = Part("stage", (8,), ZONE, parts=slices, times=2)
    (found, *_) = choose(rooms, Request((16,), parts=(stages,)))
    domains = [(each.name, each.number, each.domain) for each in found.assigned]
    assert domains == [
        ("stage", 0, ("a",)),
        ("slice", 0, ("a", "x")),
        ("slice", 1, ("a", "y")),
        ("stage", 1, ("b",)),
        ("slice", 0, ("b", "x")),
        ("slice", 1, ("b", "y")),
    ]


def test_a_preferred_level_is_tried_first() -> None:
    """One rack if it holds the part, else the zone."""
    wish = Part("p", (3,), ZONE, RACK)
    for held, domain in (([3], ("z", "r1")), ([2], ("z",))):
        found = assign(racks(held, [2]), WHOLE, (wish,))
        assert found is not None
        assert found[0].domain == domain


def test_running_out_of_steps_is_not_a_refusal() -> None:
    """It is said, and no candidate is offered for the domain."""
    rooms = racks(*[[3] for _ in range(8)])
    parts = tuple(Part(f"p{number}", (2,), RACK) for number in range(8))
    with pytest.raises(OutOfSteps):
        assign(rooms, WHOLE, parts, budget=Budget(20))
    choice = choose(rooms, Request((16,), parts=parts), max_steps=20)
    assert list(choice) == []
    assert choice.gave_up


@pytest.mark.parametrize("named", [False, True])
def test_what_cannot_be_is_refuted_quickly(named: bool) -> None:
    """Thirty racks of five have room for fifty slices of three, but each of them only for one."""
    rooms = racks(*[[5] for _ in range(30)])
    parts = slices_of("s", (1,), 93, 3, required=RACK)
    if named:
        parts = tuple(Part(f"s{number}", (3,), RACK) for number in range(31))
    budget = Budget(1_000)
    assert assign(rooms, WHOLE, parts, budget=budget) is None
    assert budget.taken <= 100


@pytest.mark.parametrize("named", [False, True])
def test_many_slices_take_few_steps(named: bool) -> None:
    """Each slice looks at each rack once, whether they are given as many or one by one."""
    rooms = racks(*[[8] * 16 for _ in range(32)])
    parts = slices_of("s", (1,), 1024, 8, required=RACK)
    if named:
        parts = tuple(Part(f"s{number}", (8,), RACK) for number in range(128))
    budget = Budget(10_000)
    assert assign(rooms, WHOLE, parts, budget=budget) is not None
    assert budget.taken <= 128 * 34


# Brute force: every combination of domains, and a flow of members to nodes for each of them.


def served(rooms: Rooms, wanted: Sequence[tuple[Path, int]]) -> bool:
    """Whether so many members can be put on nodes of these domains, by augmenting paths."""
    leaves = rooms.tree.within(WHOLE, rooms.tree.node_level)
    places = [leaf for leaf in leaves for _ in range(rooms.of(leaf)[0])]
    members = [domain for domain, number in wanted for _ in range(number)]
    holder: dict[int, int] = {}

    def place(member: int, seen: set[int]) -> bool:
        for index, leaf in enumerate(places):
            if index in seen or leaf[: len(members[member])] != members[member]:
                continue
            seen.add(index)
            if index not in holder or place(holder[index], seen):
                holder[index] = member
                return True
        return False

    return all(place(member, set()) for member in range(len(members)))


def every_way(rooms: Rooms, parts: Sequence[tuple[str, int, int | None, str | None]]) -> bool:
    """Whether any combination of domains serves all parts: name, own members, level, and the part around it."""
    domains = [(None,) if level is None else rooms.tree.domains(level) for _, _, level, _ in parts]
    for chosen in product(*domains):
        at: dict[str, Path] = {}
        is_nested = True
        for (name, _, _, around), domain in zip(parts, chosen, strict=True):
            outer = at[around] if around else WHOLE
            at[name] = outer if domain is None else domain
            is_nested = is_nested and at[name][: len(outer)] == outer
        if is_nested and served(rooms, [(at[name], own) for name, own, _, _ in parts]):
            return True
    return False


def nested(rows: Sequence[tuple[str, int, int | None, str | None]]) -> tuple[Part, ...]:
    inner: dict[str | None, list[Part]] = {}
    for name, own, level, around in reversed(rows):
        parts = tuple(reversed(inner.get(name, [])))
        need = own + sum(part.need[0] for part in parts)
        inner.setdefault(around, []).append(Part(name, (need,), level, parts=parts))
    return tuple(reversed(inner.get(None, [])))


@st.composite
def any_parts(draw: st.DrawFn) -> list[tuple[str, int, int | None, str | None]]:
    rows: list[tuple[str, int, int | None, str | None]] = []
    levels: Mapping[str, int | None] = {}
    for index in range(draw(st.integers(1, 4))):
        around = draw(st.sampled_from([None, *[name for name, *_ in rows]]))
        least = -1 if around is None or levels[around] is None else levels[around]
        allowed = [
            None,
            *[level for level in (ZONE, RACK, 2) if level > (least or 0) or least == -1],
        ]
        level = draw(st.sampled_from(allowed))
        rows.append((f"p{index}", draw(st.integers(1, 3)), level, around))
        levels = {
            **levels,
            f"p{index}": level if level is not None else (levels[around] if around else None),
        }
    return rows


@given(any_rooms(), any_parts())
def test_it_finds_what_there_is(
    rooms: Rooms, rows: list[tuple[str, int, int | None, str | None]]
) -> None:
    """There is an assignment exactly if brute force has one, and what is found serves all members."""
    need = (sum(own for _, own, _, _ in rows),)
    parts = nested(rows)
    found = assign(rooms, WHOLE, parts) if holds(rooms.of(WHOLE), need) else None
    assert (found is not None) == every_way(rooms, rows)
    if found is not None:
        at = {each.name: each.domain for each in found}
        assert served(rooms, [(at[name], own) for name, own, _, _ in rows])


@given(any_rooms(), st.integers(1, 3), st.integers(1, 7), st.sampled_from([ZONE, RACK]))
def test_slices_are_as_brute_force_has_them(
    rooms: Rooms, size: int, number: int, level: int
) -> None:
    """A gang in slices has a candidate exactly if its slices can be assigned one by one."""
    parts = slices_of("s", (1,), number, size, required=level)
    rows = [
        (f"s{index}", min(size, number - index * size), level, None)
        for index in range(-(-number // size))
    ]
    choice = choose(rooms, Request((number,), parts=parts))
    found = next(iter(choice), None)
    assert not choice.gave_up
    assert (found is not None) == every_way(rooms, rows)
    if found is not None:
        assert served(rooms, [(each.domain, rows[each.number][1]) for each in found.assigned])
