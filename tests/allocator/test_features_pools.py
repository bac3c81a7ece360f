"""Pools: generations, completeness, validity, node selection in its four forms, the order of the search."""

# ruff: noqa: E501 - a case is a line, so that a table reads as one.

from __future__ import annotations

from typing import Any

import pytest

from oracle.build import NIC, NODE, claim, device, exactly, label_selector, piece, problem
from oracle.cases import Case, assert_best, assert_first_fit, assert_literal

ONE = claim(exactly())
TWO = claim(exactly(count=2))
ELSEWHERE: dict[str, Any] = {"nodeName": "node-2"}


def name_selector(*names: str) -> dict[str, object]:
    requirement = {"key": "metadata.name", "operator": "In", "values": list(names)}
    return {"nodeSelectorTerms": [{"matchFields": [requirement]}]}


GENERATIONS = [
    Case("the newest generation counts", problem([piece(["old"], name="a"), piece(["new"], name="b", generation=2)], ONE), [{"req": ["new"]}]),
    Case("the newest generation is incomplete", problem([piece(["old"], name="a"), piece(["new"], name="b", generation=2, of=2)], ONE), "unallocatable"),
    Case("a complete old generation here, a newer elsewhere", problem([piece(["old"], name="a"), piece(["new"], name="b", generation=2, **ELSEWHERE)], ONE), [{"req": ["old"]}]),
    Case("an incomplete old generation here, a newer elsewhere", problem([piece(["old"], name="a", of=2), piece(["new"], name="b", generation=2, **ELSEWHERE)], ONE), "unallocatable"),
    Case("a pool of two slices", problem([piece(["g0"], name="a", of=2), piece(["g1"], name="b", of=2)], TWO), [{"req": ["g0", "g1"]}]),
    Case("one of two slices", problem([piece(["g0"], name="a", of=2)], ONE), "unallocatable"),
    Case("more slices than declared", problem([piece(["g0"], name="a"), piece(["g1"], name="b")], ONE), "unallocatable"),
    Case("an incomplete pool beside a good one", problem([piece(["g0"], pool="p0", of=2), piece(["g1"], pool="p1")], ONE), [{"req": ["g1"]}]),
    Case("slices of another node complete the pool", problem([piece(["g0"], name="a", of=2), piece(["g1"], name="b", of=2, **ELSEWHERE)], ONE), [{"req": ["g0"]}]),
    Case("slices of another node cannot be used", problem([piece(["g0"], name="a", of=2), piece(["g1"], name="b", of=2, **ELSEWHERE)], TWO), "unallocatable"),
]  # fmt: skip

VALIDITY = [
    Case("a device name twice", problem([piece(["g0", "g0"])], ONE), "error"),
    Case("a device name in two slices", problem([piece(["g0"], name="a", of=2), piece(["g0"], name="b", of=2)], ONE), "error"),
    Case("a device name twice, the other on another node", problem([piece(["g0"], name="a", of=2), piece(["g0"], name="b", of=2, **ELSEWHERE)], ONE), [{"req": ["g0"]}]),
    Case("the same name in two pools", problem([piece(["g0"], pool="p0"), piece(["g0"], pool="p1")], TWO), [{"req": ["g0", "g0"]}]),
    Case("an invalid pool beside a good one", problem([piece(["g0", "g0"], pool="p0"), piece(["g1"], pool="p1")], ONE), [{"req": ["g1"]}]),
    Case("an invalid pool and too little beside it", problem([piece(["g0", "g0"], pool="p0"), piece(["g1"], pool="p1")], TWO), "error"),
    Case("a counter set twice", problem([piece(counters={"s": {"u": 1}}, name="a", of=3), piece(counters={"s": {"u": 1}}, name="b", of=3), piece(["g0"], name="c", of=3)], ONE), "error"),
    Case("an unknown counter set", problem([piece([device("g0", spends={"s": {"u": 1}})])], ONE), "error"),
    Case("an unknown counter", problem([piece(counters={"s": {"u": 1}}, name="a", of=2), piece([device("g0", spends={"s": {"v": 1}})], name="b", of=2)], ONE), "error"),
    Case("a counter set of another pool", problem([piece(counters={"s": {"u": 1}}, pool="p0"), piece([device("g0", spends={"s": {"u": 1}})], pool="p1")], ONE), "error"),
]  # fmt: skip

NODES = [
    Case("a slice of another node", problem([piece(["g0"], **ELSEWHERE)], ONE), "unallocatable"),
    Case("a slice for all nodes", problem([piece(["g0"], allNodes=True)], ONE), [{"req": ["g0"]}]),
    Case("a selector that matches", problem([piece(["g0"], nodeSelector=label_selector("zone", "a", "b"))], ONE), [{"req": ["g0"]}]),
    Case("a selector that does not match", problem([piece(["g0"], nodeSelector=label_selector("zone", "b"))], ONE), "unallocatable"),
    Case("a selector by absence", problem([piece(["g0"], nodeSelector=label_selector("rack", operator="DoesNotExist"))], ONE), [{"req": ["g0"]}]),
    Case("a selector by presence", problem([piece(["g0"], nodeSelector=label_selector("rack", operator="Exists"))], ONE), "unallocatable"),
    Case("a selector by exclusion", problem([piece(["g0"], nodeSelector=label_selector("zone", "b", operator="NotIn"))], ONE), [{"req": ["g0"]}]),
    Case("a selector greater than", problem([piece(["g0"], nodeSelector=label_selector("tier", "2", operator="Gt"))], ONE), [{"req": ["g0"]}]),
    Case("a selector less than", problem([piece(["g0"], nodeSelector=label_selector("tier", "3", operator="Lt"))], ONE), "unallocatable"),
    Case("a selector by name", problem([piece(["g0"], nodeSelector=name_selector(NODE))], ONE), [{"req": ["g0"]}]),
    Case("each device selects its nodes", problem([piece([device("g0", nodeName="node-2"), device("g1", nodeName=NODE), device("g2", allNodes=True)], perDeviceNodeSelection=True)], TWO), [{"req": ["g1", "g2"]}]),
    Case("a device selects by label", problem([piece([device("g0", nodeSelector=label_selector("zone", "b")), device("g1", nodeSelector=label_selector("zone", "a"))], perDeviceNodeSelection=True)], ONE), [{"req": ["g1"]}]),
    Case("no device selects the node", problem([piece([device("g0", nodeName="node-2")], perDeviceNodeSelection=True)], ONE), "unallocatable"),
]  # fmt: skip

ORDER = [
    Case("pools by driver", problem([piece(["n0"], driver=NIC, pool="a"), piece(["g0"], pool="b")], claim(exactly(cls="any"))), [{"req": ["g0"]}]),
    Case("pools by name", problem([piece(["g1"], pool="b"), piece(["g0"], pool="a")], ONE), [{"req": ["g0"]}]),
    Case("slices by name", problem([piece(["g1"], name="z", of=2), piece(["g0"], name="a", of=2)], ONE), [{"req": ["g0"]}]),
    Case("devices as the slice has them", problem([piece(["g9", "g1"])], ONE), [{"req": ["g9"]}]),
    Case("pools with binding conditions last", problem([piece([device("g0", bindingConditions=["ready"])], pool="a"), piece(["g1"], pool="b")], ONE), [{"req": ["g1"]}]),
    Case("devices with binding conditions in place", problem([piece([device("g0", bindingConditions=["ready"]), "g1"])], ONE), [{"req": ["g0"]}]),
    Case("names compare by bytes", problem([piece(["g1"], pool="a"), piece(["g0"], pool="B")], ONE), [{"req": ["g0"]}]),
]  # fmt: skip

CASES = [*GENERATIONS, *VALIDITY, *NODES, *ORDER]


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
