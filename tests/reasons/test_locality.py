"""Why no domain holds a gang."""

from __future__ import annotations

import pytest

from drayman.placement.domains.assigning import Part
from drayman.placement.domains.choosing import Request, slices_of
from drayman.placement.domains.rooms import Rooms
from drayman.reasons.locality import LocalityRefusal, locality_refusal
from placement.domains.trees import racks, rooms_of, tree_of

ZONE, RACK = 0, 1


def refused(rooms: Rooms, request: Request, *numbers: int, **more: object) -> LocalityRefusal:
    found = locality_refusal(rooms, request, numbers or request.need, **more)  # type: ignore[arg-type]
    assert found is not None
    return found


UNLABELLED = rooms_of(
    {
        **{f"a{n}": (("z", "r1"), 1) for n in range(3)},
        **{f"b{n}": (("z", "r2"), 1) for n in range(2)},
        **{f"c{n}": (("z", ""), 1) for n in range(2)},
    }
)
SENTENCES: dict[str, tuple[Rooms, Request, str]] = {
    "what each domain holds, and nodes that are in none": (
        UNLABELLED,
        Request((4,), RACK),
        "Rack z/r1 holds 3 of 4, rack z/r2 holds 2 of 4; 2 nodes have no label rack.",
    ),
    "the largest domains": (
        racks([3], [2], [2], [1], [1]),
        Request((4,), RACK),
        "Rack z/r1 holds 3 of 4, rack z/r2 holds 2 of 4, rack z/r3 holds 2 of 4, 2 more hold 1 of 4 or less.",
    ),
    "domains that hold nothing": (
        racks([3], [2], [2], [0], [0]),
        Request((4,), RACK),
        "Rack z/r1 holds 3 of 4, rack z/r2 holds 2 of 4, rack z/r3 holds 2 of 4, 2 more hold none.",
    ),
    "the whole cluster": (racks([3]), Request((4,)), "The cluster holds 3 of 4 pods."),
    "parts in the whole cluster": (
        racks([3], [3]),
        Request((6,), parts=(Part("a", (4,), RACK), Part("b", (2,), RACK))),
        "The cluster has room for all, but not for each part in one domain of its level.",
    ),
    "no node has the label": (
        rooms_of({"n": (("z", ""), 9)}),
        Request((1,), RACK),
        "There is no rack: no node has the label rack.",
    ),
    "members run there": (
        racks([1], [9]),
        Request((2,), RACK, pinned=(("z", "r1", "r1-n1"),)),
        "Members run in rack z/r1, which holds 1 of 2 that are missing.",
    ),
    "members run in two": (
        racks([9], [9]),
        Request((1,), RACK, pinned=(("z", "r1", "r1-n1"), ("z", "r2", "r2-n1"))),
        "Members run in rack z/r1 and rack z/r2, and all of them have to be in one rack.",
    ),
    "slices": (
        racks([5], [5]),
        Request((12,), ZONE, parts=slices_of("s", (1,), 12, 4, required=RACK)),
        "Zone z holds 2 of 3 slices of 4 pods.",
    ),
    "parts": (
        racks([3], [3]),
        Request((6,), ZONE, parts=(Part("a", (4,), RACK), Part("b", (2,), RACK))),
        "Zone z has room for all, but not for each part in one domain of its level.",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_what_is_said(name: str) -> None:
    """One sentence with the largest few domains."""
    rooms, request, sentence = SENTENCES[name]
    assert refused(rooms, request).sentence == sentence


def test_the_data_have_every_domain() -> None:
    """Those that hold most come first."""
    found = refused(racks([1], [3], [2], [1]), Request((4,), RACK))
    assert [(each.domain, each.holds) for each in found.domains] == [
        ("rack z/r2", (3,)),
        ("rack z/r3", (2,)),
        ("rack z/r1", (1,)),
        ("rack z/r4", (1,)),
    ]
    assert (found.level, found.key, found.wanted) == ("rack", "rack", (4,))


def test_several_kinds_are_named() -> None:
    """What there is enough of is left out."""
    tree = tree_of({"n": ("z", "r")})
    rooms = Rooms(tree, {"n": (3, 1)}, 2)
    request = Request((4, 1), RACK)
    named = refused(rooms, request, 4, 1, names=("workers", "launchers"))
    assert named.sentence == "Rack z/r holds 3 of 4 workers."


def test_things_that_kinds_compete_for() -> None:
    """Each kind alone has room, but not both."""
    rooms = Rooms(tree_of({"n": ("z", "r")}), {"n": (1, 2, 8)}, 3)
    found = refused(rooms, Request((1, 1, 12), RACK), 1, 1)
    assert found.sentence == (
        "Rack z/r has room for each kind of pods, but not for all at the same time."
    )


def test_what_to_expect_from_waiting() -> None:
    """Enough is free elsewhere; or it would be if others ended; or never."""
    request = Request((4,), RACK)
    empty = racks([4], [4])
    assert refused(racks([2], [2]), request, empty=empty).outlook == "not here"
    assert refused(racks([2], [1]), request, empty=empty).outlook == "not now"
    assert refused(racks([2], [2]), request, empty=racks([3], [3])).outlook == "never"


def test_counts_that_may_be_too_high_say_so() -> None:
    """Where other rules matter, a count is only a bound."""
    rooms = Rooms(tree_of({"n": ("z", "r")}), {"n": (3,)}, 1, is_exact=False)
    assert refused(rooms, Request((4,), RACK)).sentence == "Rack z/r holds at most 3 of 4."


def test_nothing_is_said_where_counting_does_not_refuse() -> None:
    """Then the reason is another one."""
    assert locality_refusal(racks([4]), Request((4,), RACK), (4,)) is None
