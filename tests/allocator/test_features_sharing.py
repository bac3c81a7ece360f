"""Devices that several hold: admin access, shares with capacity, partitions with counters."""

# ruff: noqa: E501 - a case is a line, so that a table reads as one.

from __future__ import annotations

import pytest

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
    shares,
    taint,
    toleration,
)
from oracle.cases import Case, assert_best, assert_first_fit, assert_literal

ONE = piece(["g0"])
TWO = piece(["g0", "g1"])


def memory(value: int | str, **policy: object) -> dict[str, object]:
    return {"memory": capacity(value, **policy)}


def asks(name: str, amount: int | str) -> dict[str, object]:
    return exactly(name, asks={"memory": amount})


ADMIN = [
    Case("admin on a device in use", problem([ONE], claim(exactly(admin=True)), allocated=in_use("g0")), [{"req": ["g0"]}]),
    Case("admin after an ordinary claim", problem([ONE], claim(exactly()), claim(exactly(admin=True))), [{"req": ["g0"]}, {"req": ["g0"]}]),
    Case("admin before an ordinary claim", problem([ONE], claim(exactly(admin=True)), claim(exactly())), [{"req": ["g0"]}, {"req": ["g0"]}]),
    Case("admin before an ordinary claim with room", problem([TWO], claim(exactly(admin=True)), claim(exactly())), [{"req": ["g0"]}, {"req": ["g1"]}]),
    Case("admin and ordinary in one claim", problem([TWO], claim(exactly("a", admin=True), exactly("o"))), [{"a": ["g0"], "o": ["g1"]}]),
    Case("admin and ordinary in one claim on one device", problem([ONE], claim(exactly("o"), exactly("a", admin=True))), "unallocatable"),
    Case("two admins in two claims", problem([ONE], claim(exactly(admin=True)), claim(exactly(admin=True))), [{"req": ["g0"]}, {"req": ["g0"]}]),
    Case("admin for all", problem([TWO], claim(everything(admin=True)), allocated=in_use("g1")), [{"req": ["g0", "g1"]}]),
    Case("admin does not tolerate", problem([piece([device("g0", taints=[taint("x")])])], claim(exactly(admin=True))), "unallocatable"),
]  # fmt: skip

TAINTS = [
    Case("a taint keeps away", problem([piece([device("g0", taints=[taint("x")]), "g1"])], claim(exactly())), [{"req": ["g1"]}]),
    Case("a toleration lets in", problem([piece([device("g0", taints=[taint("x")]), "g1"])], claim(exactly(tolerates=[toleration("x")]))), [{"req": ["g0"]}]),
    Case("a toleration of another key", problem([piece([device("g0", taints=[taint("x")])])], claim(exactly(tolerates=[toleration("y")]))), "unallocatable"),
    Case("a toleration of every key", problem([piece([device("g0", taints=[taint("x"), taint("y")])])], claim(exactly(tolerates=[toleration()]))), [{"req": ["g0"]}]),
    Case("a toleration by value", problem([piece([device("g0", taints=[taint("x", "1")]), device("g1", taints=[taint("x", "2")])])], claim(exactly(tolerates=[toleration("x", operator="Equal", value="2")]))), [{"req": ["g1"]}]),
    Case("a toleration of one effect", problem([piece([device("g0", taints=[taint("x", effect="NoExecute")])])], claim(exactly(tolerates=[toleration("x", effect="NoSchedule")]))), "unallocatable"),
    Case("every taint needs a toleration", problem([piece([device("g0", taints=[taint("x"), taint("y")])])], claim(exactly(tolerates=[toleration("x")]))), "unallocatable"),
    Case("a taint without effect", problem([piece([device("g0", taints=[taint("x", effect="None")])])], claim(exactly())), [{"req": ["g0"]}]),
    Case("all devices with one tainted", problem([piece(["g0", device("g1", taints=[taint("x")])])], claim(everything())), "unallocatable"),
    Case("an alternative tolerates", problem([piece([device("g0", taints=[taint("x")])])], claim(first_available("r", exactly("a"), exactly("b", tolerates=[toleration("x")])))), [{"r/b": ["g0"]}]),
]  # fmt: skip

CAPACITY = [
    Case("two shares fit", problem([piece([shared("g0", memory(10))])], claim(asks("a", 6), asks("b", 4))), [{"a": ["g0"], "b": ["g0"]}]),
    Case("two shares do not fit", problem([piece([shared("g0", memory(10))])], claim(asks("a", 6), asks("b", 5))), "unallocatable"),
    Case("the second share goes elsewhere", problem([piece([shared("g0", memory(10)), shared("g1", memory(10))])], claim(asks("a", 6), asks("b", 5))), [{"a": ["g0"], "b": ["g1"]}]),
    Case("a big share makes room", problem([piece([shared("g0", memory(10)), shared("g1", memory(5))])], claim(asks("a", 5), asks("b", 10))), [{"a": ["g1"], "b": ["g0"]}]),
    Case("no request takes all of it", problem([piece([shared("g0", memory(10))])], claim(exactly("a"), asks("b", 1))), "unallocatable"),
    Case("no request takes the default", problem([piece([shared("g0", memory(10, default="3"))])], claim(exactly("a"), exactly("b"), exactly("c"))), [{"a": ["g0"], "b": ["g0"], "c": ["g0"]}]),
    Case("below the range rounds up", problem([piece([shared("g0", memory(10, default="4", validRange={"min": "4"}))])], claim(asks("a", 1), asks("b", 1), asks("c", 1))), "unallocatable"),
    Case("between steps rounds up", problem([piece([shared("g0", memory(10, default="1", validRange={"min": "1", "step": "4"}))])], claim(asks("a", 2), asks("b", "5"))), [{"a": ["g0"], "b": ["g0"]}]),
    Case("above the range", problem([piece([shared("g0", memory(10, default="1", validRange={"min": "1", "max": "5"}))])], claim(asks("a", 6))), "unallocatable"),
    Case("rounded above the range", problem([piece([shared("g0", memory(10, default="1", validRange={"min": "1", "max": "6", "step": "4"}))])], claim(asks("a", 6))), "unallocatable"),
    Case("the next of the valid values", problem([piece([shared("g0", memory(10, default="2", validValues=["2", "5"]))])], claim(asks("a", 3), asks("b", 3))), [{"a": ["g0"], "b": ["g0"]}]),
    Case("above the valid values", problem([piece([shared("g0", memory(10, default="2", validValues=["2", "5"]))])], claim(asks("a", 6))), "unallocatable"),
    Case("a capacity that the device lacks", problem([piece([shared("g0"), shared("g1", memory(4))])], claim(asks("a", 1))), [{"a": ["g1"]}]),
    Case("shares without capacity have no end", problem([piece([shared("g0")])], claim(exactly("a"), exactly("b"), exactly("c"))), [{"a": ["g0"], "b": ["g0"], "c": ["g0"]}]),
    Case("a request never shares with itself", problem([piece([shared("g0", memory(10, default="1"))])], claim(exactly(count=2))), "unallocatable"),
    Case("an exclusive device with enough", problem([piece([device("g0", capacity=memory(4)), device("g1", capacity=memory(8))])], claim(asks("a", 5))), [{"a": ["g1"]}]),
    Case("an exclusive device is not shared", problem([piece([device("g0", capacity=memory(8))])], claim(asks("a", 1), asks("b", 1))), "unallocatable"),
    Case("what is in use counts", problem([piece([shared("g0", memory(10))])], claim(asks("a", 7)), allocated=shares("g0", {"memory": "4"})), "unallocatable"),
    Case("a share keeps all of a device that is shared no more", problem([piece([device("g0", capacity=memory(10)), "g1"])], claim(exactly()), allocated=shares("g0", {"memory": "4"})), [{"req": ["g1"]}]),
    Case("what is left can be had", problem([piece([shared("g0", memory(10))])], claim(asks("a", 6)), allocated=shares("g0", {"memory": "4"})), [{"a": ["g0"]}]),
    Case("a shared device in exclusive use", problem([piece([shared("g0", memory(10))])], claim(asks("a", 1)), allocated=in_use("g0")), "unallocatable"),
    Case("all leaves out devices that are too small", problem([piece([shared("g0", memory(2)), shared("g1", memory(9))])], claim(everything(asks={"memory": 4}))), [{"req": ["g1"]}]),
    Case("all after a share was taken", problem([piece([shared("g0", memory(9))])], claim(asks("a", 6), everything("b", asks={"memory": 4}))), "unallocatable"),
    Case("fractions add up", problem([piece([shared("g0", {"cores": capacity("1")})])], claim(exactly("a", asks={"cores": "500m"}), exactly("b", asks={"cores": "0.5"}))), [{"a": ["g0"], "b": ["g0"]}]),
    Case("suffixes add up", problem([piece([shared("g0", memory("1Gi"))])], claim(asks("a", "512Mi"), asks("b", "524288Ki"))), [{"a": ["g0"], "b": ["g0"]}]),
]  # fmt: skip


def part(name: str, units: int, **fields: object) -> dict[str, object]:
    return device(name, spends={"card": {"units": units}}, **fields)


CARD = {"card": {"units": 4}}

COUNTERS = [
    Case("partitions that fit", problem(partitioned([part("p0", 2), part("p1", 2)], CARD), claim(exactly(count=2))), [{"req": ["p0", "p1"]}]),
    Case("partitions that do not fit", problem(partitioned([part("p0", 3), part("p1", 2)], CARD), claim(exactly(count=2))), "unallocatable"),
    Case("a big partition gives way", problem(partitioned([part("p0", 4), part("p1", 2), part("p2", 2)], CARD), claim(exactly(count=2))), [{"req": ["p1", "p2"]}]),
    Case("what is in use counts against counters", problem(partitioned([part("p0", 3), part("p1", 2), part("p2", 1)], CARD), claim(exactly()), allocated=in_use("p0")), [{"req": ["p2"]}]),
    Case("a device without counters in a full pool", problem(partitioned([part("p0", 4), part("p1", 1), device("p2")], CARD), claim(exactly()), allocated=in_use("p0")), [{"req": ["p2"]}]),
    Case("over-committed counters block the pool", problem(partitioned([part("p0", 3), part("p1", 3), part("p2", 0)], CARD), claim(exactly()), allocated=in_use("p0", "p1")), "unallocatable"),
    Case("admin access consumes counters again", problem(partitioned([part("p0", 3)], CARD), claim(exactly(admin=True)), allocated=in_use("p0")), "unallocatable"),
    Case("a shared partition is charged once", problem(partitioned([part("p0", 4, allowMultipleAllocations=True)], CARD), claim(exactly("a"), exactly("b"))), [{"a": ["p0"], "b": ["p0"]}]),
    Case("a shared partition in use costs nothing more", problem(partitioned([part("p0", 4, allowMultipleAllocations=True, capacity=memory(4, default="1"))], CARD), claim(exactly()), allocated=shares("p0", {"memory": "1"})), [{"req": ["p0"]}]),
    Case("counters are the pool's", problem([*partitioned([part("p0", 3)], CARD, pool="a"), *partitioned([part("p1", 3)], CARD, pool="b")], claim(exactly(count=2))), [{"req": ["p0", "p1"]}]),
    Case("two counter sets in one device", problem(partitioned([device("p0", spends={"x": {"u": 1}, "y": {"u": 2}}), device("p1", spends={"y": {"u": 1}})], {"x": {"u": 1}, "y": {"u": 2}}), claim(exactly(count=2))), "unallocatable"),
    Case("counters consumed on another node", problem([piece(counters=CARD, name="a", of=3), piece([part("p0", 3)], name="b", of=3), piece([part("p1", 3)], name="c", of=3, nodeName="node-2")], claim(exactly()), allocated=in_use("p1")), "unallocatable"),
    Case("all partitions at once", problem(partitioned([part("p0", 2), part("p1", 2)], CARD), claim(everything())), [{"req": ["p0", "p1"]}]),
    Case("all partitions at once, too many", problem(partitioned([part("p0", 2), part("p1", 3)], CARD), claim(everything())), "unallocatable"),
]  # fmt: skip

CASES = [*ADMIN, *TAINTS, *CAPACITY, *COUNTERS]


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
