"""Searches that leave out pools which others stand for give the answers of searches that look at every pool."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from drayman.inventory import hardware
from oracle.best import best_placement
from oracle.brute import TooLarge
from oracle.build import (
    GPU,
    capacity,
    claim,
    device,
    exactly,
    first_available,
    partitioned,
    piece,
    problem,
    shared,
)
from oracle.compare import normal
from oracle.derived import assemble
from oracle.first_fit import Fatal, first_fit, prepare
from oracle.model import Model
from oracle.nodes import JsonObject
from oracle.strategies import mixed_problems, placed_problems, problems
from oracle.subject import BEST, FIRST_FIT, answer

ROOT = "resource.kubernetes.io/pcieRoot"


@pytest.fixture(autouse=True, scope="module")
def two_pools_are_many() -> Iterator[None]:
    """Small problems are treated like those with thousands of pools."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hardware, "_MANY_POOLS", 1)
        yield


def assert_first_fit(asked: JsonObject) -> None:
    try:
        expected = first_fit(asked, 30_000)
    except TooLarge:
        assume(False)
    line = answer(asked, FIRST_FIT)
    assert line["outcome"] == expected.outcome, expected.error
    assert normal(line.get("results")) == normal(expected.results)


def assert_best(asked: JsonObject) -> None:
    model = Model(asked)
    try:
        prepare(model)
        optimum = best_placement(model)
    except (Fatal, TooLarge):
        assume(False)
    line = answer(asked, BEST)
    if optimum is None:
        assert line["outcome"] != "allocated"
        return
    expected = assemble(model, optimum.entries, optimum.chosen, repeated=False)
    assert normal(line.get("results")) == normal(expected)


@given(asked=st.one_of(problems(), mixed_problems(most_devices=10)))
def test_first_fit_gives_the_first_allocation(asked: JsonObject) -> None:
    """Outcome and devices are those of the plain search."""
    assert_first_fit(asked)


@given(asked=st.one_of(problems(), placed_problems()))
def test_best_gives_the_optimum(asked: JsonObject) -> None:
    """No valid allocation is better than the one found among fewer pools."""
    assert_best(asked)


@st.composite
def fabrics(draw: st.DrawFn) -> JsonObject:
    """A few sorts of small pools, each there several times, partly in use; claims that compare and share."""
    sorts = draw(st.lists(st.sampled_from(sorted(SORTS)), min_size=1, max_size=2))
    pieces: list[JsonObject] = []
    names: list[tuple[str, str]] = []
    for number in range(draw(st.integers(2, 4))):
        sort = draw(st.sampled_from(sorts))
        pool = f"p{number}"
        label = number if draw(st.integers(0, 3)) else 0
        devices = SORTS[sort](label)
        names += [
            (pool, made["name"]) for made in devices if "allowMultipleAllocations" not in made
        ]
        if sort == "counted":
            pieces += partitioned(devices, {"card": {"a": 1, "b": 1}}, pool=pool)
        else:
            pieces.append(piece(devices, pool=pool))
    held = draw(st.lists(st.sampled_from(names), unique=True, max_size=3)) if names else []
    allocated = {
        "devices": [{"driver": GPU, "pool": p, "device": d} for p, d in held],
        "sharedDevices": [],
        "aggregatedCapacity": [],
    }
    asked = draw(st.lists(st.sampled_from(CLAIMS), min_size=1, max_size=2))
    return problem(pieces, *asked, allocated=allocated)


def _counted(label: int) -> list[JsonObject]:
    whole = {"a": 1, "b": 1}
    return [
        device("both", attrs={"slice": label}, spends={"card": whole}),
        device("a", attrs={"slice": label}, spends={"card": {"a": 1}}),
        device("b", attrs={"slice": label}, spends={"card": {"b": 1}}),
    ]


def _plain(label: int) -> list[JsonObject]:
    return [
        device("x", attrs={"slice": label, ROOT: f"r{label}"}),
        device("y", attrs={"slice": label}),
    ]


def _shareable(label: int) -> list[JsonObject]:
    return [shared("s", {"mem": capacity(4)}, attrs={"slice": label})]


SORTS: dict[str, Any] = {"counted": _counted, "plain": _plain, "shareable": _shareable}


CLAIMS = [
    claim(exactly(count=2), match=[f"{GPU}/slice"]),
    claim(exactly(count=2), distinct=[f"{GPU}/slice"]),
    claim(exactly("one"), exactly("two")),
    claim(exactly("one", asks={"mem": 2}), exactly("two", asks={"mem": 3})),
    claim(first_available("f", exactly("three", 3), exactly("one", 1)), match=[f"{GPU}/slice"]),
    claim(exactly(count=3)),
]  # fmt: skip


@given(asked=fabrics())
def test_first_fit_on_pools_that_are_alike(asked: JsonObject) -> None:
    """The first pools of each sort stand for the others."""
    assert_first_fit(asked)


@given(asked=fabrics())
def test_best_on_pools_that_are_alike(asked: JsonObject) -> None:
    """Likewise where the best is asked for."""
    assert_best(asked)
