"""How many copies of some claims fit at the same time: as many as trying everything finds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given

from drayman.allocator import Together, together
from drayman.allocator.copies import copies_at_most
from oracle.brute import TooLarge, exists
from oracle.build import (
    capacity,
    claim,
    device,
    everything,
    exactly,
    first_available,
    in_use,
    partitioned,
    piece,
    problem,
    shared,
    taint,
)
from oracle.first_fit import Fatal, prepare
from oracle.model import Model
from oracle.nodes import JsonObject
from oracle.selectors import MODEL_A_GUARDED, with_verdicts
from oracle.strategies import problems
from oracle.subject import claims_of, inventory_of, ledger_of, node_of

MOST = 3
SMALL = 30_000


def counted(given: JsonObject, most: int = MOST, **limits: Any) -> Together:
    view = inventory_of(given).view(node_of(given), ledger_of(given))
    return together(view, claims_of(given), most, **limits)


def bound(given: JsonObject, most: int) -> int:
    view = inventory_of(given).view(node_of(given), ledger_of(given))
    return copies_at_most(view, claims_of(given), most)


def copies(given: JsonObject, number: int) -> JsonObject:
    """The same with so many copies of its claims."""
    made = [
        {**each, "metadata": {**each["metadata"], "name": f"{each['metadata']['name']}-{copy}"}}
        for copy in range(number)
        for each in given["claims"]
    ]
    return with_verdicts({**given, "claims": made})


@given(given=problems())
def test_as_many_fit_as_trying_everything_finds(given: JsonObject) -> None:
    """What is said to fit fits, and no more than is said to be the most. The bound alone is never too low."""
    assume(given["claims"])
    found = counted(given)
    try:
        prepare(Model(given))
        fitting = max(n for n in range(MOST + 1) if not n or exists(Model(copies(given, n)), SMALL))
    except (Fatal, TooLarge):
        assume(False)
        raise
    assert found.number <= fitting <= found.at_most
    assert found.is_exact
    assert bound(given, MOST) >= fitting


def halves(number: int) -> list[JsonObject]:
    """Devices that are offered whole, as model a, or as two halves."""
    sets = range(number)
    wholes = [device(f"w{n}", spends={f"s{n}": {"c": 2}}, attrs={"model": "a"}) for n in sets]
    parts = [device(f"h{n}{side}", spends={f"s{n}": {"c": 1}}) for n in sets for side in "ab"]
    return partitioned([*wholes, *parts], {f"s{n}": {"c": 2} for n in sets})


WHOLE_ELSE_ANY = first_available("req", exactly("whole", select=[MODEL_A_GUARDED]), exactly("any"))
ROOT = "resource.kubernetes.io/pcieRoot"
SIX_AND_TWO = [device(f"d{n}", attrs={ROOT: "r6" if n < 6 else "r2"}) for n in range(8)]
MEMORY = {"memory": capacity(80)}
CASES: dict[str, tuple[JsonObject, int]] = {
    "devices of a node": (problem([piece(["a", "b", "c"])], claim(exactly())), 3),
    "two at a time": (problem([piece(["a", "b", "c"])], claim(exactly(count=2))), 1),
    "one is in use": (problem([piece(["a", "b"])], claim(exactly()), allocated=in_use("a")), 1),
    "one is tainted": (
        problem([piece([device("a", taints=[taint("t")]), "b"])], claim(exactly())),
        1,
    ),
    "six and two are not two fours": (
        problem([piece(SIX_AND_TWO)], claim(exactly(count=4), match=[ROOT])),
        1,
    ),
    "whole devices if they were free, halves together": (
        problem(halves(2), claim(WHOLE_ELSE_ANY)),
        4,
    ),
    "shares of a device": (
        problem([piece([shared("s", MEMORY)])], claim(exactly(asks={"memory": 30}))),
        2,
    ),
    "all devices": (problem([piece(["a", "b"])], claim(everything())), 1),
    "access that takes nothing": (problem([piece(["a"])], claim(exactly(admin=True))), 9),
}


@pytest.mark.parametrize("name", CASES)
def test_copies_that_fit_at_once(name: str) -> None:
    """Counted by devices, counters and capacities, each copy as the others need it."""
    given, number = CASES[name]
    found = counted(given, 9)
    assert (found.number, found.at_most) == (number, number)


def test_a_count_that_is_given_up_says_so() -> None:
    """What was placed, and what has not been refuted, are then two numbers."""
    given = problem([piece(SIX_AND_TWO)], claim(exactly(count=4), match=[ROOT]))
    found = counted(given, 9, max_steps=1)
    assert not found.is_exact
    assert (found.number, found.at_most) == (0, 2)


def test_as_many_as_a_node_has_take_one_search() -> None:
    """The bound is tried first, and mostly reached: two steps for each device, or little more."""
    given = problem([piece([f"d{n}" for n in range(64)])], claim(exactly()))
    found = counted(given, 512)
    assert found.number == 64
    assert found.steps <= 2 * 64 + 2
