"""Who goes with whom."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.api.codec import convert
from drayman.api.core import Pod
from drayman.placement.gangs.gang import Dialect, Gang, GangKey, Subgroup
from drayman.placement.gangs.quorum import shortfall
from drayman.placement.parties import Occupant, in_order_of_return, parties_of

KEY = GangKey(Dialect.DRAYMAN, "ml", "g")


def occupant(name: str, node: str = "n", part: str = "", **fields: Any) -> Occupant:
    safe = fields.pop("safe", False)
    value = {"metadata": {"name": name, "uid": name}, "spec": fields}
    return Occupant(convert(Pod, value), (), node, part, safe)


def gang(**fields: Any) -> Gang:
    return Gang(key=KEY, **{"least": 2, **fields})


def shown(found: Gang, members: list[Occupant], node: str = "n", **done: int) -> list[str]:
    """The parties by the names of their pods; what has a core begins with a plus."""
    parties = parties_of(found, members, done, lambda each: each.node == node)
    return [
        f"{'+' if party.core is not None else ''}{' '.join(each.uid for each in party.members)}"
        for party in parties
    ]


THREE = [occupant("a"), occupant("b", "m"), occupant("c", "m")]
CASES: dict[str, tuple[Gang, list[Occupant], list[str]]] = {
    "beyond the quorum, those in the way": (gang(), THREE, ["b c", "+a"]),
    "nobody beyond": (gang(least=3), THREE, ["a b c"]),
    "below the quorum already": (gang(least=5), THREE, ["a b c"]),
    "as one": (gang(goes_as_one=True), THREE, ["a b c"]),
    "singly": (gang(goes_singly=True), THREE, ["a", "b", "c"]),
    "without a quorum": (gang(least=0), THREE, ["a", "b", "c"]),
    "not preemptible": (gang(is_preemptible=False), THREE, []),
    "the one in the way is safe": (gang(), [occupant("a", safe=True), *THREE[1:]], ["+c"]),
    "all beyond the quorum are safe": (gang(least=1), [occupant(n, safe=True) for n in "ab"], []),
    "one of those that stay is safe": (
        gang(least=1),
        [occupant("a"), occupant("b"), occupant("c", "m", safe=True)],
        ["+b", "+a"],
    ),
}


@pytest.mark.parametrize(("found", "members", "wanted"), CASES.values(), ids=CASES)
def test_gangs_as_parties(found: Gang, members: list[Occupant], wanted: list[str]) -> None:
    """A gang goes as it says, and members beyond its quorum go first."""
    assert shown(found, members) == wanted


def test_members_that_have_done_their_part_count() -> None:
    """One that has succeeded is one fewer that has to stay."""
    assert shown(gang(least=3), THREE, **{"": 1}) == ["b c", "+a"]


def test_quorums_of_subgroups_count() -> None:
    """Of each subgroup as many stay as it needs."""
    parts = (Subgroup("x", least=1), Subgroup("y", least=2))
    members = [occupant(name, part=name[0]) for name in ("x0", "x1", "y0", "y1")]
    assert shown(gang(least=0, subgroups=parts), members) == ["x0 y0 y1", "+x1"]


def test_a_gang_is_as_important_as_its_most_important_member_or_as_it_says() -> None:
    members = [occupant("a", priority=1), occupant("b", priority=7)]
    assert {p.priority for p in parties_of(gang(), members, {}, lambda _: True)} == {7}
    stated = gang(priority=3)
    assert {p.priority for p in parties_of(stated, members, {}, lambda _: True)} == {3}


def test_the_core_is_spared_before_those_that_need_it() -> None:
    """Even if it is one of those that a budget protects."""
    parties = parties_of(gang(), THREE, {}, lambda each: each.node == "n")
    for protected in ((), ("a",)):
        order = in_order_of_return(parties, protected)
        assert [sorted(party.uids) for party in order] == [["b", "c"], ["a"]]


@given(
    st.lists(st.tuples(st.sampled_from("xy"), st.booleans()), min_size=1, max_size=8),
    st.integers(0, 4),
    st.integers(0, 3),
)
def test_everybody_is_in_one_party_and_what_the_core_leaves_is_enough(
    drawn: list[tuple[str, bool]], least: int, of_part: int
) -> None:
    """Without all that are beyond it, a gang that was complete still is; without one more it is not."""
    parts = (Subgroup("x", least=of_part), Subgroup("y", least=1))
    members = [
        occupant(f"p{number}", "n" if is_here else "m", part)
        for number, (part, is_here) in enumerate(drawn)
    ]
    found = gang(least=least, subgroups=parts)
    parties = parties_of(found, members, {}, lambda each: each.node == "n")
    assert Counter(uid for p in parties for uid in p.uids) == Counter(m.uid for m in members)
    core = [party for party in parties if party.core is None]
    left = Counter(each.part for party in core for each in party.members)
    if shortfall(found, Counter(part for part, _ in drawn)) is None:
        assert shortfall(found, left) is None
        assert all(shortfall(found, left - Counter(part)) is not None for part in left)
