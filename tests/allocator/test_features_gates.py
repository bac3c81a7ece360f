"""Feature gates that are off, and binding conditions."""

# ruff: noqa: E501 - a case is a line, so that a table reads as one.

from __future__ import annotations

import pytest

from oracle.build import (
    capacity,
    claim,
    device,
    exactly,
    first_available,
    partitioned,
    piece,
    problem,
    shared,
    taint,
)
from oracle.cases import Case, assert_best, assert_first_fit, assert_literal

PARTS = partitioned([device("p0", spends={"card": {"u": 1}}), device("p1")], {"card": {"u": 1}})
WAITING = piece([device("g0", bindingConditions=["ready"]), "g1"])

CASES = [
    Case("binding conditions", problem([WAITING], claim(exactly())), [{"req": ["g0"]}]),
    Case("no binding conditions", problem([WAITING], claim(exactly()), off=["DRADeviceBindingConditions"]), [{"req": ["g1"]}]),
    Case("no device status", problem([WAITING], claim(exactly()), off=["DRAResourceClaimDeviceStatus"]), [{"req": ["g1"]}]),
    Case("no taints", problem([piece([device("g0", taints=[taint("x")])])], claim(exactly()), off=["DRADeviceTaints"]), [{"req": ["g0"]}]),
    Case("no admin access", problem([piece(["g0"])], claim(exactly(admin=True)), off=["DRAAdminAccess"]), "error"),
    Case("no lists of alternatives", problem([piece(["g0"])], claim(first_available("r", exactly("a"))), off=["DRAPrioritizedList"]), "error"),
    Case("no capacity requests", problem([piece(["g0"])], claim(exactly(asks={"memory": 1})), off=["DRAConsumableCapacity"]), "error"),
    Case("no shares", problem([piece([shared("g0")])], claim(exactly("a"), exactly("b")), off=["DRAConsumableCapacity"]), "unallocatable"),
    Case("no capacity checks", problem([piece([shared("g0", {"memory": capacity(0)})])], claim(exactly()), off=["DRAConsumableCapacity"]), [{"req": ["g0"]}]),
    Case("no partitions", problem(PARTS, claim(exactly()), off=["DRAPartitionableDevices"]), [{"req": ["p1"]}]),
    Case("no node selection by device", problem([piece([device("g0", allNodes=True)], perDeviceNodeSelection=True)], claim(exactly()), off=["DRAPartitionableDevices"]), "unallocatable"),
    Case("no lists of values", problem([piece([device("g0", attrs={"x": ["a"]})])], claim(exactly()), off=["DRAListTypeAttributes"]), "error"),
    Case("no lists of values, none looked at", problem([piece([device("g0", attrs={"x": ["a"]})])], claim(exactly(cls="any")), off=["DRAListTypeAttributes"]), [{"req": ["g0"]}]),
]  # fmt: skip


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
