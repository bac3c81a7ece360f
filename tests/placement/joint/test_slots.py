"""Which slice a member is in that comes back, or comes later."""

from __future__ import annotations

from drayman.placement.gangs.book import Member
from drayman.placement.gangs.dialects import kubernetes
from drayman.placement.gangs.gang import Membership, Slices, Wish
from drayman.placement.joint.slots import slots_of
from drayman.topology import Path
from placement.gangs.building import pod

KEY = kubernetes.key_of("ml", "g")
PAIRS = (Slices(2, Wish(required="rack")),)
NESTED = (Slices(4, Wish(required="block")), Slices(2, Wish(required="rack")))


def member(name: str, rank: int | None = None) -> Member:
    return Member(pod(name), Membership(KEY, rank=rank), None, "", is_known=True)


def at(member: Member, *path: str) -> tuple[Member, Path]:
    return member, path


def test_ranks_decide_where_there_are_some() -> None:
    """Also those of members that run, wherever that is."""
    running = [at(member("a", 0), "r1", "n1"), at(member("d", 3), "r2", "n2")]
    found = slots_of(PAIRS, [0], [member("b", 1), member("x", 7)], running)
    assert found == {"uid-b": 1, "uid-x": 7, "uid-a": 0, "uid-d": 3}


def test_newcomers_without_ranks_fill_up_slices_first() -> None:
    """Those that run in one rack are a slice; the second rack has a gap."""
    running = [
        at(member("a"), "r1", "n1"),
        at(member("b"), "r1", "n2"),
        at(member("c"), "r2", "n3"),
    ]
    found = slots_of(PAIRS, [0], [member("x"), member("y"), member("z")], running)
    assert {name: found[f"uid-{name}"] for name in "abcxyz"} == {
        "a": 0,
        "b": 1,
        "c": 2,
        "x": 3,
        "y": 4,
        "z": 5,
    }


def test_slices_in_slices_begin_where_a_domain_begins() -> None:
    """Two racks of the first block have a member each, and so has the second block."""
    running = [
        at(member("a"), "b1", "r1", "n1"),
        at(member("b"), "b1", "r2", "n2"),
        at(member("c"), "b2", "r3", "n3"),
    ]
    found = slots_of(NESTED, [0, 1], [member("x")], running)
    assert found == {"uid-a": 0, "uid-b": 2, "uid-c": 4, "uid-x": 1}


def test_ranks_that_are_shared_do_not_count() -> None:
    """As with the roles of some operators, which each begin at 0."""
    found = slots_of(PAIRS, [0], [member("a", 0), member("b", 0)], [])
    assert found == {"uid-a": 0, "uid-b": 1}
