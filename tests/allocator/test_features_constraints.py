"""`matchAttribute` and `distinctAttribute`: values, types, lists, names, which requests they cover."""

# ruff: noqa: E501 - a case is a line, so that a table reads as one.

from __future__ import annotations

from typing import Any

import pytest

from oracle.build import (
    GPU,
    NIC,
    claim,
    device,
    everything,
    exactly,
    first_available,
    piece,
    problem,
)
from oracle.cases import Case, assert_best, assert_first_fit, assert_literal

ROOT = "resource.kubernetes.io/pcieRoot"


def rooted(prefix: str, *roots: Any, attribute: str = ROOT) -> list[dict[str, Any]]:
    """Devices with one attribute; None leaves it out."""
    return [
        device(f"{prefix}{n}", attrs={} if root is None else {attribute: root})
        for n, root in enumerate(roots)
    ]


def gpus(*roots: Any, attribute: str = ROOT) -> dict[str, Any]:
    return piece(rooted("g", *roots, attribute=attribute))


def nics(*roots: Any) -> dict[str, Any]:
    return piece(rooted("n", *roots), driver=NIC)


PAIR = (exactly("g"), exactly("n", cls="nic"))

MATCH = [
    Case("two of one root", problem([gpus("a", "b", "b")], claim(exactly(count=2), match=[ROOT])), [{"req": ["g1", "g2"]}]),
    Case("no two of one root", problem([gpus("a", "b", "c")], claim(exactly(count=2), match=[ROOT])), "unallocatable"),
    Case("across requests", problem([gpus("a", "b"), nics("b")], claim(*PAIR, match=[ROOT])), [{"g": ["g1"], "n": ["n0"]}]),
    Case("a root late in the order", problem([gpus("a", "b", "c"), nics("x", "c")], claim(*PAIR, match=[ROOT])), [{"g": ["g2"], "n": ["n1"]}]),
    Case("a device without the attribute", problem([gpus(None, "b")], claim(exactly(), match=[ROOT])), [{"req": ["g1"]}]),
    Case("no device with the attribute", problem([gpus(None, None)], claim(exactly(), match=[ROOT])), "unallocatable"),
    Case("only the requests named", problem([gpus("a", "b"), nics("c")], claim(*PAIR, match=[(ROOT, ["g"])])), [{"g": ["g0"], "n": ["n0"]}]),
    Case("each claim on its own", problem([gpus("a", "b"), nics("b", "a")], claim(*PAIR, match=[ROOT]), claim(*PAIR, match=[ROOT])), [{"g": ["g0"], "n": ["n1"]}, {"g": ["g1"], "n": ["n0"]}]),
    Case("numbers and text differ", problem([gpus(1, "1")], claim(exactly(count=2), match=[ROOT])), "unallocatable"),
    Case("versions compare as text", problem([gpus({"version": "1.0.0"}, {"version": "1.0.0+x"})], claim(exactly(count=2), match=[ROOT])), "unallocatable"),
    Case("booleans", problem([gpus(True, False, True)], claim(exactly(count=2), match=[ROOT])), [{"req": ["g0", "g2"]}]),
    Case("a name without domain is the driver's", problem([gpus("a", "b", "b", attribute="slot")], claim(exactly(count=2), match=[f"{GPU}/slot"])), [{"req": ["g1", "g2"]}]),
    Case("a name without domain of another driver", problem([gpus("a", "a", attribute="slot")], claim(exactly(), match=[f"{NIC}/slot"])), "unallocatable"),
    Case("two constraints", problem([piece([device("g0", attrs={ROOT: "a", "slot": 1}), device("g1", attrs={ROOT: "a", "slot": 2}), device("g2", attrs={ROOT: "a", "slot": 2})])], claim(exactly(count=2), match=[ROOT, f"{GPU}/slot"])), [{"req": ["g1", "g2"]}]),
    Case("a constraint on an alternative", problem([gpus("a", "b"), nics("b")], claim(first_available("f", exactly("x")), exactly("n", cls="nic"), match=[(ROOT, ["f/x", "n"])])), [{"f/x": ["g1"], "n": ["n0"]}]),
    Case("a constraint on a parent covers its alternatives", problem([gpus("a", "b"), nics("b")], claim(first_available("f", exactly("x", 3), exactly("y")), exactly("n", cls="nic"), match=[(ROOT, ["f", "n"])])), [{"f/y": ["g1"], "n": ["n0"]}]),
    Case("a constraint on the alternative not chosen", problem([gpus("a", "b"), nics("b")], claim(first_available("f", exactly("x", 3), exactly("y")), exactly("n", cls="nic"), match=[(ROOT, ["f/x", "n"])])), [{"f/y": ["g0"], "n": ["n0"]}]),
    Case("all devices that match", problem([gpus("a", "a")], claim(everything(), match=[ROOT])), [{"req": ["g0", "g1"]}]),
    Case("all devices that do not match", problem([gpus("a", "b")], claim(everything(), match=[ROOT])), "error"),
]  # fmt: skip

DISTINCT = [
    Case("two of two roots", problem([gpus("a", "a", "b")], claim(exactly(count=2), distinct=[ROOT])), [{"req": ["g0", "g2"]}]),
    Case("one root only", problem([gpus("a", "a")], claim(exactly(count=2), distinct=[ROOT])), "unallocatable"),
    Case("three are compared with each other", problem([gpus("a", "b", "a")], claim(exactly(count=3), distinct=[ROOT])), "unallocatable"),
    Case("three of three roots", problem([gpus("a", "b", "a", "c")], claim(exactly(count=3), distinct=[ROOT])), [{"req": ["g0", "g1", "g3"]}]),
    Case("distinct across requests", problem([gpus("a"), nics("a", "b")], claim(*PAIR, distinct=[ROOT])), [{"g": ["g0"], "n": ["n1"]}]),
    Case("distinct needs the attribute", problem([gpus(None, "a")], claim(exactly(), distinct=[ROOT])), [{"req": ["g1"]}]),
    Case("types keep values distinct", problem([gpus(1, "1")], claim(exactly(count=2), distinct=[ROOT])), [{"req": ["g0", "g1"]}]),
    Case("distinct in one attribute, equal in another", problem([piece([device("g0", attrs={ROOT: "a", "slot": 1}), device("g1", attrs={ROOT: "a", "slot": 1}), device("g2", attrs={ROOT: "a", "slot": 2})])], claim(exactly(count=2), match=[ROOT], distinct=[f"{GPU}/slot"])), [{"req": ["g0", "g2"]}]),
    Case("distinct within each claim only", problem([gpus("a", "a")], claim(exactly(), distinct=[ROOT]), claim(exactly(), distinct=[ROOT])), [{"req": ["g0"]}, {"req": ["g1"]}]),
]  # fmt: skip

LISTS = [
    Case("lists with a common value", problem([gpus(["a", "b"], ["c"], ["b", "d"])], claim(exactly(count=2), match=[ROOT])), [{"req": ["g0", "g2"]}]),
    Case("a list and a scalar", problem([gpus(["a", "b"], "b")], claim(exactly(count=2), match=[ROOT])), [{"req": ["g0", "g1"]}]),
    Case("a value common to all, not to pairs", problem([gpus(["a", "b"], ["b", "c"], ["c", "a"])], claim(exactly(count=3), match=[ROOT])), "unallocatable"),
    Case("common values come back after a wrong turn", problem([gpus(["a", "b"], ["a"], ["b"]), nics("b")], claim(exactly("g", 2), exactly("n", cls="nic"), match=[ROOT])), [{"g": ["g0", "g2"], "n": ["n0"]}]),
    Case("lists that are disjoint", problem([gpus(["a", "b"], ["b", "c"], ["c", "d"])], claim(exactly(count=2), distinct=[ROOT])), [{"req": ["g0", "g2"]}]),
    Case("lists of numbers and of text", problem([gpus([1, 2], ["1"])], claim(exactly(count=2), match=[ROOT])), "unallocatable"),
]  # fmt: skip

CASES = [*MATCH, *DISTINCT, *LISTS]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_first_fit_chooses_the_devices_of_the_table(case: Case) -> None:
    """Each case gets exactly the devices, or the outcome, that the table names."""
    assert_first_fit(case)


@pytest.mark.parametrize("case", [case for case in CASES if case.want != "error"], ids=str)
def test_best_allocates_exactly_where_first_fit_does(case: Case) -> None:
    """Under `best` the devices may differ; whether there are any may not, and all rules hold."""
    assert_best(case)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_literal_search_agrees_with_the_table(case: Case) -> None:
    """The table says what upstream's search does, step by step."""
    assert_literal(case)
