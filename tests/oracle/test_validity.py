"""The checker notices what it is for: each way to spoil a valid allocation breaks the rule it should."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

import pytest
from hypothesis import assume, given

from oracle.brute import TooLarge, exists
from oracle.build import (
    GPU,
    NIC,
    capacity,
    claim,
    device,
    exactly,
    first_available,
    in_use,
    opaque,
    partitioned,
    piece,
    problem,
    shared,
    taint,
)
from oracle.first_fit import first_fit
from oracle.model import Model
from oracle.nodes import JsonObject
from oracle.strategies import problems
from oracle.validity import violations

ROOT = "resource.kubernetes.io/pcieRoot"
PLAIN = problem(
    [
        piece(
            [
                device("g0", attrs={ROOT: "a", "model": "x"}),
                device("g1", attrs={ROOT: "a", "model": "y"}),
                device("g2", attrs={ROOT: "b", "model": "y"}),
                device("g3", attrs={ROOT: "a"}, taints=[taint("x")]),
                device("g4"),
                device("g5", attrs={ROOT: "a", "model": "z"}),
            ]
        ),
        piece(["n0"], driver=NIC),
        piece(["far"], driver=NIC, pool="far", nodeName="node-2"),
    ],
    claim(exactly("a", 2), match=[ROOT], distinct=[f"{GPU}/model"], config=[opaque(GPU, "x")]),
    claim(first_available("f", exactly("nic", 2, "nic"), exactly("gpu", 1))),
    allocated=in_use("g5"),
)
SHARED = problem(
    [piece([shared("s0", {"memory": capacity(8)})])],
    claim(exactly("a", asks={"memory": 3}), exactly("b", asks={"memory": 5})),
)
PARTS = problem(
    partitioned(
        [device(f"p{n}", spends={"card": {"units": 2}}) for n in range(3)], {"card": {"units": 4}}
    ),
    claim(exactly(count=2)),
)

Spoil = Callable[[list[JsonObject]], object]


def entries(results: list[JsonObject], claim_number: int = 0) -> list[JsonObject]:
    return list(results[claim_number]["devices"]["results"])


def give(name: str, position: int = 1) -> Spoil:
    """Name another device in an entry of the first claim."""
    return lambda results: entries(results)[position].update(device=name)


def put(position: int, claim_number: int = 0, **fields: object) -> Spoil:
    return lambda results: entries(results, claim_number)[position].update(fields)


SPOILS: list[tuple[str, JsonObject, Spoil, str]] = [
    ("no such device", PLAIN, give("g9"), "pools"),
    ("another node's device", PLAIN, put(0, 1, driver=NIC, pool="far", device="far"), "pools"),
    ("another driver's device", PLAIN, put(0, 1, driver=NIC, device="n0"), "eligibility"),
    ("no such request", PLAIN, put(0, request="z"), "form"),
    ("a claim without result", PLAIN, lambda r: r.pop(), "form"),
    ("one device too few", PLAIN, lambda r: r[0]["devices"]["results"].pop(), "counts"),
    ("an alternative half served", PLAIN, put(0, 1, request="f/nic", driver=NIC, device="n0"), "counts"),
    ("a device twice", PLAIN, give("g0"), "availability"),
    ("a device of both claims", PLAIN, put(0, 1, device="g0"), "availability"),
    ("a device in use", PLAIN, give("g5"), "availability"),
    ("a tainted device", PLAIN, put(0, 1, device="g3"), "taints"),
    ("values that do not match", PLAIN, give("g2"), "constraints"),
    ("an attribute that is missing", PLAIN, give("g4"), "constraints"),
    ("admin access not asked for", PLAIN, put(0, adminAccess=True), "derived"),
    ("tolerations not asked for", PLAIN, put(0, tolerations=[{"operator": "Exists"}]), "derived"),
    ("a share of an exclusive device", PLAIN, put(0, shareID="x"), "derived"),
    ("no configuration", PLAIN, lambda r: r[0]["devices"].pop("config"), "derived"),
    ("no node selector", PLAIN, lambda r: r[0].pop("nodeSelector"), "derived"),
    ("no share", SHARED, lambda r: entries(r)[0].pop("shareID"), "derived"),
    ("one share twice", SHARED, put(0, shareID="share-2"), "derived"),
    ("capacity not consumed", SHARED, put(0, consumedCapacity={"memory": "1"}), "derived"),
    ("capacity left out", SHARED, lambda r: entries(r)[0].pop("consumedCapacity"), "derived"),
    ("a pool over-committed", {**PARTS, "allocated": in_use("p2")}, lambda r: None, "counters"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "spoil", "rule"), [s[1:] for s in SPOILS], ids=[s[0] for s in SPOILS]
)
def test_a_spoilt_allocation_breaks_the_right_rule(
    asked: JsonObject, spoil: Spoil, rule: str
) -> None:
    """Results that were valid before are not afterwards, and the reason is the one expected."""
    fresh = {**asked, "allocated": in_use("g5")} if asked is not SHARED else asked
    found = first_fit(fresh)
    assert found.outcome == "allocated"
    assert violations(fresh, found.results) == []
    results = deepcopy(found.results)
    spoil(results)
    assert rule in {text.split(":")[0] for text in violations(asked, results)}


def test_capacity_given_away_twice_is_noticed() -> None:
    """Shares that are fine on their own may be too much together."""
    found = first_fit(SHARED)
    smaller = deepcopy(SHARED)
    smaller["slices"][0]["spec"]["devices"][0]["capacity"]["memory"]["value"] = "7"
    assert [text for text in violations(smaller, found.results) if text.startswith("capacity")]


@given(problem=problems())
def test_the_searches_of_this_package_agree_with_each_other(problem: JsonObject) -> None:
    """Literal search, exhaustive search and checker were written apart and say the same."""
    try:
        found = first_fit(problem, 20_000)
        assume(found.outcome != "error")
        assert exists(Model(problem), 20_000) == (found.outcome == "allocated")
    except TooLarge:
        assume(False)
    assert found.outcome != "allocated" or violations(problem, found.results) == []
