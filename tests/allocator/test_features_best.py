"""Policy `best`: one preference per case, with the devices that it picks and first fit would not."""

# ruff: noqa: E501 - a case is a line, so that a table reads as one.

from __future__ import annotations

from typing import Any

import pytest

from oracle.best import best_placement
from oracle.build import (
    NIC,
    claim,
    device,
    exactly,
    first_available,
    in_use,
    partitioned,
    piece,
    problem,
    shared,
    shares,
)
from oracle.cases import Case, assert_literal, summary
from oracle.derived import assemble
from oracle.model import Model
from oracle.subject import BEST, answer

ROOT = "resource.kubernetes.io/pcieRoot"
NUMA = "resource.kubernetes.io/numaNode"


def at(
    name: str, root: str | None = None, numa: int | None = None, **fields: Any
) -> dict[str, Any]:
    """A device at a root of a NUMA node; None leaves the place out."""
    attrs = {ROOT: root, NUMA: numa}
    return device(name, attrs={k: v for k, v in attrs.items() if v is not None}, **fields)


def nics(*devices: dict[str, Any]) -> dict[str, Any]:
    return piece(devices, driver=NIC)


PAIR = claim(exactly("g"), exactly("n", cls="nic"))
PARTS = [device(f"p{n}", spends={"card": {"u": n}}) for n in (3, 1, 2)]

CASES = [
    Case("a GPU and a NIC at one root", problem([piece([at("g0", "a"), at("g1", "b")]), nics(at("n0", "b"))], PAIR), [{"g": ["g1"], "n": ["n0"]}]),
    Case("else at one NUMA node", problem([piece([at("g0", "a", 0), at("g1", "b", 1)]), nics(at("n0", "c", 1))], PAIR), [{"g": ["g1"], "n": ["n0"]}]),
    Case("a root before a NUMA node", problem([piece([at("g0", "a", 1), at("g1", "b", 1)]), nics(at("n0", "c", 1), at("n1", "b", 1))], PAIR), [{"g": ["g1"], "n": ["n1"]}]),
    Case("across claims of one pod", problem([piece([at("g0", "a"), at("g1", "b")]), nics(at("n0", "b"))], claim(exactly("g")), claim(exactly("n", cls="nic"))), [{"g": ["g1"]}, {"n": ["n0"]}]),
    Case("one kind on one NUMA node", problem([piece([at("g0", "a", 0), at("g1", "b", 1), at("g2", "c", 1)])], claim(exactly(count=2))), [{"req": ["g1", "g2"]}]),
    Case("one kind on one root", problem([piece([at("g0", "a", 0), at("g1", "b", 0), at("g2", "b", 0)])], claim(exactly(count=2))), [{"req": ["g1", "g2"]}]),
    Case("the user's order before alignment", problem([piece([at("g0", "a"), at("g1", "b")]), nics(at("n0", "b"))], claim(first_available("f", exactly("two", 2), exactly("one", 1)), exactly("n", cls="nic"))), [{"f/two": ["g0", "g1"], "n": ["n0"]}]),
    Case("a partition that spoils the fewest others", problem(partitioned(PARTS, {"card": {"u": 3}}), claim(exactly())), [{"req": ["p1"]}]),
    Case("a device that is shared already", problem([piece([shared("s0"), shared("s1")])], claim(exactly()), allocated=shares("s1", {})), [{"req": ["s1"]}]),
    Case("a root that is broken already", problem([piece([at("g0", "a", 0), at("g1", "a", 0), at("g2", "b", 0), at("g3", "b", 0)])], claim(exactly()), allocated=in_use("g3")), [{"req": ["g2"]}]),
    Case("a NUMA node that is broken already", problem([piece([at("g0", numa=1), at("g1", numa=0), at("g2", numa=0)])], claim(exactly()), allocated=in_use("g2")), [{"req": ["g1"]}]),
]  # fmt: skip

AS_FIRST_FIT = [
    Case("admin access spoils nothing", problem(partitioned(PARTS, {"card": {"u": 3}}), claim(exactly(admin=True))), [{"req": ["p3"]}]),
    Case("admin access opens no device", problem([piece([shared("s0"), shared("s1")])], claim(exactly(admin=True)), allocated=shares("s1", {})), [{"req": ["s0"]}]),
]  # fmt: skip


@pytest.mark.parametrize("case", [*CASES, *AS_FIRST_FIT], ids=str)
def test_best_picks_the_devices_of_the_table(case: Case) -> None:
    """Each case gets exactly the devices that the table names."""
    line = answer(case.problem, BEST)
    assert summary(line["outcome"], line.get("results")) == case.want


@pytest.mark.parametrize("case", [*CASES, *AS_FIRST_FIT], ids=str)
def test_exhaustive_search_agrees_with_the_table(case: Case) -> None:
    """The table names the cheapest of all valid allocations."""
    model = Model(case.problem)
    found = best_placement(model)
    assert found is not None
    results = assemble(model, found.entries, found.chosen)
    assert summary("allocated", results) == case.want


@pytest.mark.parametrize("case", [c for c in CASES if "user's order" not in c.name], ids=str)
def test_first_fit_would_have_chosen_otherwise(case: Case) -> None:
    """Every case is one in which the policies differ."""
    with pytest.raises(AssertionError):
        assert_literal(case)
