"""Counts, all devices, alternatives, limits, selectors: which devices a request gets."""

# ruff: noqa: E501 - a case is a line, so that a table reads as one.

from __future__ import annotations

import pytest

from oracle import selectors
from oracle.build import (
    claim,
    device,
    device_class,
    everything,
    exactly,
    first_available,
    in_use,
    piece,
    problem,
)
from oracle.cases import Case, assert_best, assert_first_fit, assert_literal
from oracle.nodes import JsonObject

THREE = piece(["g0", "g1", "g2"])
NICS = piece(["n0", "n1"], driver=selectors.NIC)
MODELS = piece(
    [device("g0", attrs={"model": "b"}), device("g1", attrs={"model": "a"}), device("g2")]
)


def many(count: int) -> list[JsonObject]:
    return [piece([f"g{n:03}" for n in range(count)])]


COUNTS = [
    Case("no claims", problem([THREE]), []),
    Case("no requests", problem([THREE], claim()), [{}]),
    Case("one device", problem([THREE], claim(exactly())), [{"req": ["g0"]}]),
    Case("two devices", problem([THREE], claim(exactly(count=2))), [{"req": ["g0", "g1"]}]),
    Case("every device by count", problem([THREE], claim(exactly(count=3))), [{"req": ["g0", "g1", "g2"]}]),
    Case("one too many", problem([THREE], claim(exactly(count=4))), "unallocatable"),
    Case("no devices at all", problem([], claim(exactly())), "unallocatable"),
    Case("two requests", problem([THREE], claim(exactly("a"), exactly("b", 2))), [{"a": ["g0"], "b": ["g1", "g2"]}]),
    Case("two claims", problem([THREE], claim(exactly()), claim(exactly(count=2))), [{"req": ["g0"]}, {"req": ["g1", "g2"]}]),
    Case("two claims want too much", problem([THREE], claim(exactly(count=2)), claim(exactly(count=2))), "unallocatable"),
    Case("device in use", problem([THREE], claim(exactly()), allocated=in_use("g0")), [{"req": ["g1"]}]),
    Case("everything in use", problem([THREE], claim(exactly()), allocated=in_use("g0", "g1", "g2")), "unallocatable"),
    Case("classes keep drivers apart", problem([THREE, NICS], claim(exactly("g"), exactly("n", 2, "nic"))), [{"g": ["g0"], "n": ["n0", "n1"]}]),
    Case("a class without selectors takes any device", problem([NICS, THREE], claim(exactly(count=4, cls="any"))), [{"req": ["g0", "g1", "g2", "n0"]}]),
    Case("an earlier request gives way", problem([MODELS], claim(exactly("x"), exactly("y", select=[selectors.MODEL_A_GUARDED]), exactly("z"))), [{"x": ["g0"], "y": ["g1"], "z": ["g2"]}]),
    Case("an earlier claim gives way", problem([piece([device("g0", attrs={"model": "a"}), "g1"])], claim(exactly()), claim(exactly(select=[selectors.MODEL_A_GUARDED]))), [{"req": ["g1"]}, {"req": ["g0"]}]),
]  # fmt: skip

ALL = [
    Case("all devices", problem([THREE], claim(everything())), [{"req": ["g0", "g1", "g2"]}]),
    Case("all devices of a class", problem([THREE, NICS], claim(everything(cls="nic"))), [{"req": ["n0", "n1"]}]),
    Case("all of those selected", problem([MODELS], claim(everything(select=[selectors.MODEL_A_GUARDED]))), [{"req": ["g1"]}]),
    Case("all with one in use", problem([THREE], claim(everything()), allocated=in_use("g1")), "unallocatable"),
    Case("all of nothing", problem([THREE], claim(everything(cls="nic"))), "unallocatable"),
    Case("all after another request took one", problem([THREE], claim(exactly("a"), everything("b"))), "unallocatable"),
    Case("all of 32", problem(many(32), claim(everything())), [{"req": [f"g{n:03}" for n in range(32)]}]),
    Case("all of 33", problem(many(33), claim(everything())), "error"),
    Case("all while a pool is incomplete", problem([THREE, piece(["n0"], driver=selectors.NIC, of=2)], claim(everything())), "error"),
    Case("all while a pool is invalid", problem([THREE, piece(["n0", "n0"], driver=selectors.NIC)], claim(everything())), "error"),
]  # fmt: skip

ALTERNATIVES = [
    Case("the first alternative fits", problem([THREE, NICS], claim(first_available("r", exactly("a"), exactly("b", cls="nic")))), [{"r/a": ["g0"]}]),
    Case("the first alternative does not fit", problem([THREE, NICS], claim(first_available("r", exactly("a", 4), exactly("b", cls="nic")))), [{"r/b": ["n0"]}]),
    Case("no alternative fits", problem([THREE], claim(first_available("r", exactly("a", 4), exactly("b", cls="nic")))), "unallocatable"),
    Case("all as an alternative", problem([THREE], claim(first_available("r", everything("a", "nic"), everything("b")))), [{"r/b": ["g0", "g1", "g2"]}]),
    Case("a later request forces the second choice", problem([THREE], claim(first_available("r", exactly("a", 3), exactly("b", 1)), exactly("x", 2))), [{"r/b": ["g0"], "x": ["g1", "g2"]}]),
    Case("a later claim forces the second choice", problem([THREE], claim(first_available("r", exactly("a", 3), exactly("b", 2))), claim(exactly())), [{"r/b": ["g0", "g1"]}, {"req": ["g2"]}]),
    Case("earlier lists keep their choice", problem([THREE], claim(first_available("r", exactly("a", 2), exactly("b", 1)), first_available("s", exactly("a", 2), exactly("b", 1)))), [{"r/a": ["g0", "g1"], "s/b": ["g2"]}]),
    Case("too many in one alternative only", problem(many(40), claim(first_available("r", exactly("a", 33), exactly("b", 1)))), [{"r/b": ["g000"]}]),
    Case("too many in every alternative", problem(many(40), claim(first_available("r", exactly("a", 33), exactly("b", 34)))), "error"),
    Case("an error in a later alternative counts", problem([THREE], claim(first_available("r", exactly("a"), exactly("b", cls="unknown")))), "error"),
]  # fmt: skip

LIMITS = [
    Case("32 devices", problem(many(40), claim(exactly(count=32))), [{"req": [f"g{n:03}" for n in range(32)]}]),
    Case("33 devices in a request", problem(many(40), claim(exactly(count=33))), "error"),
    Case("33 devices in a claim", problem(many(40), claim(exactly("a", 20), exactly("b", 13))), "error"),
    Case("33 devices in two claims", problem(many(40), claim(exactly(count=20)), claim(exactly(count=13))), [{"req": [f"g{n:03}" for n in range(20)]}, {"req": [f"g{n:03}" for n in range(20, 33)]}]),
]  # fmt: skip

SELECTORS = [
    Case("a selector picks", problem([MODELS], claim(exactly(select=[selectors.MODEL_A_GUARDED]))), [{"req": ["g1"]}]),
    Case("selectors that never hold", problem([MODELS], claim(exactly(select=[selectors.NOTHING]))), "unallocatable"),
    Case("two selectors", problem([MODELS], claim(exactly(select=[selectors.ONLY_NIC, selectors.MODEL_A_GUARDED]))), "unallocatable"),
    Case("an unknown class", problem([THREE], claim(exactly(cls="unknown"))), "error"),
    Case("an unknown class in a later claim", problem([THREE], claim(exactly()), claim(exactly(cls="unknown"))), "error"),
    Case("a selector that does not compile", problem([THREE], claim(exactly(select=[selectors.BROKEN]))), "error"),
    Case("a class that does not compile", problem([THREE], claim(exactly(cls="broken")), classes=[device_class("broken", selectors.BROKEN)]), "error"),
    Case("a broken selector without devices", problem([], claim(exactly(select=[selectors.BROKEN]))), "unallocatable"),
    Case("an unknown allocation mode", problem([THREE], claim(exactly(allocationMode="Some"))), "error"),
]  # fmt: skip

RUNTIME_ERRORS = [
    Case("a failing device behind the solution", problem([MODELS], claim(exactly(select=[selectors.MODEL_A]))), [{"req": ["g1"]}]),
    Case("a failing device before the solution", problem([piece(["g0", device("g1", attrs={"model": "a"})])], claim(exactly(select=[selectors.MODEL_A]))), "error"),
    Case("a failing device in use", problem([piece(["g0", device("g1", attrs={"model": "a"})])], claim(exactly(select=[selectors.MODEL_A])), allocated=in_use("g0")), [{"req": ["g1"]}]),
    Case("a failing device that the class keeps away", problem([MODELS, NICS], claim(exactly(select=[selectors.ONLY_NIC, selectors.MODEL_A]))), "unallocatable"),
    Case("a failing device in the first alternative", problem([piece(["g0"]), NICS], claim(first_available("r", exactly("a", select=[selectors.MODEL_A]), exactly("b", cls="nic")))), "error"),
    Case("a failing device for all", problem([MODELS], claim(everything(select=[selectors.MODEL_A]))), "error"),
]  # fmt: skip

CASES = [*COUNTS, *ALL, *ALTERNATIVES, *LIMITS, *SELECTORS, *RUNTIME_ERRORS]


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
