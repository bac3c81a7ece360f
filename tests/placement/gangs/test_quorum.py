"""Whether enough members exist."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drayman.placement.gangs.gang import Dialect, Gang, GangKey, Subgroup
from drayman.placement.gangs.quorum import Shortfall, Sparing, shortfall

KEY = GangKey(Dialect.KAI, "ml", "g")
PLAIN = Gang(key=KEY, least=3)
REPLICAS = Gang(
    key=KEY,
    least=0,
    least_children=2,
    subgroups=tuple(Subgroup(f"r{n}", least=2) for n in range(3)),
)
TREE = Gang(
    key=KEY,
    least=0,
    subgroups=(
        Subgroup("decode", least_children=None),
        Subgroup("prefill", least=1),
        Subgroup("leaders", "decode", 1),
        Subgroup("workers", "decode", 2),
    ),
)
PODSETS = Gang(key=KEY, least=2, subgroups=(Subgroup("leader"), Subgroup("worker")))

CASES: dict[str, tuple[Gang, dict[str, int], Shortfall | None]] = {
    "too few": (PLAIN, {"": 2}, Shortfall(2, 3)),
    "enough": (PLAIN, {"": 3}, None),
    "none are needed": (Gang(key=KEY, least=0), {}, None),
    "complete subgroups are counted": (
        REPLICAS,
        {"r0": 2, "r1": 1, "r2": 1},
        Shortfall(1, 2, counts_subgroups=True),
    ),
    "enough complete subgroups": (REPLICAS, {"r0": 2, "r2": 2}, None),
    "all subgroups are needed": (TREE, {"leaders": 1, "workers": 2}, Shortfall(0, 1, "prefill")),
    "all of an inner one": (
        TREE,
        {"prefill": 1, "leaders": 1, "workers": 1},
        Shortfall(1, 2, "workers"),
    ),
    "a complete tree": (TREE, {"prefill": 1, "leaders": 1, "workers": 2}, None),
    "members in no subgroup do not count": (
        Gang(key=KEY, least=2, subgroups=(Subgroup("a", least=1),)),
        {"": 5, "a": 1},
        Shortfall(1, 2),
    ),
    "subgroups that only have wishes": (PODSETS, {"leader": 1, "worker": 1}, None),
    "and those who are in none": (PODSETS, {"": 1, "worker": 1}, None),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_gang_lacks(case: str) -> None:
    """Members that do not exist, in the gang or the first part that lacks some."""
    gang, members, wanted = CASES[case]
    assert shortfall(gang, members) == wanted


@st.composite
def trees(draw: st.DrawFn) -> Gang:
    """A gang of any shape: parts within parts, quorums of pods or of parts, or wishes alone."""
    names: list[str] = []
    parts = []
    for number in range(draw(st.integers(1, 6))):
        name = f"s{number}"
        least = draw(st.none() | st.integers(0, 2))
        children = None if least is not None else draw(st.none() | st.integers(0, 2))
        parts.append(Subgroup(name, draw(st.sampled_from(["", *names])), least, children))
        names.append(name)
    children = draw(st.none() | st.integers(0, 2))
    return Gang(
        key=KEY, least=draw(st.integers(0, 3)), least_children=children, subgroups=tuple(parts)
    )


@given(trees(), st.lists(st.sampled_from(["", *(f"s{n}" for n in range(6))]), max_size=14))
def test_members_are_spared_as_long_as_nothing_is_short(gang: Gang, members: list[str]) -> None:
    """The same members are spared as by looking at the whole gang without each of them."""
    has = Counter(members)
    sparing = Sparing(gang, has)
    for each in members:
        has[each] -= 1
        can_go = shortfall(gang, has) is None
        assert sparing.spare(each) is can_go
        has[each] += not can_go
